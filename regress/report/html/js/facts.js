// What is said of a benchmark in words: its verdict, and the facts of its newest value.
(R => {
  const {h, text} = R;

  const verdict = (shard, now) => {
    const rows = R.index.rows.filter(
      row =>
        row.name === shard.name &&
        row.metric === now.metric &&
        (row.params === now.name || row.cases > 1) &&
        (now.place === "all" || R.index.places[row.place].id === now.place),
    );
    const row = rows.sort((a, b) => R.urgency(a) - R.urgency(b))[0];
    if (!row) return h("p", {class: "lede"}, "Its history has no large change.");
    const event = R.index.events.find(
      each =>
        each.large &&
        R.index.entries[each.benchmark].name === shard.name &&
        each.metric === now.metric &&
        each.first <= (row.changed ?? -1) &&
        each.places.includes(row.place) &&
        each.state !== "recovered",
    );
    const own = now.lines
      .filter(line => R.placeOf.get(line.place) === row.place)
      .flatMap(line => line.changes)
      .filter(each => each.large);
    const open = own.filter(
        each => row.status === "regressed" && each.moved === "regressed" && each.state === "confirmed",
      ),
      last = open.at(-1) ?? own.at(-1);
    const since = last && R.index.commits[R.commitAt.get(shard.commits[last.first])];
    return h(
      "p",
      {class: "lede"},
      row.status === "failed" ? R.failure(row.why) : [R.tag(row.status), " ", row.why && `${row.why}.`],
      " ",
      last && [
        open.length > 1 ? `${open.length} times; the last: ` : open.length ? "" : "Last change ",
        R.moved(last.ratio, R.kindOf(last)),
        last.low !== last.high && ` (95 % interval ${text.interval(last.low, last.high)})`,
        " at ",
        R.commitLink(since),
        ` ${[since.subject.slice(0, 90), since.author, text.date(since.date)].filter(Boolean).join(", ")}`,
        event && event.suspects_n > 1 && `, or ${event.suspects_n > 2 ? `one of ${event.suspects_n - 1} commits` : "the one"} before it`,
        ".",
      ],
    );
  };
  const facts = now => {
    const line = now.lines[0],
      at = line.values.length - 1,
      place = R.index.places[R.placeOf.get(line.place)],
      machine = Object.fromEntries(R.index.machines)[place.machine] ?? {};
    const commit = R.index.commits[R.commitAt.get(now.shard.commits[line.at[at]])];
    const item = (name, ...value) => [h("dt", null, name), h("dd", null, ...value)];
    const [driver, cuda] = [machine.driver && `driver ${machine.driver}`, machine.cuda && `CUDA ${machine.cuda}`],
      cards = place.cards.length ? place.cards : line.cards;
    const said =
      [place.gpu, driver, cuda]
        .filter(Boolean)
        .join(", ") || machine.cpu;
    return h(
      "dl",
      {class: "facts"},
      at < 0
        ? item("Values", "none")
        : [
            item(
              `Latest, at ${R.short(commit.sha)}`,
              h("span", {class: "big"}, text.value(line.values[at], line.unit)),
            ),
            item(
              "95 % interval",
              line.lows[at] === line.highs[at]
                ? line.exact
                  ? "exact"
                  : "unknown: one round"
                : text.span(line.lows[at], line.highs[at], line.unit).join(" to "),
            ),
            item(
              "Noise",
              line.noise === null && !line.exact
                ? h("span", {class: "soft"}, line.values.at(-1) < 0 ? "unknown: the values are negative" : "one value is not enough")
                : [text.noise(line.noise), h("span", {class: "soft"}, line.exact ? " exact" : " around its level")],
            ),
            item("Counts from", text.percent(line.threshold)),
            line.samples &&
              item(
                "Smallest, 95th percentile, largest",
                [
                  ...text.span(line.samples.low, line.samples.p95, line.unit),
                  text.span(line.samples.low, line.samples.high, line.unit)[1],
                ].map((each, at) => [at > 0 && " · ", h("span", {class: "nowrap"}, each)]),
                h(
                  "div",
                  {class: "soft"},
                  `of ${text.counted(line.samples.n, "sample")}, each ${line.samples.calls > 1 ? `the mean of ${line.samples.calls} calls` : "of one call"}`,
                ),
              ),
            line.read.length > 0 &&
              item(
                "Corrected for the machine or card",
                line.cards.length > 1
                  ? "by commits measured on several cards"
                  : "by windows in turn with other commits",
                h("div", {class: "soft"}, "grey points: raw values"),
              ),
          ],
      item(
        "Measured on",
        place.label,
        said && h("div", {class: "soft"}, said),
        cards.map(each => h("div", {class: "soft"}, R.card(each))),
        h("div", {class: "soft"}, place.environment),
      ),
    );
  };

  R.facts = {verdict, facts};
})(regress);

// What is said of a benchmark in words: its verdict, and the facts of its newest value.
(R => {
  const {h, text} = R;

  const verdict = (shard, view) => {
    const rows = R.index.rows.filter(
      row =>
        row.name === shard.name &&
        row.metric === view.metric &&
        (row.params === view.name || row.cases > 1) &&
        (view.place === "all" || R.index.places[row.place].id === view.place),
    );
    const row = rows.sort((a, b) => R.urgency(a) - R.urgency(b))[0];
    if (!row) return h("p", {class: "lede"}, "Its history has no large change.");
    const blamed = R.index.events.find(
      event =>
        event.large &&
        R.index.entries[event.benchmark].name === shard.name &&
        event.metric === view.metric &&
        event.first <= (row.changed ?? -1) &&
        event.places.includes(row.place) &&
        event.state !== "recovered",
    );
    const changes = view.lines
      .filter(line => R.placeOf.get(line.place) === row.place)
      .flatMap(line => line.changes)
      .filter(change => change.large);
    const open = changes.filter(
        change => row.status === "regressed" && change.moved === "regressed" && change.state === "confirmed",
      ),
      last = open.at(-1) ?? changes.at(-1);
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
        blamed && blamed.suspects_n > 1 && `, or ${blamed.suspects_n > 2 ? `one of ${blamed.suspects_n - 1} commits` : "the one"} before it`,
        ".",
      ],
    );
  };
  const facts = view => {
    const line = view.lines[0],
      at = line.values.length - 1,
      place = R.index.places[R.placeOf.get(line.place)],
      machine = Object.fromEntries(R.index.machines)[place.machine] ?? {};
    const commit = R.index.commits[R.commitAt.get(view.shard.commits[line.at[at]])];
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
                ].map((words, at) => [at > 0 && " · ", h("span", {class: "nowrap"}, words)]),
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
        cards.map(card => h("div", {class: "soft"}, R.card(card))),
        h("div", {class: "soft"}, place.environment),
      ),
    );
  };

  R.facts = {verdict, facts};
})(regress);

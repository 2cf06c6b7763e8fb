// A change of level as a reader wants it: what, how much and how sure, whose commit, since when, and what to run next.
(R => {
  const {h} = R;

  const shiftOf = event => (event.shift === null ? null : R.index.shifts[event.shift]);
  // What moved at once with many others: how many, what speaks for another cause, and only then the commit.
  const shifted = (event, shift) => [
    h("div", {class: "subject"}, `${shift.benchmarks} benchmarks moved at once${R.index.places.length > 1 ? ` on ${R.index.places[shift.place].label}` : ""}`),
    shift.reasons.map(reason => h("div", null, reason)),
    h("div", {class: "soft"}, "at ", R.commitLink(R.index.commits[event.first]), ` · ${R.text.date(R.index.commits[event.first].date)}`),
  ];
  const STATES = ["open", "tentative", "acknowledged", "relapsed", "recovered", "confirmed", "gone"];
  const {far} = R;

  const place = event => STATES.indexOf(event.state);
  // Open and tentative events are sorted by size, past ones by date.
  const worstFirst = (a, b) =>
    place(a) - place(b) || b.large - a.large || b.gates - a.gates || (place(a) < 2 ? far(b.ratio) - far(a.ratio) : b.first - a.first);
  // Events that moved at once, or with one blamed range in the same places, have one cause: the worst stands for them.
  R.causes = events => {
    const groups = new Map();
    for (const event of [...events].sort(worstFirst)) {
      const key = event.shift ?? `${event.moved} ${event.good} ${event.last} ${event.places}`;
      if (groups.has(key)) groups.get(key).push(event);
      else groups.set(key, [event]);
    }
    return [...groups.values()];
  };
  R.states = STATES;

  const blamed = event => {
    const {commits} = R.index,
      first = commits[event.first],
      authors = [...new Set(event.suspects.map(suspect => suspect.author).filter(Boolean))];
    const only = event.suspects_n === 1 ? event.suspects[0] : null;
    const title = h("div", {class: "subject"}, R.commitLink(only ?? first), " ", (only ?? first).subject);
    const who = only
      ? only.author
      : `one of ${event.suspects_n} commits${authors.length ? " by " : ""}${R.text.listed(authors.length > 3 ? [...authors.slice(0, 3), `${authors.length - 3} more`] : authors)}`;
    return [title, h("div", {class: "soft"}, R.by(who, R.text.date((only ?? first).date)))];
  };
  const acknowledged = event => {
    if (!event.acknowledged) return null;
    const [words, link] = event.acknowledged;
    const address = link.replace(/^https?:\/\//, "");
    const shown = address.length > 40 ? `${address.slice(0, 39)}…` : address;
    return h("div", {class: "soft"}, words, link && [" ", h("a", {href: link, rel: "noreferrer"}, shown)]);
  };
  const suspects = event =>
    event.suspects_n < 2
      ? null
      : h(
          "details",
          {class: "suspects"},
          h("summary", null, `The ${event.suspects_n} commits`),
          h(
            "ol",
            null,
            event.suspects.map(suspect =>
              h(
                "li",
                null,
                R.commitLink(suspect),
                " ",
                suspect.subject,
                h("span", {class: "soft"}, ` · ${R.by(suspect.author, R.text.date(suspect.date))}`),
              ),
            ),
            event.suspects_n > event.suspects.length &&
              h("li", {class: "soft"}, `and ${event.suspects_n - event.suspects.length} older ones`),
          ),
        );

  R.eventLink = event =>
    R.link("benchmark", R.index.entries[event.benchmark].name, {
      c: event.params,
      metric: event.metric,
      at: R.index.places.length > 1 ? R.index.places[event.place].id : "",
      pin: R.index.commits[event.good].sha,
      with: R.index.commits[event.first].sha,
    });
  const spread = event =>
    R.text.change(event.least) === R.text.change(event.most)
      ? ""
      : `, ${R.text.change(event.least)} to ${R.text.change(event.most)}`;
  R.reach = event =>
    [
      event.cases > 1 ? `${event.cases} of ${event.of_cases} cases${spread(event)}` : "",
      R.where(event.places, event.of_places),
    ]
      .filter(Boolean)
      .join(" · ");

  R.leftOut = () =>
    R.index.left_out > 0 &&
    h(
      "p",
      {class: "soft"},
      `${R.index.left_out} older changes and failures are on the pages of their benchmarks only.`,
    );
  // A command that measures has to be run where the change was seen.
  const measures = word => word !== "ack";
  const where = event => {
    const {machine, gpu} = R.index.places[event.place];
    return `to be run on ${[machine, gpu].filter(Boolean).join(", ")}`;
  };
  // The events of a case in a place, the newest first; and the one that a commit began.
  R.eventsOf = (name, metric, places) =>
    R.index.events
      .filter(
        event =>
          R.index.entries[event.benchmark].name === name &&
          event.metric === metric &&
          event.places.some(at => places.includes(at)),
      )
      .sort((a, b) => b.first - a.first);
  R.eventAt = (events, commit) =>
    events.find(event => event.first === commit) ?? events.find(event => event.good < commit && commit <= event.last);
  // Events of one cause as one card: that of the first, and the others behind it.
  R.causeCard = ([first, ...others]) => {
    const card = R.eventCard(first);
    if (others.length)
      card.append(
        h(
          "details",
          {class: "told also"},
          h("summary", null, `and ${R.text.counted(others.length, "more change")} in the same commits`),
          h(
            "ul",
            null,
            others.map(event =>
              h(
                "li",
                {data: {link: R.eventLink(event)}},
                h("a", {class: "mono name", href: R.eventLink(event)}, R.name(event.cases > 1 ? R.index.entries[event.benchmark].name : event.case)),
                " ",
                h("span", {class: "soft small"}, R.metric(event.metric)),
                " ",
                R.moved(event.ratio, R.kindOf(event)),
                " ",
                R.tag(event.state),
              ),
            ),
          ),
        ),
      );
    return card;
  };
  // What counts, in numbers: "+72.4 % (+65.0 … +80.0), counts from +5 %".
  const howSure = event =>
    event.ratio !== null &&
    h(
      "div",
      {class: "soft small"},
      `${event.low === event.high ? "exact" : `95 %: ${R.text.interval(event.low, event.high)}`},`,
      h("br", null),
      `counts from ${R.countsFrom(event)}`,
    );
  const lostAgain = event =>
    event.moved === "regressed" &&
    [event.state === "relapsed" && "improvement lost again", event.undoes && `back at the level of ${R.commitName(event.undoes[0])}`]
      .filter(Boolean)
      .join(": ");
  R.eventCard = event => {
    const sparkRow =
      R.index.rows.find(
        row =>
          row.benchmark === event.benchmark &&
          row.metric === event.metric &&
          row.place === event.place &&
          row.params === event.params,
      ) ??
      R.index.rows.find(
        row => row.benchmark === event.benchmark && row.metric === event.metric && row.place === event.place,
      );
    const name = R.index.entries[event.benchmark].name;
    return h(
      "article",
      {class: "event", data: {link: R.eventLink(event), event: event.id}},
      h(
        "div",
        null,
        h("a", {class: "mono name", href: R.eventLink(event)}, R.name(event.cases > 1 ? name : event.case)),
        h("div", {class: "soft"}, [R.metric(event.metric), R.reach(event)].filter(Boolean).join(" · ")),
        h(
          "div",
          {class: "soft"},
          R.tag(event.state),
          " ",
          event.state === "open" ? `for ${R.text.counted(R.index.commits.length - event.first, "measured commit")}` : "",
          " ",
          R.small(event, event.threshold),
        ),
        [...event.reasons, lostAgain(event), event.note].filter(Boolean).map(words => h("div", {class: "soft small"}, words)),
        acknowledged(event),
      ),
      h("div", {class: "wide"}, sparkRow && R.spark({...sparkRow, changed: event.first, status: R.kindOf(event)}, 240, 44)),
      h(
        "div",
        null,
        R.moved(event.ratio, R.kindOf(event), true),
        R.whisker(event),
        howSure(event),
        h(
          "div",
          {class: "soft"},
          `${R.text.value(event.before, event.unit)} → ${R.text.value(event.after, event.unit)}`,
        ),
      ),
      h(
        "div",
        null,
        shiftOf(event) ? shifted(event, shiftOf(event)) : blamed(event),
        suspects(event),
        h(
          "div",
          {class: "actions"},
          Object.entries(event.commands).map(([word, text]) => R.copyButton(word, text, measures(word) && where(event))),
        ),
      ),
      R.account.told(event),
    );
  };
})(regress);

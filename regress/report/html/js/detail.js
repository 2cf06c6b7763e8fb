// What stands behind a chart: its change points and values as tables, and ticks where a case is measured differently.
(R => {
  const {h, text} = R;
  const {label} = R.choice;

  const changes = (shard, now) => {
    const rows = now.lines
      .flatMap(line => line.changes.map(change => ({line, change})))
      .sort((a, b) => b.change.first - a.change.first);
    if (!rows.length) return null;
    const commit = at => R.index.commits[R.commitAt.get(shard.commits[at])];
    const opened = each =>
      R.link("benchmark", shard.name, {...Object.fromEntries(R.state.query), change: commit(each.change.first).sha});
    return h(
      "section",
      null,
      h("h2", null, "Change points"),
      R.table({
        rows,
        caption: "Change points",
        name: "changes",
        link: opened,
        columns: [
          {
            key: "first",
            label: "First commit",
            value: each => commit(each.change.first).sha,
            cell: each => [
              R.commitLink(commit(each.change.first)),
              " ",
              commit(each.change.first).subject.slice(0, 120),
              h(
                "div",
                {class: "soft small"},
                R.by(commit(each.change.first).author, text.date(commit(each.change.first).date)),
              ),
              each.change.told &&
                h("div", {class: "small"}, R.account.line(each.change.told, shard.name, now.name, each.line.metric)),
            ],
          },
          ...(now.lines.length > 1
            ? [
                {
                  key: "place",
                  label: "Where",
                  value: each => label(each.line.place),
                  cell: each => label(each.line.place),
                },
              ]
            : []),
          {
            key: "change",
            label: "Change",
            num: true,
            value: each => each.change.ratio,
            cell: each => h("a", {href: opened(each)}, R.moved(each.change.ratio, R.kindOf(each.change))),
          },
          {
            key: "interval",
            label: "95 % interval",
            num: true,
            hide: true,
            value: each => text.interval(each.change.low, each.change.high),
            cell: each =>
              each.change.low === each.change.high ? "exact" : text.interval(each.change.low, each.change.high),
          },
          {
            key: "values",
            label: "From, to",
            num: true,
            hide: true,
            value: each => each.change.after,
            cell: each =>
              `${text.value(each.change.before, each.line.unit)} → ${text.value(each.change.after, each.line.unit)}`,
          },
          {
            key: "state",
            label: "State",
            value: each => each.change.state,
            cell: each => [
              R.tag(each.change.state === "confirmed" ? each.change.moved : each.change.state),
              h("span", {class: "soft small"}, " ", R.small(each.change, each.line.threshold)),
              each.change.reasons.map(one => h("div", {class: "soft small"}, one)),
            ],
          },
        ],
      }).node,
    );
  };
  const values = (shard, now) => {
    const rows = () =>
      now.lines
        .flatMap(line => [
          ...line.at.map((at, k) => ({line, at, k, failure: ""})),
          ...line.failures.map(([at, failure]) => ({line, at, k: -1, failure})),
        ])
        .sort((a, b) => R.commitAt.get(shard.commits[b.at]) - R.commitAt.get(shard.commits[a.at]));
    const commit = each => R.index.commits[R.commitAt.get(shard.commits[each.at])],
      of = (each, column) => (each.k < 0 ? null : each.line[column][each.k]);
    const details = h("details", null, h("summary", null, "The chart as a table"));
    details.addEventListener("toggle", () => {
      if (!details.open || details.children.length > 1) return;
      const table = R.table({
        rows: rows(),
        caption: "Values of the chart",
        name: shard.name,
        columns: [
          {
            key: "commit",
            label: "Commit",
            value: each => commit(each).sha,
            cell: each => [R.commitLink(commit(each)), " ", commit(each).subject.slice(0, 100)],
          },
          {
            key: "author",
            value: each => commit(each).author,
            label: "Author",
            hide: true,
            cell: each => commit(each).author,
          },
          {
            key: "date",
            label: "Date",
            hide: true,
            value: each => new Date(commit(each).date * 1000).toISOString(),
            cell: each => text.date(commit(each).date),
          },
          ...(now.lines.length > 1
            ? [
                {
                  key: "place",
                  label: "Where",
                  value: each => label(each.line.place),
                  cell: each => label(each.line.place),
                },
              ]
            : []),
          {
            key: "value",
            label: R.metric(now.metric),
            num: true,
            value: each => of(each, "values"),
            cell: each => (each.k < 0 ? R.tag("failed", each.failure) : text.value(of(each, "values"), each.line.unit)),
          },
          {
            key: "low",
            label: "Low",
            num: true,
            hide: true,
            value: each => of(each, "lows"),
            cell: each => text.value(of(each, "lows"), each.line.unit),
          },
          {
            key: "high",
            label: "High",
            num: true,
            hide: true,
            value: each => of(each, "highs"),
            cell: each => text.value(of(each, "highs"), each.line.unit),
          },
          {
            key: "rounds",
            label: "Rounds",
            num: true,
            value: each => (typeof of(each, "rounds") === "object" ? of(each, "rounds")?.length : of(each, "rounds")),
            cell: each =>
              String(
                typeof of(each, "rounds") === "object"
                  ? (of(each, "rounds")?.length ?? "")
                  : (of(each, "rounds") ?? ""),
              ),
          },
        ],
      });
      details.append(table.node, table.exports);
    });
    return details;
  };

  // The lines, with a tick where a change stands at a commit since which the case is measured differently.
  const noted = (shard, params, lines) =>
    lines.map(line => {
      const notes = R.eventsOf(shard.name, line.metric, [R.placeOf.get(line.place)])
        .filter(each => each.note && each.params === params)
        .map(each => [shard.commits.indexOf(R.index.commits[each.first].sha), each.note]);
      return {...line, ticks: [...line.ticks, ...notes]};
    });

  R.detail = {changes, values, noted};
})(regress);

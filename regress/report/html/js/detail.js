// What stands behind a chart: its change points and values as tables, and ticks where a case is measured differently.
(R => {
  const {h, text} = R;
  const {label} = R.choice;

  const changes = (shard, view) => {
    const rows = view.lines
      .flatMap(line => line.changes.map(change => ({line, change})))
      .sort((a, b) => b.change.first - a.change.first);
    if (!rows.length) return null;
    const commit = at => R.index.commits[R.commitAt.get(shard.commits[at])];
    const opened = row =>
      R.link("benchmark", shard.name, {...Object.fromEntries(R.state.query), change: commit(row.change.first).sha});
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
            value: row => commit(row.change.first).sha,
            cell: row => [
              R.commitLink(commit(row.change.first)),
              " ",
              commit(row.change.first).subject.slice(0, 120),
              h(
                "div",
                {class: "soft small"},
                R.by(commit(row.change.first).author, text.date(commit(row.change.first).date)),
              ),
              row.change.told &&
                h("div", {class: "small"}, R.account.line(row.change.told, shard.name, view.name, row.line.metric)),
            ],
          },
          ...(view.lines.length > 1
            ? [
                {
                  key: "place",
                  label: "Where",
                  value: row => label(row.line.place),
                  cell: row => label(row.line.place),
                },
              ]
            : []),
          {
            key: "change",
            label: "Change",
            num: true,
            value: row => row.change.ratio,
            cell: row => h("a", {href: opened(row)}, R.moved(row.change.ratio, R.kindOf(row.change))),
          },
          {
            key: "interval",
            label: "95 % interval",
            num: true,
            hide: true,
            value: row => text.interval(row.change.low, row.change.high),
            cell: row =>
              row.change.low === row.change.high ? "exact" : text.interval(row.change.low, row.change.high),
          },
          {
            key: "values",
            label: "From, to",
            num: true,
            hide: true,
            value: row => row.change.after,
            cell: row =>
              `${text.value(row.change.before, row.line.unit)} → ${text.value(row.change.after, row.line.unit)}`,
          },
          {
            key: "state",
            label: "State",
            value: row => row.change.state,
            cell: row => [
              R.tag(row.change.state === "confirmed" ? row.change.moved : row.change.state),
              h("span", {class: "soft small"}, " ", R.small(row.change, row.line.threshold)),
              row.change.reasons.map(reason => h("div", {class: "soft small"}, reason)),
            ],
          },
        ],
      }).node,
    );
  };
  const values = (shard, view) => {
    const rows = () =>
      view.lines
        .flatMap(line => [
          ...line.at.map((at, k) => ({line, at, k, failure: ""})),
          ...line.failures.map(([at, failure]) => ({line, at, k: -1, failure})),
        ])
        .sort((a, b) => R.commitAt.get(shard.commits[b.at]) - R.commitAt.get(shard.commits[a.at]));
    const commit = row => R.index.commits[R.commitAt.get(shard.commits[row.at])],
      of = (row, column) => (row.k < 0 ? null : row.line[column][row.k]);
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
            value: row => commit(row).sha,
            cell: row => [R.commitLink(commit(row)), " ", commit(row).subject.slice(0, 100)],
          },
          {
            key: "author",
            value: row => commit(row).author,
            label: "Author",
            hide: true,
            cell: row => commit(row).author,
          },
          {
            key: "date",
            label: "Date",
            hide: true,
            value: row => new Date(commit(row).date * 1000).toISOString(),
            cell: row => text.date(commit(row).date),
          },
          ...(view.lines.length > 1
            ? [
                {
                  key: "place",
                  label: "Where",
                  value: row => label(row.line.place),
                  cell: row => label(row.line.place),
                },
              ]
            : []),
          {
            key: "value",
            label: R.metric(view.metric),
            num: true,
            value: row => of(row, "values"),
            cell: row => (row.k < 0 ? R.tag("failed", row.failure) : text.value(of(row, "values"), row.line.unit)),
          },
          {
            key: "low",
            label: "Low",
            num: true,
            hide: true,
            value: row => of(row, "lows"),
            cell: row => text.value(of(row, "lows"), row.line.unit),
          },
          {
            key: "high",
            label: "High",
            num: true,
            hide: true,
            value: row => of(row, "highs"),
            cell: row => text.value(of(row, "highs"), row.line.unit),
          },
          {
            key: "rounds",
            label: "Rounds",
            num: true,
            value: row => (typeof of(row, "rounds") === "object" ? of(row, "rounds")?.length : of(row, "rounds")),
            cell: row =>
              String(
                typeof of(row, "rounds") === "object"
                  ? (of(row, "rounds")?.length ?? "")
                  : (of(row, "rounds") ?? ""),
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
        .filter(event => event.note && event.params === params)
        .map(event => [shard.commits.indexOf(R.index.commits[event.first].sha), event.note]);
      return {...line, ticks: [...line.ticks, ...notes]};
    });

  R.detail = {changes, values, noted};
})(regress);

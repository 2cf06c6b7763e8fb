// The rows of the overview: a case and metric, in as many places as it was measured in.
(R => {
  const {h, text} = R;

  // Rows of one case and metric in several places, the worst first.
  R.grouped = rows => {
    const groups = new Map();
    for (const row of rows) {
      const key = `${row.benchmark}\n${row.metric}\n${row.cases > 1 ? "" : row.params}`;
      if (groups.has(key)) groups.get(key).push(row);
      else groups.set(key, [row]);
    }
    const list = [...groups.values()];
    for (const group of list)
      if (group.length > 1)
        group.sort((a, b) => R.urgency(a) - R.urgency(b));
    return list;
  };
  R.rowLink = row =>
    R.link("benchmark", row.name, {
      c: row.params,
      metric: row.metric,
      at: R.index.places.length > 1 ? R.index.places[row.place].id : "",
    });
  R.rowName = row => [
    h(
      "a",
      {class: "mono name", href: R.rowLink(row)},
      R.name(row.name),
      row.cases > 1 ? "" : row.params && h("span", {class: "params"}, R.name(`(${row.params})`)),
    ),
    " ",
    h("span", {class: "soft small"}, R.metric(row.metric), row.cases > 1 && ` · worst of ${row.cases} cases`),
  ];
  const statuses = group => {
    const count = new Map();
    for (const row of group) count.set(row.status, [...(count.get(row.status) ?? []), R.index.places[row.place].label]);
    return [...count].map(([status, where]) => [
      R.tag(
        status,
        group.length > 1 ? `${where.length}/${group.length}` : "",
        [group.find(row => row.status === status).why, group.length > 1 ? where.join(", ") : ""]
          .filter(Boolean)
          .join("\n") || null,
      ),
      " ",
    ]);
  };
  const columns = reference => [
    {
      key: "benchmark",
      label: "Benchmark",
      value: group => `${group[0].name} ${group[0].params}`,
      out: group => group[0].name + (group[0].params && `(${group[0].params})`),
      cell: group => R.rowName(group[0]),
    },
    {key: "metric", value: group => group[0].metric, hidden: true},
    {key: "history", label: "History", hide: true, cell: group => R.spark(group[0])},
    {
      key: "latest",
      label: "Latest",
      num: true,
      value: group => group[0].latest,
      cell: group => text.value(group[0].latest, group[0].unit),
    },
    {
      key: "since",
      label: `Since ${reference}`,
      num: true,
      hide: true,
      value: group => group[0].since,
      cell: group => {
        const {since, better, status, doubt} = group[0],
          small = since === null || Math.abs(since - 1) < 0.005;
        if (doubt) return h("span", {class: "soft", title: doubt}, `${text.change(since)} ?`);
        return small
          ? h(
              "span",
              {class: "soft", title: since === null ? "not measured alike at both ends" : null},
              since === null ? text.MISSING : "0 %",
            )
          : h(
              "span",
              {class: ["unchanged", "undecided", "gone"].includes(status) ? "" : R.tone(R.moveOf(since, better))},
              text.change(since),
            );
      },
    },
    {
      key: "change",
      label: "Change",
      num: true,
      hide: true,
      value: group => group[0].change,
      cell: group => {
        const {change, changed, better, status} = group[0];
        return changed === null
          ? h("span", {class: "soft"}, "none")
          : [
              R.moved(change, R.kindOf({state: status, moved: R.moveOf(change, better)})),
              h("div", {class: "soft mono small", title: R.index.commits[changed].subject}, R.commitName(changed)),
            ];
      },
    },
    {
      key: "noise",
      label: "Noise",
      num: true,
      hide: true,
      value: group => group[0].noise,
      cell: group => h("span", {class: "soft"}, text.noise(group[0].noise)),
    },
    {
      key: "status",
      label: "Status",
      value: group => R.urgency(group[0]),
      out: group => group[0].status,
      cell: statuses,
    },
    {
      key: "places",
      value: group => group.map(row => `${R.index.places[row.place].label}: ${row.status}`).join("; "),
      hidden: true,
    },
  ];

  R.columns = columns;
})(regress);

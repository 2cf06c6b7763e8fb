// The tables of the page: verdicts on two sides, the operations, the entries one by one.
(R => {
  const {h, text} = R;
  const size = each => Math.abs(Math.log(each.ratio || 1));

  const comparison = data => {
    if (!data.comparisons.length) return null;
    const rows = [...data.comparisons].sort(
      (a, b) => R.VERDICTS.indexOf(a.verdict) - R.VERDICTS.indexOf(b.verdict) || size(b) - size(a),
    );
    const columns = [
      {
        key: "operation",
        label: "operation",
        value: each => each.case,
        cell: each => [
          h("span", {class: "mono name"}, R.name(each.case)),
          h("div", {class: "small soft"}, R.metric(each.metric)),
        ],
      },
      {key: "metric", hidden: true, value: each => each.metric},
      {key: "verdict", label: "verdict", value: each => each.verdict, cell: each => R.tag(each.verdict)},
      {
        key: "base",
        label: "base",
        num: true,
        hide: true,
        value: each => each.base,
        cell: each => text.value(each.base, each.unit),
      },
      {
        key: "head",
        label: "head",
        num: true,
        hide: true,
        value: each => each.head,
        cell: each => text.value(each.head, each.unit),
      },
      {key: "change", label: "change", num: true, value: each => each.ratio, cell: each => text.change(each.ratio)},
      {
        key: "interval",
        label: "95 % interval",
        num: true,
        hide: true,
        value: each => each.low,
        cell: each => text.interval(each.low ?? null, each.high ?? null),
      },
      {
        key: "rounds",
        label: "rounds",
        num: true,
        hide: true,
        value: each => each.n.join("+"),
        cell: each => each.n.join("+"),
      },
      {
        key: "why",
        label: "why",
        hide: true,
        value: each => each.reasons.join("; "),
        cell: each => h("span", {class: "small soft"}, each.reasons.join("; ")),
      },
    ];
    const tableOf = (some, name) => {
      const table = R.table({caption: `Verdicts: ${name}`, name: `comparison-${name}`, rows: some, columns});
      return [table.node, table.exports];
    };
    const quiet = rows.filter(each => each.verdict === "unchanged" || !each.gates),
      told = rows.filter(each => !quiet.includes(each));
    return h(
      "section",
      {id: "comparison"},
      h("h2", null, "Against the other side"),
      h("p", {class: "soft"}, data.plan),
      data.warnings.map(words => h("p", {class: "banner"}, words)),
      told.length ? tableOf(told, "changed") : h("p", null, "No operation has changed."),
      quiet.length > 0 &&
        h(
          "details",
          null,
          h("summary", null, `${quiet.length} unchanged, or of metrics that do not gate`),
          tableOf(quiet, "unchanged"),
        ),
    );
  };

  const share = (each, of) => (typeof of === "number" && each.span_s > 0 ? of / each.span_s : null);
  const COLUMNS = [
    {
      key: "operation",
      label: "operation",
      value: each => each.operation,
      cell: each => h("span", {class: "mono name"}, R.name(each.operation)),
    },
    {key: "device", label: "device", value: each => each.device, cell: each => each.device},
    {key: "calls", label: "calls", num: true, value: each => each.calls, cell: each => String(each.calls)},
    {key: "share", label: "share", num: true, value: each => each.share, cell: each => text.percent(each.share)},
    {key: "self_s", label: "self", num: true, value: each => each.self_s, cell: each => text.value(each.self_s, "s")},
    {
      key: "total_s",
      label: "total",
      num: true,
      hide: true,
      value: each => each.total_s,
      cell: each => text.value(each.total_s, "s"),
    },
    {key: "mean_s", label: "mean", num: true, value: each => each.mean_s, cell: each => text.value(each.mean_s, "s")},
    {
      key: "max_s",
      label: "longest",
      num: true,
      hide: true,
      value: each => each.max_s,
      cell: each => text.value(each.max_s, "s"),
    },
    {
      key: "kernels",
      label: "kernels",
      num: true,
      hide: true,
      value: each => share(each, each.busy_s),
      cell: each => text.percent(share(each, each.busy_s)),
    },
    {
      key: "copies",
      label: "copies",
      num: true,
      hide: true,
      value: each => share(each, each.transfer_s),
      cell: each => text.percent(share(each, each.transfer_s)),
    },
    {
      key: "idle",
      label: "idle",
      num: true,
      hide: true,
      value: each => share(each, each.idle_s),
      cell: each => text.percent(share(each, each.idle_s)),
    },
    {
      key: "host_s",
      label: "host",
      num: true,
      hide: true,
      value: each => each.host_s / each.calls,
      cell: each => text.value(each.host_s / each.calls, "s"),
    },
    {
      key: "peak_bytes",
      label: "peak",
      num: true,
      hide: true,
      value: each => each.peak_bytes,
      cell: each => text.value(each.peak_bytes, "B"),
    },
    {
      key: "bandwidth",
      label: "bandwidth",
      num: true,
      hide: true,
      value: each => each.bandwidth_bytes_s,
      cell: each => (each.bandwidth_bytes_s ? `${text.number(each.bandwidth_bytes_s / 1e9)} GB/s` : text.MISSING),
    },
  ];
  const operations = document =>
    R.tabled("Operations", {
      columns: COLUMNS,
      rows: document.operations,
      caption: "Totals of every operation",
      name: "operations",
    });
  const entries = document => {
    const count = text.counted(document.entries.length, "entry", "entries"),
      details = h("details", {class: "entries"}, h("summary", null, `The ${count} one by one`));
    details.addEventListener(
      "toggle",
      () => {
        const rows = [...document.entries].sort((a, b) => a.start_s - b.start_s);
        const table = R.table({
          caption: "Entries in the order in which they began",
          name: "entries",
          rows,
          columns: [
            {
              key: "operation",
              label: "operation",
              value: each => each.operation,
              cell: each => h("span", {class: "mono"}, `${"· ".repeat(Math.min(8, each.depth))}${each.operation}`),
            },
            {
              key: "start_s",
              label: "start",
              num: true,
              value: each => each.start_s,
              cell: each => text.value(each.start_s, "s"),
            },
            {
              key: "duration_s",
              label: "duration",
              num: true,
              value: each => each.duration_s,
              cell: each => text.value(each.duration_s, "s"),
            },
            {key: "device", label: "device", value: each => each.device, cell: each => each.device},
            {key: "thread", label: "thread", hide: true, value: each => each.thread, cell: each => each.thread},
            {
              key: "details",
              label: "details",
              hide: true,
              value: each => JSON.stringify(each.details),
              cell: each => h("span", {class: "small soft"}, R.details(each).join(", ")),
            },
          ],
        });
        details.append(table.node, table.exports);
      },
      {once: true},
    );
    return document.entries.length > 0 && details;
  };

  R.profileTables = {comparison, operations, entries};
})(regress);

// The tables of the page: verdicts on two sides, the operations, the entries one by one.
(R => {
  const {h, text} = R;
  const size = row => Math.abs(Math.log(row.ratio || 1));

  const comparison = data => {
    if (!data.comparisons.length) return null;
    const rows = [...data.comparisons].sort(
      (a, b) => R.VERDICTS.indexOf(a.verdict) - R.VERDICTS.indexOf(b.verdict) || size(b) - size(a),
    );
    const columns = [
      {
        key: "operation",
        label: "operation",
        value: row => row.case,
        cell: row => [
          h("span", {class: "mono name"}, R.name(row.case)),
          h("div", {class: "small soft"}, R.metric(row.metric)),
        ],
      },
      {key: "metric", hidden: true, value: row => row.metric},
      {key: "verdict", label: "verdict", value: row => row.verdict, cell: row => R.tag(row.verdict)},
      {
        key: "base",
        label: "base",
        num: true,
        hide: true,
        value: row => row.base,
        cell: row => text.value(row.base, row.unit),
      },
      {
        key: "head",
        label: "head",
        num: true,
        hide: true,
        value: row => row.head,
        cell: row => text.value(row.head, row.unit),
      },
      {key: "change", label: "change", num: true, value: row => row.ratio, cell: row => text.change(row.ratio)},
      {
        key: "interval",
        label: "95 % interval",
        num: true,
        hide: true,
        value: row => row.low,
        cell: row => text.interval(row.low ?? null, row.high ?? null),
      },
      {
        key: "rounds",
        label: "rounds",
        num: true,
        hide: true,
        value: row => row.n.join("+"),
        cell: row => row.n.join("+"),
      },
      {
        key: "why",
        label: "why",
        hide: true,
        value: row => row.reasons.join("; "),
        cell: row => h("span", {class: "small soft"}, row.reasons.join("; ")),
      },
    ];
    const tableOf = (some, name) => {
      const table = R.table({caption: `Verdicts: ${name}`, name: `comparison-${name}`, rows: some, columns});
      return [table.node, table.exports];
    };
    const quiet = rows.filter(row => row.verdict === "unchanged" || !row.gates),
      told = rows.filter(row => !quiet.includes(row));
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

  const share = (operation, part) => (typeof part === "number" && operation.span_s > 0 ? part / operation.span_s : null);
  const COLUMNS = [
    {
      key: "operation",
      label: "operation",
      value: operation => operation.operation,
      cell: operation => h("span", {class: "mono name"}, R.name(operation.operation)),
    },
    {key: "device", label: "device", value: operation => operation.device, cell: operation => operation.device},
    {key: "calls", label: "calls", num: true, value: operation => operation.calls, cell: operation => String(operation.calls)},
    {
      key: "share",
      label: "share",
      num: true,
      value: operation => operation.share,
      cell: operation => text.percent(operation.share),
    },
    {
      key: "self_s",
      label: "self",
      num: true,
      value: operation => operation.self_s,
      cell: operation => text.value(operation.self_s, "s"),
    },
    {
      key: "total_s",
      label: "total",
      num: true,
      hide: true,
      value: operation => operation.total_s,
      cell: operation => text.value(operation.total_s, "s"),
    },
    {
      key: "mean_s",
      label: "mean",
      num: true,
      value: operation => operation.mean_s,
      cell: operation => text.value(operation.mean_s, "s"),
    },
    {
      key: "max_s",
      label: "longest",
      num: true,
      hide: true,
      value: operation => operation.max_s,
      cell: operation => text.value(operation.max_s, "s"),
    },
    {
      key: "kernels",
      label: "kernels",
      num: true,
      hide: true,
      value: operation => share(operation, operation.busy_s),
      cell: operation => text.percent(share(operation, operation.busy_s)),
    },
    {
      key: "copies",
      label: "copies",
      num: true,
      hide: true,
      value: operation => share(operation, operation.transfer_s),
      cell: operation => text.percent(share(operation, operation.transfer_s)),
    },
    {
      key: "idle",
      label: "idle",
      num: true,
      hide: true,
      value: operation => share(operation, operation.idle_s),
      cell: operation => text.percent(share(operation, operation.idle_s)),
    },
    {
      key: "host_s",
      label: "host",
      num: true,
      hide: true,
      value: operation => operation.host_s / operation.calls,
      cell: operation => text.value(operation.host_s / operation.calls, "s"),
    },
    {
      key: "peak_bytes",
      label: "peak",
      num: true,
      hide: true,
      value: operation => operation.peak_bytes,
      cell: operation => text.value(operation.peak_bytes, "B"),
    },
    {
      key: "bandwidth",
      label: "bandwidth",
      num: true,
      hide: true,
      value: operation => operation.bandwidth_bytes_s,
      cell: operation =>
        operation.bandwidth_bytes_s ? `${text.number(operation.bandwidth_bytes_s / 1e9)} GB/s` : text.MISSING,
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
              value: entry => entry.operation,
              cell: entry => h("span", {class: "mono"}, `${"· ".repeat(Math.min(8, entry.depth))}${entry.operation}`),
            },
            {
              key: "start_s",
              label: "start",
              num: true,
              value: entry => entry.start_s,
              cell: entry => text.value(entry.start_s, "s"),
            },
            {
              key: "duration_s",
              label: "duration",
              num: true,
              value: entry => entry.duration_s,
              cell: entry => text.value(entry.duration_s, "s"),
            },
            {key: "device", label: "device", value: entry => entry.device, cell: entry => entry.device},
            {key: "thread", label: "thread", hide: true, value: entry => entry.thread, cell: entry => entry.thread},
            {
              key: "details",
              label: "details",
              hide: true,
              value: entry => JSON.stringify(entry.details),
              cell: entry => h("span", {class: "small soft"}, R.details(entry).join(", ")),
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

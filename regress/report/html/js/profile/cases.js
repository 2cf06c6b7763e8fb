// Cases that were profiled, programs, and what other profilers have recorded: of each bottlenecks, and its tables.
(R => {
  const {h, text} = R;
  const share = (part, whole) => (typeof part === "number" && whole > 0 ? part / whole : null);
  const size = each => (each ? each.join(" × ") : "");
  const rate = each => (typeof each === "number" ? `${text.number(each / 1e9)} GB/s` : text.MISSING);

  // Columns of numbers, by what they are of.
  const column = (key, label, value, cell, more = {}) => ({key, label, num: true, value, cell: each => cell(value(each)), ...more});
  const percent = each => (typeof each === "number" ? text.percent(Math.round(each * 1e6) / 1e6) : text.MISSING);
  // Times have whole nanoseconds: what is far below is what is left of subtracting them.
  const seconds = each => (typeof each === "number" ? text.value(Math.round(each * 1e10) / 1e10, "s") : text.MISSING);
  const bytes = each => (typeof each === "number" ? text.value(each, "B") : text.MISSING);
  const count = each => (typeof each === "number" ? (Number.isInteger(each) ? String(each) : text.number(each)) : text.MISSING);
  const HIDE = {hide: true};
  const words = (key, label, value, more = {}) => ({key, label, value, cell: value, ...more});
  // The whole name goes with what is exported, and is told where the pointer rests.
  const named = (label, name, whole, below = () => "") => ({
    key: label,
    label,
    value: whole,
    cell: each => [
      h("span", {class: "mono name whose", title: whole(each)}, R.name(name(each))),
      below(each) && h("div", {class: "small soft"}, below(each)),
    ],
  });
  // The case that a table is of, where there are several.
  let whose = "";
  // A column of which nothing is known is left out.
  const tabled = (title, rows, every, about) => {
    const caption = about + whose;
    const columns = every.filter(column => rows.some(row => ![null, undefined, ""].includes(column.value(row))));
    return rows.length > 0 && R.tabled(title, {columns, rows, caption, name: title.toLowerCase().replaceAll(" ", "-")});
  };

  const bottleneck = found =>
    found &&
    h(
      "section",
      null,
      h("h2", null, "Bottlenecks"),
      h("p", null, h("span", {class: "tag"}, found.kind === "unknown" ? "cause unknown" : found.kind), ` ${found.why}`),
      h("p", null, `What to try: ${found.advice}`),
    );
  const figures = all =>
    h(
      "dl",
      {class: "totals"},
      all
        .filter(Boolean)
        .map(([name, value, note]) =>
          h("div", null, h("dt", null, name), h("dd", null, h("span", {class: "big"}, value), h("span", {class: "soft small"}, note))),
        ),
    );
  const title = each => (each.params.length ? `${each.name}(${each.params.join(", ")})` : each.name);
  const binding = found => (found && found.kind !== "unknown" ? `, ${found.kind}` : "");
  const failed = each =>
    each.failure && h("p", {class: "banner bad"}, `${each.failure.kind === "error" ? "" : `${each.failure.kind}: `}${each.failure.message}`);
  const notes = each => each.flags.map(line => h("p", {class: "banner"}, line));
  const kept = (word, file) => file && h("p", {class: "small soft"}, `${word} `, h("span", {class: "mono"}, R.name(file)));

  // -- where the time of a call goes
  const labelOf = (found, name) => [...found.kernels, ...found.copies].find(each => each.name === name)?.short || name;
  const totals = (found, whole) => {
    const sums = found.totals,
      timed = sums.span_s > 0,
      of = part => (timed ? `${percent(share(part, sums.span_s))} of ${whole}` : "added up");
    return figures([
      found.call_s > 0 && ["a call", seconds(found.call_s), "without the profiler"],
      timed && ["under the profiler", seconds(sums.span_s), found.calls > 1 ? `mean of ${found.calls}` : whole],
      found.on_device && ["device busy", seconds(sums.device_busy_s), of(sums.device_busy_s)],
      found.on_device && timed && ["device idle", seconds(sums.idle_s), of(sums.idle_s)],
      ["host busy", seconds(sums.host_busy_s), timed ? `${seconds(sums.overlap_s)} of it while the device was` : "in CUDA, without waiting"],
      ["host waiting", seconds(sums.waiting_s), text.counted(Math.round(sums.synchronizations), "synchronization")],
      found.on_device && ["launches", count(sums.launches), `and ${text.counted(Math.round(sums.copies), "copy", "copies")}`],
      found.memory && ["peak memory", bytes(found.memory.peak_bytes), "of the device"],
    ]);
  };
  const kernels = (found, whole) =>
    tabled(
      "Kernels",
      found.kernels,
      [
        named("kernel", each => each.short || each.name, each => each.name),
        column("launches", "launches", each => each.launches, count),
        column("seconds", "device", each => each.seconds, seconds),
        column("share", "share", each => share(each.seconds, whole), percent),
        column("host_s", "host", each => each.host_s || null, seconds, HIDE),
        words("grid", "grid", each => size(each.grid), HIDE),
        words("block", "block", each => size(each.block), HIDE),
        column("registers", "registers", each => each.registers, count, HIDE),
        column("shared_bytes", "shared", each => each.shared_bytes, bytes, HIDE),
        column("occupancy", "occupancy", each => each.occupancy, percent, HIDE),
        words("operator", "in", each => each.operators[0] ?? "", HIDE),
      ],
      "Kernels, the longest first",
    );
  const copies = (found, whole) =>
    tabled(
      "Copies",
      found.copies,
      [
        named("copy", each => each.name, each => each.name),
        column("times", "times", each => each.launches, count),
        column("seconds", "device", each => each.seconds, seconds),
        column("share", "share", each => share(each.seconds, whole), percent),
        column("bytes", "bytes", each => each.bytes || null, bytes),
        column("bytes_s", "throughput", each => (each.bytes && each.seconds > 0 ? each.bytes / each.seconds : null), rate),
      ],
      "Copies and memsets by their direction",
    );
  const host = found => [
    tabled(
      "Components",
      found.parts,
      [
        named("component", each => each.name, each => each.name),
        column("uses", "uses", each => each.uses, count),
        column("device_s", "device", each => each.device_s, seconds),
        column("host_s", "host", each => each.host_s, seconds),
        column("launches", "launches", each => each.launches, count, HIDE),
      ],
      "Parts marked by the program",
    ),
    tabled(
      "Operators",
      found.operators,
      [
        named("operator", each => each.name, each => each.name),
        column("calls", "calls", each => each.calls, count),
        column("own_device_s", "device, alone", each => each.own_device_s, seconds),
        column("own_host_s", "host, alone", each => each.own_host_s, seconds),
        column("launches", "launches", each => each.launches, count, HIDE),
      ],
      "Operators without those inside them",
    ),
    tabled(
      "CUDA API",
      found.api_calls,
      [
        named("function", each => each.name, each => each.name),
        column("calls", "calls", each => each.calls, count),
        column("seconds", "host", each => each.seconds, seconds),
        column("mean_s", "each", each => share(each.seconds, each.calls), seconds),
      ],
      "CUDA functions that the host called",
    ),
  ];
  const gaps = found =>
    tabled(
      "Largest gaps",
      found.gaps,
      [
        words("after", "after", each => labelOf(found, each.after) || "the start"),
        words("before", "before", each => labelOf(found, each.before) || "the end"),
        column("duration_s", "idle", each => each.duration_s, seconds),
        words("host", "the host was in", each => each.host || "nothing that is recorded", HIDE),
      ],
      "Times when the device was idle",
    );
  const profiled = found => {
    if (!found.totals) return [h("h1", null, `${title(found)} could not be profiled.`), failed(found)];
    const whole = found.totals.span_s || found.totals.device_busy_s,
      word = found.call_s > 0 || found.host_s > 0 ? "a call" : "the program",
      worst = found.bottleneck;
    return [
      h("h1", null, `${title(found)}${worst ? `: ${labelOf(found, worst.name)}, ${text.percent(worst.share)} of ${found.totals.span_s ? word : "the device's time"}${binding(found.bound)}` : ""}.`),
      failed(found),
      notes(found),
      totals(found, word),
      bottleneck(found.bound),
      kernels(found, whole),
      copies(found, whole),
      host(found),
      gaps(found),
      kept("trace", found.trace),
    ];
  };

  // -- kernels one by one, by Nsight Compute
  const counter = (key, label, cell, more) => column(key, label, each => each.metrics[key], cell, more);
  const launched = ({metrics}) =>
    [
      metrics.grid && `grid ${size(metrics.grid)}`,
      metrics.block && `block ${size(metrics.block)}`,
      typeof metrics.waves === "number" && `${text.number(metrics.waves)} waves`,
      typeof metrics.dram_bytes_s === "number" && `DRAM ${rate(metrics.dram_bytes_s)}`,
    ]
      .filter(Boolean)
      .join(", ");
  const exported = (key, value) => ({key, label: key, value, hidden: true});
  const METERED = [
    named("kernel", each => each.label, each => each.metrics.kernel, launched),
    column("launches", "launches", each => each.launches, count),
    column("seconds", "time", each => (each.metrics.duration_s === null ? null : each.seconds), seconds),
    column("share", "share", each => each.share, percent),
    counter("achieved_occupancy", "occupancy", percent),
    counter("theoretical_occupancy", "at most", percent, HIDE),
    counter("memory_throughput", "memory", percent),
    counter("dram_throughput", "DRAM", percent, HIDE),
    counter("compute_throughput", "compute", percent),
    counter("tensor_use", "tensor", percent, HIDE),
    counter("l1_hit_rate", "L1 hits", percent, HIDE),
    counter("l2_hit_rate", "L2 hits", percent, HIDE),
    counter("registers", "registers", count, HIDE),
    counter("shared_bytes", "shared", bytes, HIDE),
    words("bound", "bound by", each => each.bound.kind.replace("-bound", "")),
    exported("dram_bytes_s", each => each.metrics.dram_bytes_s),
    exported("grid", each => size(each.metrics.grid)),
    exported("block", each => size(each.metrics.block)),
    exported("waves", each => each.metrics.waves),
    exported("advice", each => each.bound.advice),
  ];
  const metered = found => {
    const [first] = found.kernels;
    if (!first) return [h("h1", null, `${title(found)} could not be measured.`), failed(found)];
    const much = typeof first.share === "number" ? `, ${text.percent(first.share)} of the kernels' time` : "";
    return [
      h("h1", null, `${title(found)}: ${first.label}${much}${binding(first.bound)}.`),
      failed(found),
      notes(found),
      bottleneck(first.bound),
      tabled("Kernels", found.kernels, METERED, "Kernels as Nsight Compute measured them, the one that takes longest first"),
      h("p", {class: "small soft"}, "Each kernel ran alone, several times over and with cold caches: its time is not that in a program."),
      kept("report", found.report),
      kept("table", found.table),
    ];
  };

  // -- two cases, one compared with the other
  const difference = ({sides: [base, head], totals: [first, ...rest], causes, kernels, warnings}) => [
    h("h1", null, `${head} against ${base}: ${first[3]}.`),
    causes.map(line => h("p", null, line)),
    warnings.map(line => h("p", {class: "banner"}, line)),
    h(
      "section",
      null,
      h("h2", null, "Difference"),
      h(
        "div",
        {class: "scroll", tabindex: "0", role: "region", "aria-label": "Two cases side by side"},
        h(
          "table",
          {class: "rows"},
          h("caption", {class: "sr"}, "Times and counts of a call of two cases"),
          h("thead", null, h("tr", null, ["of a call", "base", "head", "difference"].map((word, at) => h("th", {scope: "col", class: at ? "n" : null}, word)))),
          h(
            "tbody",
            null,
            [first, ...rest].map(([name, ...cells]) =>
              h("tr", null, h("th", {scope: "row"}, name), cells.map(cell => h("td", {class: "n"}, cell))),
            ),
          ),
        ),
      ),
    ),
    kernels.length > 0 && R.account.kernels({kernels}, "Kernels and copies of both"),
  ];

  const each = (cases, nodes) =>
    cases.map(found => {
      whose = cases.length > 1 ? `: ${title(found)}` : "";
      return nodes(found);
    });
  R.profiledCases = data => [
    data.difference && difference(data.difference),
    ...each(data.profiles, profiled),
    ...each(data.metered, metered),
    data.lede && h("p", {class: "lede"}, data.lede),
    data.warnings.map(line => h("p", {class: "banner"}, line)),
  ];
})(regress);

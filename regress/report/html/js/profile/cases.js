// Cases that were profiled, programs, and what other profilers have recorded: the bottlenecks and the tables of each.
(R => {
  const {h, text} = R;
  const share = (part, whole) => (typeof part === "number" && whole > 0 ? part / whole : null);
  const size = dimensions => (dimensions ? dimensions.join(" × ") : "");
  const rate = bytesPerSecond =>
    typeof bytesPerSecond === "number" ? `${text.number(bytesPerSecond / 1e9)} GB/s` : text.MISSING;

  // A column of numbers, and how numbers of each kind are written.
  const column = (key, label, value, cell, more = {}) => ({
    key,
    label,
    num: true,
    value,
    cell: row => cell(value(row)),
    ...more,
  });
  const percent = fraction => (typeof fraction === "number" ? text.percent(Math.round(fraction * 1e6) / 1e6) : text.MISSING);
  // Times are whole nanoseconds: what is far below one is the rounding error of a subtraction.
  const seconds = time => (typeof time === "number" ? text.value(Math.round(time * 1e10) / 1e10, "s") : text.MISSING);
  const bytes = amount => (typeof amount === "number" ? text.value(amount, "B") : text.MISSING);
  const count = number =>
    typeof number === "number" ? (Number.isInteger(number) ? String(number) : text.number(number)) : text.MISSING;
  const HIDE = {hide: true};
  const words = (key, label, value, more = {}) => ({key, label, value, cell: value, ...more});
  // The whole name is what is exported, and what is shown where the pointer rests.
  const named = (label, name, whole, below = () => "") => ({
    key: label,
    label,
    value: whole,
    cell: row => [
      h("span", {class: "mono name whose", title: whole(row)}, R.name(name(row))),
      below(row) && h("div", {class: "small soft"}, below(row)),
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

  const bottleneck = bound =>
    bound &&
    h(
      "section",
      null,
      h("h2", null, "Bottlenecks"),
      h("p", null, h("span", {class: "tag"}, bound.kind === "unknown" ? "cause unknown" : bound.kind), ` ${bound.why}`),
      h("p", null, `What to try: ${bound.advice}`),
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
  const title = result => (result.params.length ? `${result.name}(${result.params.join(", ")})` : result.name);
  const binding = bound => (bound && bound.kind !== "unknown" ? `, ${bound.kind}` : "");
  const failed = result =>
    result.failure && h("p", {class: "banner bad"}, `${result.failure.kind === "error" ? "" : `${result.failure.kind}: `}${result.failure.message}`);
  const notes = result => result.flags.map(line => h("p", {class: "banner"}, line));
  const kept = (word, file) => file && h("p", {class: "small soft"}, `${word} `, h("span", {class: "mono"}, R.name(file)));

  // -- where the time of a call goes
  const labelOf = (profile, name) => [...profile.kernels, ...profile.copies].find(use => use.name === name)?.short || name;
  const totals = (profile, whole) => {
    const sums = profile.totals,
      timed = sums.span_s > 0,
      of = part => (timed ? `${percent(share(part, sums.span_s))} of ${whole}` : "added up");
    return figures([
      profile.call_s > 0 && ["a call", seconds(profile.call_s), "without the profiler"],
      timed && ["under the profiler", seconds(sums.span_s), profile.calls > 1 ? `mean of ${profile.calls}` : whole],
      profile.on_device && ["device busy", seconds(sums.device_busy_s), of(sums.device_busy_s)],
      profile.on_device && timed && ["device idle", seconds(sums.idle_s), of(sums.idle_s)],
      ["host busy", seconds(sums.host_busy_s), timed ? `${seconds(sums.overlap_s)} of it while the device was` : "in CUDA, without waiting"],
      ["host waiting", seconds(sums.waiting_s), text.counted(Math.round(sums.synchronizations), "synchronization")],
      profile.on_device && ["launches", count(sums.launches), `and ${text.counted(Math.round(sums.copies), "copy", "copies")}`],
      profile.memory && ["peak memory", bytes(profile.memory.peak_bytes), "of the device"],
    ]);
  };
  const kernels = (profile, whole) =>
    tabled(
      "Kernels",
      profile.kernels,
      [
        named("kernel", kernel => kernel.short || kernel.name, kernel => kernel.name),
        column("launches", "launches", kernel => kernel.launches, count),
        column("seconds", "device", kernel => kernel.seconds, seconds),
        column("share", "share", kernel => share(kernel.seconds, whole), percent),
        column("host_s", "host", kernel => kernel.host_s || null, seconds, HIDE),
        words("grid", "grid", kernel => size(kernel.grid), HIDE),
        words("block", "block", kernel => size(kernel.block), HIDE),
        column("registers", "registers", kernel => kernel.registers, count, HIDE),
        column("shared_bytes", "shared", kernel => kernel.shared_bytes, bytes, HIDE),
        column("occupancy", "occupancy", kernel => kernel.occupancy, percent, HIDE),
        words("operator", "in", kernel => kernel.operators[0] ?? "", HIDE),
      ],
      "Kernels, the longest first",
    );
  const copies = (profile, whole) =>
    tabled(
      "Copies",
      profile.copies,
      [
        named("copy", copy => copy.name, copy => copy.name),
        column("times", "times", copy => copy.launches, count),
        column("seconds", "device", copy => copy.seconds, seconds),
        column("share", "share", copy => share(copy.seconds, whole), percent),
        column("bytes", "bytes", copy => copy.bytes || null, bytes),
        column("bytes_s", "throughput", copy => (copy.bytes && copy.seconds > 0 ? copy.bytes / copy.seconds : null), rate),
      ],
      "Copies and memsets by their direction",
    );
  const host = profile => [
    tabled(
      "Components",
      profile.parts,
      [
        named("component", part => part.name, part => part.name),
        column("uses", "uses", part => part.uses, count),
        column("device_s", "device", part => part.device_s, seconds),
        column("host_s", "host", part => part.host_s, seconds),
        column("launches", "launches", part => part.launches, count, HIDE),
      ],
      "Parts marked by the program",
    ),
    tabled(
      "Operators",
      profile.operators,
      [
        named("operator", operator => operator.name, operator => operator.name),
        column("calls", "calls", operator => operator.calls, count),
        column("own_device_s", "device, alone", operator => operator.own_device_s, seconds),
        column("own_host_s", "host, alone", operator => operator.own_host_s, seconds),
        column("launches", "launches", operator => operator.launches, count, HIDE),
      ],
      "Operators without those inside them",
    ),
    tabled(
      "CUDA API",
      profile.api_calls,
      [
        named("function", use => use.name, use => use.name),
        column("calls", "calls", use => use.calls, count),
        column("seconds", "host", use => use.seconds, seconds),
        column("mean_s", "each", use => share(use.seconds, use.calls), seconds),
      ],
      "CUDA functions that the host called",
    ),
  ];
  const gaps = profile =>
    tabled(
      "Largest gaps",
      profile.gaps,
      [
        words("after", "after", gap => labelOf(profile, gap.after) || "the start"),
        words("before", "before", gap => labelOf(profile, gap.before) || "the end"),
        column("duration_s", "idle", gap => gap.duration_s, seconds),
        words("host", "the host was in", gap => gap.host || "nothing that is recorded", HIDE),
      ],
      "Times when the device was idle",
    );
  const profiled = profile => {
    if (!profile.totals) return [h("h1", null, `${title(profile)} could not be profiled.`), failed(profile)];
    const whole = profile.totals.span_s || profile.totals.device_busy_s,
      word = profile.call_s > 0 || profile.host_s > 0 ? "a call" : "the program",
      worst = profile.bottleneck;
    return [
      h("h1", null, `${title(profile)}${worst ? `: ${labelOf(profile, worst.name)}, ${text.percent(worst.share)} of ${profile.totals.span_s ? word : "the device's time"}${binding(profile.bound)}` : ""}.`),
      failed(profile),
      notes(profile),
      totals(profile, word),
      bottleneck(profile.bound),
      kernels(profile, whole),
      copies(profile, whole),
      host(profile),
      gaps(profile),
      kept("trace", profile.trace),
    ];
  };

  // -- kernels one by one, by Nsight Compute
  const counter = (key, label, cell, more) => column(key, label, kernel => kernel.metrics[key], cell, more);
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
    named("kernel", kernel => kernel.label, kernel => kernel.metrics.kernel, launched),
    column("launches", "launches", kernel => kernel.launches, count),
    column("seconds", "time", kernel => (kernel.metrics.duration_s === null ? null : kernel.seconds), seconds),
    column("share", "share", kernel => kernel.share, percent),
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
    words("bound", "bound by", kernel => kernel.bound.kind.replace("-bound", "")),
    exported("dram_bytes_s", kernel => kernel.metrics.dram_bytes_s),
    exported("grid", kernel => size(kernel.metrics.grid)),
    exported("block", kernel => size(kernel.metrics.block)),
    exported("waves", kernel => kernel.metrics.waves),
    exported("advice", kernel => kernel.bound.advice),
  ];
  const metered = result => {
    const [first] = result.kernels;
    if (!first) return [h("h1", null, `${title(result)} could not be measured.`), failed(result)];
    const much = typeof first.share === "number" ? `, ${text.percent(first.share)} of the kernels' time` : "";
    return [
      h("h1", null, `${title(result)}: ${first.label}${much}${binding(first.bound)}.`),
      failed(result),
      notes(result),
      bottleneck(first.bound),
      tabled("Kernels", result.kernels, METERED, "Kernels as Nsight Compute measured them, the one that takes longest first"),
      h("p", {class: "small soft"}, "Each kernel ran alone, several times over and with cold caches: its time is not that in a program."),
      kept("report", result.report),
      kept("table", result.table),
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

  const nodesOfAll = (results, nodesOf) =>
    results.map(result => {
      whose = results.length > 1 ? `: ${title(result)}` : "";
      return nodesOf(result);
    });
  R.profiledCases = data => [
    data.difference && difference(data.difference),
    ...nodesOfAll(data.profiles, profiled),
    ...nodesOfAll(data.metered, metered),
    data.lede && h("p", {class: "lede"}, data.lede),
    data.warnings.map(line => h("p", {class: "banner"}, line)),
  ];
})(regress);

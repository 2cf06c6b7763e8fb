// The parts of the page that are text: headline, warnings, totals, bottlenecks.
(R => {
  const {h, text} = R;
  const TONES = {overhead: "worse", transfer: "unsure", memory: "", compute: "", host: "", unknown: ""};
  const bound = word => (word === "unknown" ? "cause unknown" : `${word}-bound`);

  const headline = ({document, comparisons}) => {
    const gating = comparisons.filter(comparison => comparison.gates),
      worst = gating
        .filter(comparison => comparison.verdict === "regressed")
        .sort((a, b) => (b.ratio ?? Infinity) - (a.ratio ?? Infinity));
    if (worst.length) {
      const count = text.counted(new Set(worst.map(comparison => comparison.case)).size, "operation");
      return `${count} regressed: ${worst[0].case} ${text.change(worst[0].ratio)}.`;
    }
    if (gating.some(comparison => comparison.verdict === "undecided")) return "No regression is known.";
    if (comparisons.length) return "Nothing regressed.";
    const top = document.bottlenecks[0];
    if (!top) return "Nothing was profiled.";
    return `${top.operation} takes ${text.percent(top.share)} of the time, ${bound(top.bound)}.`;
  };
  const lede = document => {
    const {facts} = document;
    const parts = [document.program.split("/").at(-1), document.machine, facts.gpu, facts.torch && `torch ${facts.torch}`];
    if (document.started_at > 0) parts.push(text.moment(document.started_at));
    const all = document.entries_kept === document.entries_total,
      kept = all ? "" : `, the last ${document.entries_kept} of them one by one`;
    parts.push(`${text.counted(document.entries_total, "entry", "entries")}${kept}`);
    return h("p", {class: "lede"}, parts.filter(Boolean).join(" · "));
  };
  const warnings = document =>
    [
      document.no_breakdown &&
        document.operations.some(operation => operation.device !== "cpu") &&
        `Kernels, copies and idle time are unknown: ${document.no_breakdown}.`,
      document.lost &&
        `${text.counted(document.lost, "entry has", "entries have")} no device time, and count with the host's.`,
      document.pending &&
        `${text.counted(document.pending, "entry was", "entries were")} not done when the export was written.`,
      document.facts.scripted && "The device is scripted: its times are simulated, not measured.",
    ]
      .filter(Boolean)
      .map(words => h("p", {class: "banner"}, words));

  const sum = (all, of) => all.reduce((total, row) => total + (of(row) ?? 0), 0);
  const totals = document => {
    const {operations} = document,
      outermost = document.entries.filter(entry => entry.device === "gpu" && entry.depth === 0),
      known = outermost.filter(entry => typeof entry.idle_s === "number"),
      span = sum(known, entry => entry.duration_s),
      own = sum(operations, operation => operation.self_s);
    const peaks = operations.map(operation => operation.peak_bytes).filter(peak => typeof peak === "number");
    const figures = [
      ["time of operations", text.value(own, "s"), `in ${text.value(document.duration_s, "s")} of the program`],
      [
        "device busy",
        span > 0 ? text.percent(1 - sum(known, entry => entry.idle_s) / span) : text.MISSING,
        "of the outermost spans",
      ],
      ["operations", String(operations.length), text.counted(sum(operations, operation => operation.calls), "call")],
      ["peak memory", peaks.length ? text.value(Math.max(...peaks), "B") : text.MISSING, "of the device"],
    ];
    return h(
      "dl",
      {class: "totals"},
      figures.map(([name, value, note]) =>
        h(
          "div",
          null,
          h("dt", null, name),
          h("dd", null, h("span", {class: "big"}, value), h("span", {class: "soft small"}, note)),
        ),
      ),
    );
  };

  const bottlenecks = document =>
    document.bottlenecks.length > 0 &&
    h(
      "section",
      null,
      h("h2", null, "Bottlenecks"),
      h(
        "ol",
        {class: "bottlenecks"},
        document.bottlenecks.slice(0, 5).map((bottleneck, at) =>
          h(
            "li",
            null,
            h("div", null, h("span", {class: "mono name"}, R.name(bottleneck.operation))),
            h("div", {class: "big"}, text.percent(bottleneck.share)),
            h(
              "div",
              null,
              h("span", {class: `tag ${TONES[bottleneck.bound] ?? ""}`}, bound(bottleneck.bound)),
              h("p", {class: "small soft"}, bottleneck.evidence),
            ),
            h(
              "details",
              {open: at === 0},
              h("summary", null, "what to try"),
              h("ul", {class: "small"}, bottleneck.advice.map(words => h("li", null, words))),
            ),
          ),
        ),
      ),
    );

  R.profileSections = {headline, lede, warnings, totals, bottlenecks};
})(regress);

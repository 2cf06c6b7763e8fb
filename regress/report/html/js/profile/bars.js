// Bars of operations. What a bar shows stands beside it in words, so the bars themselves are for the eye alone.
(R => {
  const {h, text} = R;
  const MOST_LINES = 12;
  const PARTS = [
    ["busy", "kernels", each => each.busy_s],
    ["transfer", "copies", each => each.transfer_s],
    ["idle", "idle", each => each.idle_s],
  ];

  const row = (each, parts, words) =>
    h(
      "li",
      null,
      h("span", {class: "mono name"}, R.name(each.operation)),
      h(
        "span",
        {class: "track", "aria-hidden": "true"},
        parts.map(([kind, share]) =>
          h("i", {class: kind, style: `width:${(100 * Math.max(0, Math.min(1, share))).toFixed(3)}%`}),
        ),
      ),
      h("span", {class: "n"}, words),
    );
  const figure = (title, note, all, line, kind = "") =>
    h(
      "figure",
      {class: `bars ${kind}`.trim()},
      h("figcaption", null, h("h2", null, title), h("p", {class: "soft small"}, note)),
      h("ul", null, all.slice(0, MOST_LINES).map(line)),
      all.length > MOST_LINES && h("p", {class: "soft small"}, `and ${all.length - MOST_LINES} more, in the table below`),
    );

  const shares = operations =>
    figure("Share of time", "Of each operation without those inside it.", operations, each =>
      row(each, [[each.device === "cpu" ? "host" : "busy", each.share]], text.percent(each.share)),
    );
  // On a logarithmic scale: operations of a microsecond stand beside those of a second.
  const means = operations => {
    const sizes = operations.map(each => each.mean_s).filter(each => each > 0),
      low = Math.log(Math.min(...sizes)) - 0.7,
      high = Math.log(Math.max(...sizes));
    const share = mean => (mean > 0 ? (Math.log(mean) - low) / (high - low || 1) : 0);
    return figure("Mean time and calls", "On a logarithmic scale.", operations, each =>
      row(
        each,
        [[each.device === "cpu" ? "host" : "busy", share(each.mean_s)]],
        `${text.value(each.mean_s, "s")} × ${each.calls}`,
      ),
    );
  };
  const parts = each => {
    if (each.device === "cpu") return {bars: [["host", 1]], words: "CPU"};
    if (each.busy_s === null || each.busy_s === undefined || !(each.span_s > 0)) return {bars: [], words: "not known"};
    const found = PARTS.map(([kind, word, of]) => [kind, word, of(each) / each.span_s]);
    const words = found
      .filter(([, , share]) => share >= 0.005)
      .map(([, word, share]) => `${word} ${(100 * share).toFixed(0)} %`);
    return {bars: found.map(([kind, , share]) => [kind, share]), words: words.join(", ") || "nothing"};
  };
  const breakdown = operations => {
    const line = each => {
      const {bars, words} = parts(each);
      return row(each, bars, words);
    };
    const note = "Of the device, from the first event of an entry to the last.",
      node = figure("Where the span goes", note, operations, line, "parts");
    const legend = [...PARTS.map(([kind, word]) => [kind, word]), ["host", "CPU"]];
    node.querySelector("figcaption").append(
      h(
        "div",
        {class: "legend"},
        legend.map(([kind, word]) => h("span", null, h("i", {class: `key ${kind}`, "aria-hidden": "true"}), word)),
      ),
    );
    return node;
  };

  R.bars = {shares, means, breakdown};
})(regress);

// Bars of operations. What a bar shows stands beside it in words, so the bars themselves are for the eye alone.
(R => {
  const {h, text} = R;
  const MOST_LINES = 12;
  const PARTS = [
    ["busy", "kernels", operation => operation.busy_s],
    ["transfer", "copies", operation => operation.transfer_s],
    ["idle", "idle", operation => operation.idle_s],
  ];

  const row = (operation, parts, words) =>
    h(
      "li",
      null,
      h("span", {class: "mono name"}, R.name(operation.operation)),
      h(
        "span",
        {class: "track", "aria-hidden": "true"},
        parts.map(([kind, share]) =>
          h("i", {class: kind, style: `width:${(100 * Math.max(0, Math.min(1, share))).toFixed(3)}%`}),
        ),
      ),
      h("span", {class: "n"}, words),
    );
  const figure = (title, note, operations, line, kind = "") =>
    h(
      "figure",
      {class: `bars ${kind}`.trim()},
      h("figcaption", null, h("h2", null, title), h("p", {class: "soft small"}, note)),
      h("ul", null, operations.slice(0, MOST_LINES).map(line)),
      operations.length > MOST_LINES &&
        h("p", {class: "soft small"}, `and ${operations.length - MOST_LINES} more, in the table below`),
    );

  const shares = operations =>
    figure("Share of time", "Of each operation without those inside it.", operations, operation =>
      row(operation, [[operation.device === "cpu" ? "host" : "busy", operation.share]], text.percent(operation.share)),
    );
  // On a logarithmic scale: operations of a microsecond stand beside those of a second.
  const means = operations => {
    const sizes = operations.map(operation => operation.mean_s).filter(mean => mean > 0),
      low = Math.log(Math.min(...sizes)) - 0.7,
      high = Math.log(Math.max(...sizes));
    const share = mean => (mean > 0 ? (Math.log(mean) - low) / (high - low || 1) : 0);
    return figure("Mean time and calls", "On a logarithmic scale.", operations, operation =>
      row(
        operation,
        [[operation.device === "cpu" ? "host" : "busy", share(operation.mean_s)]],
        `${text.value(operation.mean_s, "s")} × ${operation.calls}`,
      ),
    );
  };
  const parts = operation => {
    if (operation.device === "cpu") return {bars: [["host", 1]], words: "CPU"};
    if (operation.busy_s === null || operation.busy_s === undefined || !(operation.span_s > 0))
      return {bars: [], words: "not known"};
    const partShares = PARTS.map(([kind, word, of]) => [kind, word, of(operation) / operation.span_s]);
    const words = partShares
      .filter(([, , share]) => share >= 0.005)
      .map(([, word, share]) => `${word} ${(100 * share).toFixed(0)} %`);
    return {bars: partShares.map(([kind, , share]) => [kind, share]), words: words.join(", ") || "nothing"};
  };
  const breakdown = operations => {
    const line = operation => {
      const {bars, words} = parts(operation);
      return row(operation, bars, words);
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

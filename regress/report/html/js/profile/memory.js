// Memory over time: what was allocated at the end of each entry, and the most in between.
(R => {
  const {h, text} = R;
  const color = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  R.memoryChart = entries => {
    const seen = entries.filter(entry => typeof entry.memory_bytes === "number").sort((a, b) => a.end_s - b.end_s);
    if (seen.length < 2) return null;
    const peak = Math.max(...seen.map(entry => Math.max(entry.peak_bytes ?? 0, entry.memory_bytes)));
    if (!peak) return null;
    const last = seen.at(-1).memory_bytes;
    const span = text.value(seen.at(-1).end_s - seen[0].end_s, "s"),
      label = `Memory of the device over ${span}: at most ${text.value(peak, "B")}, ${text.value(last, "B")} at the end`;
    const plot = h("div", {class: "plot small", role: "img", "aria-label": label});
    const node = h(
      "section",
      null,
      h("h2", null, "Memory over time"),
      h(
        "div",
        {class: "legend small"},
        h("span", null, h("i", {class: "key busy", "aria-hidden": "true"}), "allocated at the end of an entry"),
        h("span", null, h("i", {class: "key transfer", "aria-hidden": "true"}), "the most within it"),
      ),
      plot,
    );
    let chart;
    const draw = () => {
      chart?.destroy();
      const line = color("--line2"),
        soft = color("--soft"),
        axis = {stroke: soft, grid: {stroke: line, width: 1}, ticks: {stroke: line}, font: `11px ${color("--sans")}`};
      chart = new uPlot(
        {
          width: Math.max(200, plot.clientWidth || 600),
          height: 170,
          legend: {show: false},
          cursor: {show: false},
          scales: {x: {time: false}, y: {range: (u, low, high) => [0, high * 1.08 || 1]}},
          axes: [
            {...axis, values: (u, all) => text.axis(all, "s")},
            {...axis, size: 74, values: (u, all) => text.axis(all, "B")},
          ],
          series: [
            {},
            {stroke: color("--l0"), width: 1.6, paths: uPlot.paths.stepped({align: 1}), points: {show: false}},
            {stroke: color("--l1"), width: 1, dash: [4, 3], paths: uPlot.paths.stepped({align: -1}), points: {show: false}},
          ],
        },
        [seen.map(entry => entry.end_s), seen.map(entry => entry.memory_bytes), seen.map(entry => entry.peak_bytes ?? null)],
        plot,
      );
    };
    return {node, draw};
  };
})(regress);

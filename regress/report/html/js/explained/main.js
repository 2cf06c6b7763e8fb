// The page of an explanation: the cause, where the difference went, both timelines in one scale, the kernels, what was changed.
(R => {
  const {h} = R;
  const {parts, kernels} = R.account;
  const main = document.getElementById("main");
  let charts = [];
  R.details = () => [];

  const timelines = explained => {
    const entries = explained.timelines.map(span => ({
      ...span,
      operation: span.name,
      end_s: span.start_s + span.duration_s,
      device: "",
      thread: `${span.side} ${span.lane}`,
      place: `${span.side}, ${span.lane}`,
      depth: 0,
    }));
    const took = new Map();
    for (const one of entries) if (one.lane !== "host") took.set(one.name, (took.get(one.name) ?? 0) + one.duration_s);
    const operations = [...took].sort((a, b) => b[1] - a[1]).map(([operation]) => ({operation}));
    return R.timelineChart(entries, operations, "Both timelines");
  };

  const list = (title, lines) =>
    lines.length > 0 &&
    h("section", null, h("h2", null, title), h("ul", {class: "changed"}, lines.map(line => h("li", {class: "mono"}, line))));

  const nodesOf = explained => {
    const chart = explained.timelines.length > 0 && timelines(explained);
    if (chart) charts.push(chart);
    return [
      h("h1", null, explained.sentence),
      h("p", {class: "lede"}, R.explained.lede),
      explained.warnings.map(words => h("p", {class: "banner"}, words)),
      explained.also.map(words => h("p", null, `Also: ${words}`)),
      explained.parts.length > 0 && parts(explained),
      chart && chart.node,
      explained.kernels.length > 0 && kernels(explained, "Kernels and copies"),
      list("Files changed", explained.files),
      list("Commits", explained.commits),
    ];
  };
  const draw = () => charts.forEach(chart => chart.draw());
  R.redrawn(draw);

  R.begin = () => {
    R.beginTheme();
    main.replaceChildren(...R.explained.cases.map(nodesOf).flat(Infinity).filter(Boolean));
    R.live = {charts};
    draw();
    main.dataset.page = "explained";
  };
})(regress);

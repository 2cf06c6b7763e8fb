// The page of an explanation: the cause, where the difference went, both timelines in one scale, the kernels, what was changed.
(R => {
  const {h} = R;
  const {parts, kernels} = R.account;
  const main = document.getElementById("main");
  let charts = [];
  R.details = () => [];

  const timelines = each => {
    const entries = each.timelines.map(one => ({
      ...one,
      operation: one.name,
      end_s: one.start_s + one.duration_s,
      device: "",
      thread: `${one.side} ${one.lane}`,
      place: `${one.side}, ${one.lane}`,
      depth: 0,
    }));
    const took = new Map();
    for (const one of entries) if (one.lane !== "host") took.set(one.name, (took.get(one.name) ?? 0) + one.duration_s);
    const names = [...took].sort((a, b) => b[1] - a[1]).map(([operation]) => ({operation}));
    return R.timelineChart(entries, names, "Both timelines");
  };

  const list = (title, lines) =>
    lines.length > 0 &&
    h("section", null, h("h2", null, title), h("ul", {class: "changed"}, lines.map(line => h("li", {class: "mono"}, line))));

  const nodesOf = each => {
    const chart = each.timelines.length > 0 && timelines(each);
    if (chart) charts.push(chart);
    return [
      h("h1", null, each.sentence),
      h("p", {class: "lede"}, R.explained.lede),
      each.warnings.map(words => h("p", {class: "banner"}, words)),
      each.also.map(words => h("p", null, `Also: ${words}`)),
      each.parts.length > 0 && parts(each),
      chart && chart.node,
      each.kernels.length > 0 && kernels(each, "Kernels and copies"),
      list("Files changed", each.files),
      list("Commits", each.commits),
    ];
  };
  const draw = () => charts.forEach(each => each.draw());
  let waiting;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(draw, 80);
  });
  document.addEventListener("themed", draw);

  R.begin = () => {
    R.beginTheme();
    main.replaceChildren(...R.explained.cases.map(nodesOf).flat(Infinity).filter(Boolean));
    R.live = {charts};
    draw();
    main.dataset.page = "explained";
  };
})(regress);

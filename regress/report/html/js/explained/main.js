// The page of an explanation: the cause, where the difference went, both timelines in one scale, the kernels, what was changed.
(R => {
  const {h, text} = R;
  const main = document.getElementById("main");
  let charts = [];
  R.details = () => [];

  const parts = each =>
    h(
      "section",
      null,
      h("h2", null, "Where it went"),
      h(
        "div",
        {class: "scroll", tabindex: "0", role: "region", "aria-label": "Parts of the difference"},
        h(
          "table",
          {class: "rows parts"},
          h("caption", {class: "sr"}, "Parts of the difference, which add up to that of a profiled call"),
          h(
            "thead",
            null,
            h("tr", null, ["part", "difference", "", ""].map(word => h("th", {scope: "col", class: word === "difference" ? "n" : null}, word || h("span", {class: "sr"}, "more")))),
          ),
          h(
            "tbody",
            null,
            each.parts.map(([name, amount, more, share]) =>
              h(
                "tr",
                {class: share === null ? "sum" : null},
                h("th", {scope: "row"}, name),
                h("td", {class: "n"}, amount),
                h("td", null, more),
                h("td", {class: "share"}, share !== null && h("i", {class: share < 0 ? "less" : "more", style: `width:${Math.min(100, Math.abs(100 * share))}%`})),
              ),
            ),
          ),
        ),
      ),
    );

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

  const time = (key, label) => ({
    key,
    label,
    num: true,
    value: each => each[key],
    cell: each => (each[key] === null ? text.MISSING : text.value(each[key], "s")),
  });
  const kernels = each => {
    const columns = [
      {
        key: "kernel",
        label: "kernel",
        value: one => one.name,
        cell: one => [
          h("span", {class: "mono name"}, R.name(one.label)),
          one.more.map(line => h("div", {class: "small soft"}, line)),
        ],
      },
      {key: "kind", label: "what", value: one => one.kind, cell: one => one.kind},
      time("before_s", "before"),
      time("after_s", "after"),
      time("difference_s", "difference"),
      {key: "launches", label: "launches", num: true, value: one => one.launches, cell: one => one.launches},
      {key: "matched", label: "found by", hide: true, value: one => one.matched, cell: one => one.matched},
      {key: "for", label: "for", hide: true, value: one => one.operator, cell: one => one.operator},
    ];
    const caption = "Kernels and copies of both sides";
    return R.tabled("Kernels and copies", {columns, rows: each.kernels, caption, name: "kernels"});
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
      each.kernels.length > 0 && kernels(each),
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

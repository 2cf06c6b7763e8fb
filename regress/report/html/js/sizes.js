// The newest values of a benchmark by size: a line for each dtype, a small chart for each combination of the other parameters.
(R => {
  const {h, svg, text} = R;
  const WIDTH = 300,
    HEIGHT = 150,
    MOST_LINES = 8,
    MOST_CHARTS = 24;
  const SUFFIX = {k: 1e3, m: 1e6, g: 1e9, ki: 2 ** 10, mi: 2 ** 20, gi: 2 ** 30};

  // The number that a parameter is, or begins with: 4096, '64k', (1024, 1024).
  const numberOf = param => {
    const match = /^[^\w-]*(-?\d[\d_]*\.?\d*(?:e[+-]?\d+)?)\s*(ki|mi|gi|k|m|g)?\b/i.exec(param);
    return match ? Number(match[1].replaceAll("_", "")) * (SUFFIX[match[2]?.toLowerCase()] ?? 1) : NaN;
  };
  const plain = param => param.replace(/^(['"])(.*)\1$/s, "$2");

  // Which parameter is the size and which tells the lines apart, by their values and names.
  R.axes = (cases, names) => {
    const values = names.map((_, k) => [...new Set(cases.map(params => params[k]))]);
    const numeric = values.map((distinct, k) => ({
      k,
      n: distinct.length,
      all:
        distinct.length > 1 &&
        distinct.every(value => Number.isFinite(numberOf(value))) &&
        new Set(distinct.map(numberOf)).size === distinct.length,
    }));
    const size = numeric.filter(param => param.all).sort((a, b) => b.n - a.n)[0];
    if (!size) return null;
    const rest = numeric.filter(param => param.k !== size.k && param.n > 1);
    const line = rest
      .filter(param => param.n <= MOST_LINES)
      .sort((a, b) => /type/i.test(names[b.k]) - /type/i.test(names[a.k]) || a.n - b.n)[0];
    return {size: size.k, line: line?.k ?? null, rest: rest.map(param => param.k).filter(k => k !== line?.k)};
  };
  const ticks = values =>
    values.length <= 4 ? values : [values[0], values[Math.floor((values.length - 1) / 2)], values.at(-1)];

  const small = (title, groups, axes, unit, pick) => {
    const points = groups.flatMap(group => group.points),
      xs = [...new Set(points.map(point => point.x))].sort((a, b) => a - b),
      ys = points.map(point => point.y).filter(value => value > 0);
    const logX = xs[0] > 0 && xs.at(-1) / xs[0] > 20,
      logY = ys.length === points.length && Math.max(...ys) / Math.min(...ys) > 20;
    const span = (low, high, log) => value =>
      high === low ? 0.5 : log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
    const top = Math.max(...points.map(point => point.y)),
      bottom = logY ? Math.min(...ys) : 0;
    const sx = span(xs[0], xs.at(-1), logX),
      sy = span(bottom, top, logY),
      x = value => 58 + sx(value) * (WIDTH - 76),
      y = value => HEIGHT - 24 - sy(value) * (HEIGHT - 42);
    const shape = k =>
      [
        [0, 3.2, "circle"],
        [1, 5.6, "rect"],
        [2, 0, "tri"],
      ][k % 3][2];
    const dot = (k, px, py, point) => {
      const attributes = {fill: `var(--l${k % 8})`, tabindex: null};
      const mark =
        shape(k) === "circle"
          ? svg("circle", {cx: px, cy: py, r: 3.2, ...attributes})
          : shape(k) === "rect"
            ? svg("rect", {x: px - 2.8, y: py - 2.8, width: 5.6, height: 5.6, ...attributes})
            : svg("path", {d: `M${px} ${py - 3.8}l3.6 6.4h-7.2z`, ...attributes});
      mark.append(svg("title", null, `${point.label}: ${text.value(point.y, unit)}`));
      mark.addEventListener("click", () => pick(point.params));
      return mark;
    };
    return h(
      "figure",
      null,
      h("figcaption", null, title),
      svg(
        "svg",
        {
          viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
          width: "100%",
          role: "img",
          "aria-label": `${title}: ${groups.map(group => `${group.name} ${group.points.map(point => text.value(point.y, unit)).join(", ")}`).join("; ")}`,
        },
        [bottom, top].map(value => [
          svg("line", {x1: 58, x2: WIDTH - 12, y1: y(value), y2: y(value), class: "grid"}),
          svg("text", {x: 52, y: y(value) + 3.5, "text-anchor": "end"}, text.value(value, unit)),
        ]),
        ticks(xs).map(value => svg("text", {x: x(value), y: HEIGHT - 6, "text-anchor": "middle"}, text.number(value))),
        groups.map(({k, points: ofGroup}) => [
          svg("path", {
            d: ofGroup.map((point, at) => `${at ? "L" : "M"}${x(point.x)} ${y(point.y)}`).join(""),
            fill: "none",
            stroke: `var(--l${k % 8})`,
            "stroke-width": 1.5,
            "stroke-dasharray": ["", "5 3", "2 2"][k % 3],
          }),
          ofGroup.map(point => dot(k, x(point.x), y(point.y), point)),
        ]),
      ),
    );
  };

  R.sizes = (shard, lines, pick) => {
    const axes =
      lines.length > 1
        ? R.axes(
            lines.map(line => line.params),
            shard.param_names,
          )
        : null;
    if (!axes) return null;
    const names = shard.param_names,
      unit = lines[0].unit,
      kinds = axes.line === null ? [""] : [...new Set(lines.map(line => line.params[axes.line]))];
    const panels = new Map();
    for (const line of lines) {
      if (!line.values.length) continue;
      const title = axes.rest.map(k => `${names[k]} ${plain(line.params[k])}`).join(", "),
        kind = axes.line === null ? "" : line.params[axes.line];
      if (!panels.has(title)) panels.set(title, new Map());
      const byKind = panels.get(title);
      if (!byKind.has(kind)) byKind.set(kind, []);
      byKind.get(kind).push({
        x: numberOf(line.params[axes.size]),
        y: line.values.at(-1),
        params: line.params,
        label: line.params.join(", "),
      });
    }
    const charts = [...panels].slice(0, MOST_CHARTS).map(([title, byKind]) =>
      small(
        title || R.metric(lines[0].metric),
        [...byKind].map(([name, points]) => ({
          name: plain(name),
          k: kinds.indexOf(name),
          points: points.sort((a, b) => a.x - b.x),
        })),
        axes,
        unit,
        pick,
      ),
    );
    const legend =
      axes.line !== null &&
      h(
        "div",
        {class: "legend"},
        h("span", {class: "soft"}, `${names[axes.line]}: `),
        kinds.map((kind, k) =>
          h("span", {style: `color:var(--l${k % 8})`}, `${["●", "■", "▲"][k % 3]} ${plain(kind)}`),
        ),
      );
    return h(
      "section",
      {class: "sizes"},
      h("h2", null, `Newest values by ${names[axes.size]}`),
      legend,
      h("div", {class: "multi"}, charts),
      h(
        "details",
        null,
        h("summary", null, "The newest values as a table"),
        R.table({
          rows: lines.filter(line => line.values.length),
          caption: "Newest values",
          name: shard.name,
          columns: [
            ...names.map((name, k) => ({
              key: name,
              label: name,
              value: line => plain(line.params[k]),
              cell: line => plain(line.params[k]),
            })),
            {
              key: lines[0].metric,
              label: R.metric(lines[0].metric),
              num: true,
              value: line => line.values.at(-1),
              cell: line => text.value(line.values.at(-1), unit),
            },
          ],
        }).node,
      ),
    );
  };
})(regress);

// A chart as a picture to paste elsewhere: what it is of, the chart as it is drawn, and what its lines are called where the
// chart has no room for that.
(R => {
  const {text} = R;
  const PAD = 16,
    LINE = 20,
    DOT = 10;

  const fitted = (ctx, words, width) => {
    if (ctx.measureText(words).width <= width) return words;
    let n = words.length;
    while (n > 1 && ctx.measureText(`${words.slice(0, n)}…`).width > width) n -= 1;
    return `${words.slice(0, n)}…`;
  };
  // Names with the colours of their lines, in as many rows as it takes: `{name, color, x, row}`.
  const legend = (ctx, lines, width) => {
    let x = 0,
      row = 0;
    return lines.map(({label, color}) => {
      const name = fitted(ctx, label, width - 2 * DOT),
        needed = ctx.measureText(name).width + 2 * DOT + PAD;
      if (x > 0 && x + needed > width) [x, row] = [0, row + 1];
      const entry = {name, color, x, row};
      x += needed;
      return entry;
    });
  };
  // `chart` is one of R.chart; `title` and `about` stand above it. In the colours of the page, and as sharp as its screen.
  R.picture = (chart, title, about) => {
    const drawn = chart.u.ctx.canvas,
      scale = drawn.width / chart.u.width,
      canvas = document.createElement("canvas"),
      ctx = canvas.getContext("2d"),
      font = (size, family = "--sans") => `${size} ${R.color(family)}`;
    ctx.font = font("12px");
    const {lines} = chart.frame,
      told = lines.length > R.NAMED && new Set(lines.map(line => line.color)).size === lines.length,
      names = told ? legend(ctx, lines, chart.u.width) : [],
      rows = names.length && names.at(-1).row + 1,
      top = PAD + 2 * LINE + 8;
    canvas.width = drawn.width + 2 * PAD * scale;
    canvas.height = drawn.height + (top + rows * LINE + PAD) * scale;
    ctx.fillStyle = R.color("--bg");
    ctx.fillRect(0, 0, canvas.width, canvas.height);
    ctx.drawImage(drawn, PAD * scale, top * scale);
    ctx.scale(scale, scale);
    ctx.textBaseline = "top";
    ctx.font = font("600 14px", "--mono");
    ctx.fillStyle = R.color("--ink");
    ctx.fillText(fitted(ctx, title, chart.u.width), PAD, PAD);
    ctx.font = font("12px");
    ctx.fillStyle = R.color("--soft");
    ctx.fillText(fitted(ctx, about, chart.u.width), PAD, PAD + LINE);
    for (const {name, color, x, row} of names) {
      const y = top + chart.u.height + row * LINE;
      ctx.fillStyle = color;
      ctx.fillRect(PAD + x, y + 2, DOT, DOT);
      ctx.fillStyle = R.color("--ink");
      ctx.fillText(name, PAD + x + DOT + 6, y);
    }
    return canvas;
  };
  // The chart of a benchmark's page as a file, called after what it shows.
  R.savePicture = (chart, shard, {name, metric, lines}) => {
    const ends = R.get("z") ? R.get("z").split("..").map(R.findCommit) : [0, -1].map(at => chart.frame.commits.at(at)),
      [first, last] = ends.map(at => `${R.commitName(at)} (${text.date(R.index.commits[at].date)})`),
      where = lines.length === 1 && `on ${R.choice.label(lines[0].place)}`,
      about = [R.index.project, R.metric(metric), R.get("rel") && "relative", where, `${first} to ${last}`];
    R.picture(chart, shard.name + (name && `(${name})`), about.filter(Boolean).join(" · ")).toBlob(blob =>
      R.exports.save(`${shard.name} ${metric}.png`, blob),
    );
  };
})(regress);

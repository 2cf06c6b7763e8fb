// What stands on a chart beside its lines, in canvas pixels: levels, change points, failures, ticks, pins, names.
(R => {
  const {text} = R;
  const tone = change => `--${R.toneOf(R.kindOf(change))}`;

  // A brush knows the chart: where a commit and a value are, what lies inside, and how to draw a line or a word.
  const brush = (u, {frame, color}) => {
    const {ctx, bbox} = u,
      px = size => size * devicePixelRatio,
      right = bbox.left + bbox.width,
      bottom = bbox.top + bbox.height;
    const x = at => (at === undefined ? NaN : u.valToPos(frame.xs[at], "x", true));
    return {
      u,
      ctx,
      px,
      x,
      top: bbox.top,
      left: bbox.left,
      right,
      bottom,
      y: value => u.valToPos(value, "y", true),
      inside: place => place >= bbox.left - 1 && place <= right + 1,
      line: (points, style, width = 1, dash = []) => {
        ctx.beginPath();
        points.forEach(([a, b], k) => (k ? ctx.lineTo(a, b) : ctx.moveTo(a, b)));
        ctx.strokeStyle = style;
        ctx.lineWidth = px(width);
        ctx.setLineDash(dash.map(px));
        ctx.stroke();
      },
      font: (size, weight = "") => {
        ctx.font = `${weight} ${px(size)}px ${color("--sans")}`;
      },
      write: (words, left, base, style) => {
        ctx.fillStyle = style;
        ctx.fillText(words, left, base);
      },
    };
  };

  const levels = (b, curve, color) => {
    for (const level of curve.line.levels) {
      const [from, to] = [b.x(curve.index(level.first)), b.x(curve.index(level.last))],
        height = b.y(level.value / curve.scale);
      const left = Math.max(from - b.px(3), b.left),
        right = Math.min(to + b.px(3), b.right);
      if (right > left)
        b.line(
          [
            [left, height],
            [right, height],
          ],
          color("--ink"),
          1.3,
        );
    }
  };
  // Values that the axis does not reach: an arrow at the edge.
  const outliers = (b, curve) => {
    const {max, min} = b.u.scales.y;
    curve.shown.forEach((value, at) => {
      if (typeof value !== "number" || (value <= max && value >= min) || !b.inside(b.x(at))) return;
      const [edge, way] = value > max ? [b.top, 1] : [b.bottom, -1];
      b.ctx.fillStyle = curve.color;
      b.ctx.beginPath();
      b.ctx.moveTo(b.x(at), edge);
      b.ctx.lineTo(b.x(at) - b.px(4), edge + way * b.px(7));
      b.ctx.lineTo(b.x(at) + b.px(4), edge + way * b.px(7));
      b.ctx.fill();
    });
  };
  // Crosses; where many stand side by side, as many as can be told apart.
  const failures = (b, curve, color) => {
    let last = -Infinity;
    for (const [at] of curve.line.failures) {
      const place = b.x(curve.index(at)),
        height = b.bottom - b.px(9),
        arm = b.px(4);
      if (!b.inside(place) || place - last < b.px(6)) continue;
      last = place;
      for (const way of [1, -1])
        b.line(
          [
            [place - arm, height - way * arm],
            [place + arm, height + way * arm],
          ],
          color("--worse"),
          1.8,
        );
    }
  };
  // Change points with the commits to blame; one label for lines that changed together, none over another, large ones first.
  const changes = (b, frame, color) => {
    const seen = new Set(),
      taken = [];
    const every = frame.lines
      .flatMap(curve => curve.line.changes.map(change => ({curve, change, at: curve.index(change.first)})))
      .filter(mark => b.inside(b.x(mark.at)))
      .sort((first, second) => second.change.large - first.change.large || second.at - first.at);
    b.font(12, "600");
    for (const {curve, change, at} of every) {
      if (seen.has(at)) continue;
      seen.add(at);
      const paint = color(tone(change)),
        place = b.x(at),
        [good, last] = [curve.index(change.good), curve.index(change.last)];
      if (good !== undefined && last > good + 1) {
        b.ctx.fillStyle = `${paint}14`;
        b.ctx.fillRect(b.x(good), b.top, b.x(last) - b.x(good), b.bottom - b.top);
      }
      b.line(
        [
          [place, b.top - b.px(4)],
          [place, b.bottom],
        ],
        paint,
        change.large ? 1.2 : 0.8,
        [3, 3],
      );
      const arrow = change.ratio > 1 ? "▲" : "▼",
        words = change.ratio === null ? "from zero" : `${arrow} ${text.change(change.ratio)}`,
        width = b.ctx.measureText(words).width,
        left = Math.min(Math.max(place - width / 2, b.left), b.right - width);
      if (taken.some(([from, to]) => left < to && left + width > from)) continue;
      taken.push([left - b.px(8), left + width + b.px(8)]);
      b.write(words, left, b.top - b.px(9), paint);
    }
  };
  const marks = (b, curve, color) => {
    for (const change of curve.line.changes) {
      const place = b.x(curve.index(change.first));
      if (b.inside(place))
        b.line(
          [
            [place, b.top],
            [place, b.bottom],
          ],
          color(tone(change)),
          1,
          [3, 3],
        );
    }
  };
  const ticks = (b, frame, color) => {
    let room = -Infinity;
    b.font(11);
    for (const curve of frame.lines)
      for (const [at, said] of curve.line.ticks) {
        const place = b.x(curve.index(at));
        if (!b.inside(place)) continue;
        for (const [from, to, width, dash] of [
          [b.bottom - b.px(7), b.bottom + b.px(3), 1.4, []],
          [b.top, b.bottom, 0.6, [1, 5]],
        ])
          b.line(
            [
              [place, from],
              [place, to],
            ],
            color("--soft"),
            width,
            dash,
          );
        const words = said.length > 34 ? `${said.slice(0, 33)}…` : said,
          width = b.ctx.measureText(words).width,
          left = Math.min(place + b.px(4), b.right - width);
        if (left < room) continue;
        b.write(words, left, b.bottom - b.px(18), color("--soft"));  // above the names of releases and the crosses
        room = left + width + b.px(8);
      }
  };
  // Releases: a mark at the lower edge, with as many names as there is room for, the newest first.
  const releases = (b, frame, color) => {
    let room = Infinity;
    b.font(11);
    for (const {name, at} of [...R.index.releases].reverse()) {
      const place = b.x(frame.position.get(at) ?? frame.commits.findLastIndex(commit => commit <= at));
      if (!b.inside(place)) continue;
      b.line(
        [
          [place, b.bottom - b.px(9)],
          [place, b.bottom],
        ],
        color("--accent"),
        1.4,
      );
      const left = place - b.px(3) - b.ctx.measureText(name).width;
      if (place > room || left < b.left) continue;
      b.write(name, left, b.bottom - b.px(3), color("--accent"));
      room = left - b.px(8);
    }
  };
  const pinned = (b, pins, frame, color) => {
    b.font(11, "600");
    pins.forEach((pin, k) => {
      const place = b.x(frame.position.get(pin));
      if (!b.inside(place)) return;
      b.line(
        [
          [place, b.top],
          [place, b.bottom],
        ],
        color("--accent"),
        1.2,
      );
      b.write("AB"[k], place + b.px(4), b.top + b.px(11), color("--accent"));
    });
  };
  const names = (b, frame) => {
    const ends = frame.lines
      .map(curve => ({curve, height: b.y(curve.shown.findLast(value => typeof value === "number") ?? NaN)}))
      .filter(end => Number.isFinite(end.height))
      .sort((first, second) => first.height - second.height);
    b.font(11);
    b.ctx.textAlign = "right";
    let above = -Infinity;
    for (const {curve, height} of ends) {
      above = Math.max(height - b.px(6), above + b.px(13));
      b.write(curve.label, b.right - b.px(2), above, curve.color);
    }
  };

  // Lines that have their names in the chart.
  R.NAMED = 8;
  R.painter = options => u => {
    const {frame, small, pins = [], color} = options,
      b = brush(u, options);
    b.ctx.save();
    b.ctx.textAlign = "left";
    b.ctx.textBaseline = "alphabetic";
    for (const curve of frame.lines) {
      if (frame.lines.length === 1) levels(b, curve, color);
      outliers(b, curve);
      failures(b, curve, color);
      if (small) marks(b, curve, color);
    }
    if (!small) {
      releases(b, frame, color);
      changes(b, frame, color);
      ticks(b, frame, color);
    }
    pinned(b, pins, frame, color);
    if (!small && frame.lines.length > 1 && frame.lines.length <= R.NAMED) names(b, frame);
    b.ctx.restore();
  };
})(regress);

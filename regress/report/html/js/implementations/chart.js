// Time against size: a line for each implementation with its intervals, a ring around the fastest, and a strip that names it.
(R => {
  const {h, text} = R;
  const {plain, tone, fastest, stretches, ranked, told} = R.sides;
  // From this ratio of sizes on the axes are logarithmic. An interval widens the axis no further than this factor from its value.
  const SPAN = 8,
    REACH = 3;
  const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3]];

  // Round values between the ends, at least two of them: 1, 2, 5, 10, ... where the axis is logarithmic and long enough.
  const splitsOf = (low, high, log) => {
    if (log) {
      const splits = [];
      for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1)
        for (const digit of [1, 2, 5]) {
          const split = digit * 10 ** power;
          if (split >= low && split <= high) splits.push(split);
        }
      if (splits.length > 7) return splits.filter(split => /^1/.test(split.toExponential(0)));
      if (splits.length > 1) return splits;
    }
    const rough = (high - low) / 4,
      power = 10 ** Math.floor(Math.log10(rough)),
      step = [1, 2, 5, 10].find(multiple => multiple * power >= rough) * power;
    const first = Math.ceil(low / step);
    return Array.from({length: Math.floor(high / step) - first + 1}, (_, k) => (first + k) * step);
  };
  const spread = (low, high, log, share) => {
    if (log) {
      const pad = high > low ? (high / low) ** share : 2;
      return [low / pad, high * pad];
    }
    const pad = (high - low || Math.abs(high) || 1) * share;
    return [low - pad, high + pad];
  };
  // Sizes that have room for their names.
  const thinned = (u, xs, room) => {
    let right = -Infinity;
    return xs.filter(size => {
      const place = u.valToPos(size, "x");
      if (place - right < room) return false;
      right = place;
      return true;
    });
  };
  const shape = (ctx, k, x, y, r) => {
    ctx.beginPath();
    if (k % 4 === 0) ctx.arc(x, y, r, 0, 2 * Math.PI);
    else if (k % 4 === 1) ctx.rect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8);
    else {
      const corners =
        k % 4 === 2
          ? [
              [0, -1.2],
              [1.1, 0.8],
              [-1.1, 0.8],
            ]
          : [
              [0, -1.35],
              [1.2, 0],
              [0, 1.35],
              [-1.2, 0],
            ];
      corners.forEach(([a, b], at) => (at ? ctx.lineTo(x + a * r, y + b * r) : ctx.moveTo(x + a * r, y + b * r)));
      ctx.closePath();
    }
    ctx.fill();
  };

  // Draws a strip above the lines that names the fastest, a ring around its points, and intervals as bars.
  const painter = (panel, sides) => u => {
    const {ctx, bbox} = u,
      px = length => length * devicePixelRatio,
      right = bbox.left + bbox.width;
    const x = at => u.valToPos(panel.combinations[at].size, "x", true),
      y = value => u.valToPos(value, "y", true);
    ctx.save();
    ctx.font = `${px(11)}px ${R.color("--sans")}`;
    ctx.textBaseline = "middle";
    ctx.textAlign = "center";
    const edge = at => (at < 0 ? bbox.left : at >= panel.combinations.length - 1 ? right : (x(at) + x(at + 1)) / 2);
    for (const {labels, name, first, last} of stretches(panel.combinations, sides.names)) {
      const from = edge(first - 1),
        to = edge(last),
        top = bbox.top - px(24),
        k = sides.names.indexOf(name);
      ctx.fillStyle = name ? `${R.color(tone(k))}2e` : R.color("--line2");
      ctx.fillRect(from + px(1), top, to - from - px(2), px(18));
      if (name) {
        ctx.fillStyle = R.color(tone(k));
        ctx.fillRect(from + px(1), top + px(16), to - from - px(2), px(2));
      }
      const words = labels.find(label => ctx.measureText(label).width < to - from - px(8));
      ctx.fillStyle = R.color(name ? "--ink" : "--soft");
      if (words) ctx.fillText(words, (from + to) / 2, top + px(8.5));
    }
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top - px(6), bbox.width, bbox.height + px(6));
    ctx.clip();
    ctx.setLineDash([]);
    sides.names.forEach((name, k) => {
      ctx.fillStyle = ctx.strokeStyle = R.color(tone(k));
      ctx.lineWidth = px(1.4);
      panel.combinations.forEach((combination, at) => {
        const time = combination.times[k];
        if (!time || time.value === null) return;
        const place = x(at),
          [top, bottom] = [y(time.high), y(time.low)];
        if (bottom - top > px(3)) {
          ctx.beginPath();
          for (const end of [top, bottom]) {
            ctx.moveTo(place - px(4), end);
            ctx.lineTo(place + px(4), end);
          }
          ctx.moveTo(place, top);
          ctx.lineTo(place, bottom);
          ctx.stroke();
        }
        shape(ctx, k, place, y(time.value), px(3.6));
        if (fastest(combination) === name) {
          ctx.save();
          ctx.strokeStyle = R.color("--ink");
          ctx.beginPath();
          ctx.arc(place, y(time.value), px(7.5), 0, 2 * Math.PI);
          ctx.stroke();
          ctx.restore();
        }
      });
    });
    ctx.restore();
  };

  // A click shows the history of the case that is nearest.
  const drawn = (node, panel, sides, go) => {
    const {combinations} = panel,
      xs = combinations.map(combination => combination.size),
      times = combinations.flatMap(combination => combination.times.filter(time => time?.value > 0));
    const column = (k, key) => combinations.map(combination => combination.times[k]?.[key] ?? null);
    const logX = xs[0] > 0 && xs.at(-1) / xs[0] >= SPAN,
      low = Math.min(...times.map(time => Math.max(time.low, time.value / REACH))),
      high = Math.max(...times.map(time => Math.min(time.high, time.value * REACH))),
      logY = logX && low > 0,
      rangeX = spread(xs[0], xs.at(-1), logX, 0.06),
      rangeY = logY ? spread(low, high, true, 0.08) : [0, high * 1.08];
    const soft = R.color("--soft"),
      font = `12px ${R.color("--sans")}`,
      axis = {stroke: soft, font, grid: {stroke: R.color("--line2"), width: 1}, ticks: {show: false}};
    const box = h("div", {class: "hover", hidden: true});
    const follow = u => {
      const at = u.cursor.idx;
      box.hidden = at === null || at === undefined || u.cursor.left < 0;
      if (box.hidden) return;
      box.replaceChildren(...told(sides, combinations[at]));
      const half = u.over.clientWidth / 2,
        {left} = u.cursor;
      box.style.left = left < half ? `${left + 14}px` : "";
      box.style.right = left < half ? "" : `${2 * half - left + 14}px`;
    };
    const nearest = u => {
      const combination = combinations[u.cursor.idx];
      return (
        combination &&
        ranked(sides, combination)
          .filter(({time}) => time.value !== null)
          .map(({time}) => ({time, away: Math.abs(u.valToPos(time.value, "y") - u.cursor.top)}))
          .sort((a, b) => a.away - b.away)[0]?.time
      );
    };
    const ready = u => {
      u.over.append(box);
      u.over.addEventListener("click", () => {
        const time = nearest(u);
        if (time) go({c: time.params});
      });
    };
    const u = new uPlot(
      {
        width: Math.max(node.clientWidth, 240),
        height: 300,
        padding: [30, 16, 0, 0],
        legend: {show: false},
        scales: {
          x: {time: false, distr: logX ? 3 : 1, range: () => rangeX},
          y: {distr: logY ? 3 : 1, range: () => rangeY},
        },
        axes: [
          {
            ...axis,
            size: 34,
            splits: self => thinned(self, xs, 46),
            filter: (_, splits) => splits,
            values: (_, splits) => splits.map(size => plain(combinations[xs.indexOf(size)].params[sides.size])),
          },
          {
            ...axis,
            size: 74,
            splits: () => splitsOf(...rangeY, logY),
            filter: (_, splits) => splits,
            values: (_, splits) =>
              logY ? splits.map(split => text.value(split, sides.unit)) : text.axis(splits, sides.unit),
          },
        ],
        series: [
          {},
          ...sides.names.map((name, k) => ({
            label: name,
            stroke: R.color(tone(k)),
            width: 1.6,
            dash: DASHES[k % 4],
            spanGaps: false,
            points: {show: false},
          })),
        ],
        cursor: {x: true, y: false, drag: {x: false, y: false}, points: {show: false}},
        plugins: [{hooks: {draw: painter(panel, sides), setCursor: follow, ready}}],
      },
      [xs, ...sides.names.map((_, k) => column(k, "value"))],
      node,
    );
    const resized = new ResizeObserver(() => {
      if (node.clientWidth && Math.abs(node.clientWidth - u.width) > 1)
        u.setSize({width: node.clientWidth, height: 300});
    });
    resized.observe(node);
    return {
      u,
      destroy: () => {
        resized.disconnect();
        u.destroy();
      },
    };
  };

  R.sides.drawn = drawn;
})(regress);

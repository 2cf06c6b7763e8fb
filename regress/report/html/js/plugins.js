// What stands on a chart beside its lines: levels, change points, failures, ticks, pins, and what the pointer is at.
(R => {
  const {h, text} = R;

  const tone = moved => ({regressed: "--worse", improved: "--better"})[moved] ?? "--unsure";
  const painter =
    ({frame, small, pins = [], color, format}) =>
    u => {
      const {ctx, bbox} = u,
        ratio = devicePixelRatio,
        px = each => each * ratio;
      const x = at => u.valToPos(frame.xs[at], "x", true),
        y = value => u.valToPos(value, "y", true);
      const inside = each => each >= bbox.left - 1 && each <= bbox.left + bbox.width + 1;
      const stroke = (points, style, width = 1, dash = []) => {
        ctx.beginPath();
        points.forEach(([a, b], k) => (k ? ctx.lineTo(a, b) : ctx.moveTo(a, b)));
        ctx.strokeStyle = style;
        ctx.lineWidth = px(width);
        ctx.setLineDash(dash.map(px));
        ctx.stroke();
      };
      ctx.save();
      ctx.font = `600 ${px(12)}px ${color("--sans")}`;
      ctx.textAlign = "left";
      ctx.textBaseline = "alphabetic";
      const labelled = [];
      for (const own of frame.lines) {
        if (frame.lines.length === 1) {
          for (const level of own.line.levels) {
            const from = own.index(level.first),
              to = own.index(level.last);
            if (from === undefined || to === undefined) continue;
            const left = Math.max(x(from) - px(3), bbox.left),
              right = Math.min(x(to) + px(3), bbox.left + bbox.width);
            if (right > left)
              stroke(
                [
                  [left, y(level.value / own.scale)],
                  [right, y(level.value / own.scale)],
                ],
                color("--ink"),
                1.3,
              );
          }
        }
        for (let at = 0; at < frame.xs.length; at += 1) {
          const value = own.shown[at];
          if (typeof value !== "number" || (value <= u.scales.y.max && value >= u.scales.y.min) || !inside(x(at)))
            continue;
          const edge = value > u.scales.y.max ? bbox.top : bbox.top + bbox.height,
            way = value > u.scales.y.max ? 1 : -1;
          ctx.fillStyle = own.color;
          ctx.beginPath();
          ctx.moveTo(x(at), edge);
          ctx.lineTo(x(at) - px(4), edge + way * px(7));
          ctx.lineTo(x(at) + px(4), edge + way * px(7));
          ctx.fill();
        }
        for (const [at] of own.line.failures) {
          const place = own.index(at) === undefined ? NaN : x(own.index(at)),
            bottom = bbox.top + bbox.height - px(9);
          if (!inside(place)) continue;
          stroke(
            [
              [place - px(4), bottom - px(4)],
              [place + px(4), bottom + px(4)],
            ],
            color("--worse"),
            1.8,
          );
          stroke(
            [
              [place - px(4), bottom + px(4)],
              [place + px(4), bottom - px(4)],
            ],
            color("--worse"),
            1.8,
          );
        }
        if (!small) for (const change of own.line.changes) labelled.push({own, change});
        if (small)
          for (const change of own.line.changes)
            if (own.index(change.first) !== undefined && inside(x(own.index(change.first))))
              stroke(
                [
                  [x(own.index(change.first)), bbox.top],
                  [x(own.index(change.first)), bbox.top + bbox.height],
                ],
                color(tone(change.moved)),
                1,
                [3, 3],
              );
      }
      // One label for lines that changed at the same commit, and none over another.
      let free = -Infinity;
      const seen = new Set();
      for (const {own, change} of labelled.sort((a, b) => a.own.index(a.change.first) - b.own.index(b.change.first))) {
        const at = own.index(change.first),
          place = at === undefined ? NaN : x(at);
        if (!inside(place) || seen.has(at)) continue;
        seen.add(at);
        const paint = color(tone(change.moved)),
          good = own.index(change.good),
          last = own.index(change.last);
        if (good !== undefined && last !== undefined && last > good + 1) {
          ctx.fillStyle = paint + "14";
          ctx.fillRect(x(good), bbox.top, x(last) - x(good), bbox.height);
        }
        stroke(
          [
            [place, bbox.top - px(4)],
            [place, bbox.top + bbox.height],
          ],
          paint,
          change.large ? 1.2 : 0.8,
          [3, 3],
        );
        const label = `${change.ratio === null ? "" : change.ratio > 1 ? "▲ " : "▼ "}${change.ratio === null ? "from zero" : text.change(change.ratio)}`,
          width = ctx.measureText(label).width;
        const left = Math.min(Math.max(place - width / 2, bbox.left), bbox.left + bbox.width - width);
        if (left < free) continue;
        ctx.fillStyle = paint;
        ctx.fillText(label, left, bbox.top - px(9));
        free = left + width + px(8);
      }
      let room = -Infinity;
      ctx.font = `${px(11)}px ${color("--sans")}`;
      for (const own of small ? [] : frame.lines)
        for (const [at, words] of own.line.ticks) {
          const place = own.index(at) === undefined ? NaN : x(own.index(at)),
            bottom = bbox.top + bbox.height;
          if (!inside(place)) continue;
          stroke(
            [
              [place, bottom - px(7)],
              [place, bottom + px(3)],
            ],
            color("--soft"),
            1.4,
          );
          stroke(
            [
              [place, bbox.top],
              [place, bottom],
            ],
            color("--soft"),
            0.6,
            [1, 5],
          );
          const label = words.length > 34 ? `${words.slice(0, 33)}…` : words,
            width = ctx.measureText(label).width,
            left = Math.min(place + px(4), bbox.left + bbox.width - width);
          if (left < room) continue;
          ctx.fillStyle = color("--soft");
          ctx.fillText(label, left, bottom - px(4));
          room = left + width + px(8);
        }
      pins.forEach((pin, k) => {
        const at = frame.position.get(pin);
        if (at === undefined || !inside(x(at))) return;
        stroke(
          [
            [x(at), bbox.top],
            [x(at), bbox.top + bbox.height],
          ],
          color("--accent"),
          1.2,
        );
        ctx.font = `600 ${px(11)}px ${color("--sans")}`;
        ctx.fillStyle = color("--accent");
        ctx.fillText("AB"[k], x(at) + px(4), bbox.top + px(11));
      });
      // Names at the ends of the lines, where there are several.
      if (!small && frame.lines.length > 1 && frame.lines.length <= 8) {
        ctx.font = `${px(11)}px ${color("--sans")}`;
        ctx.textAlign = "right";
        let above = -Infinity;
        const ends = frame.lines
          .map(own => ({own, at: own.shown.findLastIndex(each => typeof each === "number")}))
          .filter(each => each.at >= 0)
          .sort((a, b) => y(a.own.shown[a.at]) - y(b.own.shown[b.at]));
        for (const {own, at} of ends) {
          const top = Math.max(y(own.shown[at]) - px(6), above + px(13));
          above = top;
          ctx.fillStyle = own.color;
          ctx.fillText(own.label, bbox.left + bbox.width - px(2), top);
        }
      }
      ctx.restore();
    };

  // What stands in the box beside the pointer: the commit, and of each line value, interval, rounds and change to the one before.
  const told = (options, at) => {
    const {frame, format} = options,
      commit = R.index.commits[frame.commits[at]];
    const rows = frame.lines.map(own => {
      const value = own.shown[at],
        failure = own.line.failures.find(each => own.index(each[0]) === at),
        tick = own.line.ticks.find(each => own.index(each[0]) === at);
      if (failure && typeof value !== "number")
        return h("div", null, R.tag("failed"), ` ${failure[1]} `, frame.lines.length > 1 && own.label);
      if (typeof value !== "number") return null;
      let before = at - 1;
      while (before >= 0 && typeof own.shown[before] !== "number") before -= 1;
      const rounds = own.line.rounds[own.nth(at)],
        n = typeof rounds === "number" ? rounds : rounds.length;
      const change = before >= 0 && own.shown[before] > 0 ? text.change(value / own.shown[before]) : "";
      return h(
        "div",
        null,
        frame.lines.length > 1 &&
          h("span", {class: "soft"}, h("i", {class: "dot", style: `background:${own.color}`}), own.label, " "),
        h("b", null, format(value)),
        own.low[at] < own.high[at] && h("span", {class: "soft"}, ` ${format(own.low[at])} … ${format(own.high[at])}`),
        h("span", {class: "soft"}, ` · ${text.counted(n, "round")}`),
        change && h("div", {class: "soft"}, `${change} to the one before`),
        tick && h("div", {class: "soft"}, tick[1]),
      );
    });
    return [
      ...rows.filter(Boolean).slice(0, 9),
      h(
        "div",
        {class: "subject"},
        h("span", {class: "mono"}, R.short(commit.sha)),
        " ",
        commit.tags.map(tag => [h("span", {class: "tag"}, tag), " "]),
        commit.subject.slice(0, 160),
      ),
      h("div", {class: "soft"}, `${commit.author} · ${text.moment(commit.date)}`),
    ];
  };

  R.plugins = options => {
    const {frame, small, onpin, onzoom} = options;
    frame.lines.forEach((own, k) => {
      own.label = options.labels[k];
    });
    const box = h("div", {class: "hover", hidden: true});
    let dragged = false;
    const follow = u => {
      const at = u.cursor.idx;
      if (small || at === null || at === undefined || u.cursor.left < 0) {
        box.hidden = true;
        return;
      }
      box.replaceChildren(...told(options, at));
      box.hidden = false;
      const left = u.cursor.left,
        width = u.over.clientWidth;
      box.style.left = left < width / 2 ? `${left + 14}px` : "";
      box.style.right = left < width / 2 ? "" : `${width - left + 14}px`;
    };
    const ready = u => {
      u.over.append(box);
      u.over.addEventListener("mousedown", () => {
        dragged = false;
      });
      u.over.addEventListener("click", () => {
        if (!dragged && u.cursor.idx !== null && onpin) onpin(frame.commits[u.cursor.idx]);
      });
      u.over.addEventListener("dblclick", () => onzoom?.(null));
    };
    const selected = u => {
      if (u.select.width < 5) return;
      dragged = true;
      const ends = [u.select.left, u.select.left + u.select.width].map(left => u.posToVal(left, "x"));
      const within = frame.xs
        .map((x, at) => [x, at])
        .filter(([x]) => x >= ends[0] && x <= ends[1])
        .map(each => each[1]);
      u.setSelect({left: 0, width: 0, top: 0, height: 0}, false);
      if (within.length > 1) onzoom?.([frame.commits[within[0]], frame.commits[within.at(-1)]]);
    };
    return [{hooks: {draw: painter(options), setCursor: follow, ready, setSelect: selected}}];
  };
})(regress);

// What a chart does: tells what the pointer is at, pins what is clicked, zooms to what is dragged over.
(R => {
  const {h, text} = R;

  // The box beside the pointer: the commit, and of each line its value, interval, rounds and change to the value before.
  const told = (options, at) => {
    const {frame, format} = options,
      commit = R.index.commits[frame.commits[at]];
    const rows = frame.lines.map(curve => {
      const value = curve.shown[at],
        failure = curve.line.failures.find(entry => curve.index(entry[0]) === at),
        tick = curve.line.ticks.find(entry => curve.index(entry[0]) === at);
      if (failure && typeof value !== "number")
        return h("div", null, R.tag("failed"), ` ${failure[1]} `, frame.lines.length > 1 && curve.label);
      if (typeof value !== "number") return null;
      let before = at - 1;
      while (before >= 0 && typeof curve.shown[before] !== "number") before -= 1;
      const rounds = curve.line.rounds[curve.nth(at)],
        n = typeof rounds === "number" ? rounds : rounds.length;
      const change = before >= 0 && curve.shown[before] > 0 && value >= 0 ? text.change(value / curve.shown[before]) : "";
      return h(
        "div",
        null,
        frame.lines.length > 1 &&
          h("span", {class: "soft"}, h("i", {class: "dot", style: `background:${curve.color}`}), curve.label, " "),
        h("b", null, format(value)),
        curve.low[at] < curve.high[at] && h("span", {class: "soft"}, ` ${format(curve.low[at])} … ${format(curve.high[at])}`),
        h("span", {class: "soft"}, ` · ${text.counted(n, "round")}`),
        change && h("div", {class: "soft"}, `${change} to the one before`),
        curve.read &&
          curve.read[at] !== curve.y[at] &&
          h("div", {class: "soft"}, `read as ${text.value(curve.read[at], curve.line.unit)}: corrected for who measured`),
        curve.line.card.length > 0 &&
          h("div", {class: "soft"}, `measured on ${R.card(curve.line.cards[curve.line.card[curve.nth(at)]])}`),
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
      h("div", {class: "soft"}, R.by(commit.author, text.moment(commit.date))),
    ];
  };

  R.plugins = options => {
    const {frame, small, onpin, onzoom} = options;
    frame.lines.forEach((curve, k) => {
      curve.label = options.labels[k];
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
        .map(([, at]) => at);
      u.setSelect({left: 0, width: 0, top: 0, height: 0}, false);
      if (within.length > 1) onzoom?.([frame.commits[within[0]], frame.commits[within.at(-1)]]);
    };
    return [{hooks: {draw: R.painter(options), setCursor: follow, ready, setSelect: selected}}];
  };
})(regress);

// The pinned commits: the round values of each, and one against the other.
(R => {
  const {h, svg, text} = R;

  const strip = (sets, unit) => {
    const all = sets.flatMap(set => set.values),
      low = Math.min(...all),
      high = Math.max(...all),
      width = 420,
      row = 26;
    const start = 22,
      x = value => (high > low ? start + ((value - low) / (high - low)) * (width - start - 10) : width / 2),
      [least, most] = high > low ? text.span(low, high, unit) : [low, high].map(end => text.value(end, unit));
    return svg(
      "svg",
      {
        class: "strip",
        width: "100%",
        viewBox: `0 0 ${width} ${sets.length * row + 18}`,
        role: "img",
        "aria-label": `round values from ${least} to ${most}`,
      },
      sets.map((set, k) => [
        svg("line", {x1: start, x2: width - 10, y1: k * row + 13, y2: k * row + 13, class: "base"}),
        svg("text", {x: 0, y: k * row + 17}, set.name),
        set.values.map(value =>
          svg("circle", {cx: x(value), cy: k * row + 13, r: 4}, svg("title", null, text.value(value, unit))),
        ),
        svg("line", {x1: x(set.middle), x2: x(set.middle), y1: k * row + 4, y2: k * row + 22, class: "middle"}),
      ]),
      svg("text", {x: high > low ? start : width / 2, y: sets.length * row + 14, "text-anchor": high > low ? "start" : "middle"}, least),
      high > low && svg("text", {x: width - 10, y: sets.length * row + 14, "text-anchor": "end"}, most),
    );
  };
  const pointOf = (curve, frame, commit) => {
    const at = frame.position.get(commit),
      k = at === undefined ? undefined : curve.nth(at);
    if (k === undefined) return null;
    const rounds = curve.line.rounds[k];
    return {
      value: curve.line.values[k],
      low: curve.line.lows[k],
      high: curve.line.highs[k],
      rounds: typeof rounds === "number" ? [] : rounds,
      n: typeof rounds === "number" ? rounds : rounds.length,
      at,
    };
  };

  R.pinned = (chart, pins, name, clear) => {
    const {frame} = chart,
      curve = frame.lines[0],
      unit = curve.line.unit;
    const points = pins.map(pin => pointOf(curve, frame, pin));
    const pinCard = (pin, k) => {
      const commit = R.index.commits[pin],
        point = points[k];
      return h(
        "div",
        {class: "pin"},
        h(
          "div",
          null,
          h("b", {class: "letter"}, "AB"[k]),
          " ",
          R.commitLink(commit),
          " ",
          commit.tags.map(tag => [h("span", {class: "tag"}, tag), " "]),
          commit.subject,
        ),
        h("div", {class: "soft"}, R.by(commit.author, text.moment(commit.date))),
        point
          ? h(
              "div",
              null,
              h("b", null, text.value(point.value, unit)),
              h(
                "span",
                {class: "soft"},
                point.low < point.high ? ` ${text.span(point.low, point.high, unit).join(" … ")}` : "",
                ` · ${text.counted(point.n, "round")}`,
              ),
            )
          : h("div", {class: "soft"}, "no value here"),
      );
    };
    const sets = points
      .map(
        (point, k) =>
          point && {name: "AB"[k], values: point.rounds.length ? point.rounds : [point.value], middle: point.value},
      )
      .filter(Boolean);
    const against = () => {
      const [a, b] = points;
      if (!a || !b || !(a.value > 0 && b.value >= 0)) return null;
      const [from, to] = a.at < b.at ? [a.at, b.at] : [b.at, a.at];
      const between = curve.line.changes.filter(change => curve.index(change.first) > from && curve.index(change.first) <= to);
      return h(
        "p",
        null,
        "B against A: ",
        R.moved(b.value / a.value, between.length ? R.moveOf(b.value / a.value, curve.line.better) : ""),
        between.length
          ? `; ${text.counted(between.length, "change point")} between them: ${between.map(change => `${text.change(change.ratio)} (${[change.moved, R.small(change, curve.line.threshold)].filter(Boolean).join(", ")})`).join(", ")}.`
          : "; no change point between them: the history takes this for noise.",
      );
    };
    const shas = pins.map(pin => R.short(R.index.commits[pin].sha));
    return h(
      "section",
      {class: "pinned", "aria-label": "Pinned commits"},
      h("h2", null, pins.length > 1 ? "A and B" : "Pinned: click another commit to compare"),
      h("div", {class: "pins"}, pins.map(pinCard)),
      against(),
      sets.length > 0 && strip(sets, unit),
      h(
        "div",
        {class: "actions"},
        pins.length > 1 && R.copyButton("regress check", `regress check ${shas[0]} ${shas[1]} -b ${text.quoted(name)}`),
        pins.length > 1 &&
          h("a", {class: "button", href: R.link("compare", "", {a: shas[0], b: shas[1]})}, "compare all benchmarks"),
        h("button", {type: "button", onclick: clear}, "unpin"),
      ),
    );
  };
})(regress);

// The implementations of a benchmark side by side: which commit, the charts, where the fastest changes, and the table.
(R => {
  const {h, text} = R;
  const {SHAPES, plain, tone, panelsOf, fastest, ranked, answer, drawn} = R.sides;
  const MOST_CHARTS = 12;

  const sha = (shard, sides) => shard.commits[sides.commit];
  const commitAt = (shard, sides) => R.commitAt.get(sha(shard, sides));

  // The commits offered in this place and metric, the newest first, and the one that the address names, else the newest.
  const chosen = (shard, view) => {
    const offered = shard.sides.filter(
      offer => offer.place === view.lines[0].place && offer.metric === view.metric && commitAt(shard, offer) !== undefined,
    );
    return {offered, sides: offered.find(offer => sha(shard, offer) === R.get("side")) ?? offered[0]};
  };
  const named = (shard, sides) => {
    const at = commitAt(shard, sides),
      {tags} = R.index.commits[at];
    return [tags[0], R.short(sha(shard, sides))].filter(Boolean).join(" ");
  };

  const table = (shard, sides, view) =>
    R.table({
      rows: sides.combinations,
      caption: `Implementations of ${shard.name} at ${named(shard, sides)}`,
      name: `${shard.name}-implementations`,
      columns: [
        ...sides.param_names.map((name, k) => ({
          key: name,
          label: name,
          num: k === sides.size,
          value: combination => (k === sides.size ? combination.size : plain(combination.params[k])),
          cell: combination => plain(combination.params[k]),
        })),
        {
          key: "fastest",
          label: "Fastest",
          value: combination => fastest(combination) || answer(combination),
          cell: combination => [
            fastest(combination) ? h("b", null, fastest(combination)) : h("span", {class: "answer"}, answer(combination)),
            fastest(combination) && h("span", {class: "soft small"}, ` ${ahead(sides, combination)}`),
            combination.reasons.map(reason => h("div", {class: "soft small answer"}, reason)),
          ],
        },
        ...sides.names.map((name, k) => ({
          key: name,
          label: `${SHAPES[k % 4]} ${name}`,
          num: true,
          value: combination => combination.times[k]?.value ?? null,
          cell: combination => cell(shard, sides, combination.times[k], fastest(combination) === name, view),
        })),
      ],
    });
  const ahead = (sides, combination) => {
    const after = ranked(sides, combination)[1];
    return after?.time.ratio ? `then ${after.name} ${text.change(after.time.ratio)}` : "";
  };
  // A time leads to its history.
  const cell = (shard, sides, time, best, view) => {
    if (!time) return text.MISSING;
    if (time.value === null) return h("span", {class: "soft"}, time.failure);
    const words = text.value(time.value, sides.unit),
      link = R.link("benchmark", shard.name, {c: time.params, metric: view.metric, at: R.get("at")});
    return h("a", {href: link}, best ? h("b", null, words) : words);
  };

  // Null where there is nothing to compare. `drawn` draws the charts, once the node stands in the page.
  R.implementations = (shard, view, go) => {
    const {offered, sides} = chosen(shard, view);
    if (!sides) return null;
    const panels = panelsOf(sides),
      shown = panels.slice(0, MOST_CHARTS);
    const nodes = shown.map(panel =>
      h("div", {
        class: "plot sides-plot",
        role: "img",
        "aria-label": `${R.metric(sides.metric)} of ${sides.names.join(", ")} over ${sides.param_names[sides.size]}${panel.title && `, ${panel.title}`}: ${panel.words}; the same data is in a table below`,
      }),
    );
    const size = sides.size === null ? "" : sides.param_names[sides.size];
    const node = h(
      "section",
      {class: "sides"},
      h("h2", null, size ? `Implementations by ${size}` : "Implementations"),
      h(
        "div",
        {class: "filters"},
        h(
          "label",
          {class: "small"},
          h("span", {class: "soft"}, `${R.metric(sides.metric)} at `),
          offered.length > 1
            ? h(
                "select",
                {data: {param: "side"}, onchange: event => go({side: event.target.value})},
                offered.map((offer, at) =>
                  h(
                    "option",
                    {value: sha(shard, offer), selected: offer === sides},
                    named(shard, offer) + (at ? "" : ", the newest"),
                  ),
                ),
              )
            : h("span", {class: "mono"}, named(shard, sides)),
        ),
        size &&
          h(
            "span",
            {class: "legend"},
            sides.names.map(
              (name, k) =>
                sides.combinations.some(combination => combination.times[k]?.value > 0) &&
                h(
                  "span",
                  null,
                  h("span", {style: `color:var(${tone(k)})`, "aria-hidden": "true"}, `${SHAPES[k % 4]} `),
                  name,
                ),
            ),
            h("span", {class: "soft"}, "◯ the fastest"),
          ),
      ),
      h(
        "div",
        {class: shown.length > 1 ? "sides-many" : null},
        shown.map((panel, at) =>
          h(
            "figure",
            {class: "side"},
            panel.title && h("figcaption", null, panel.title),
            nodes[at],
            h("p", {class: "crossover"}, h("span", {class: "soft"}, "Fastest: "), panel.words),
          ),
        ),
      ),
      panels.length > shown.length &&
        h("p", {class: "soft small"}, `${panels.length - shown.length} more combinations are in the table.`),
      (made => [made.node, made.exports])(table(shard, sides, view)),
    );
    return {node, drawn: () => shown.map((panel, at) => drawn(nodes[at], panel, sides, go))};
  };
})(regress);

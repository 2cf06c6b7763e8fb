// What the implementations of a benchmark come to at a commit, as the chart and the table of them say it.
(R => {
  const {h, text} = R;
  const SHAPES = ["●", "■", "▲", "◆"];

  const plain = param => param.replace(/^(['"])(.*)\1$/s, "$2");
  const tone = k => `--l${k % 8}`;

  // One for each combination of what is neither the implementation nor the size, by size; none if there is no size.
  const panelsOf = sides => {
    if (sides.size === null) return [];
    const found = new Map();
    for (const each of sides.combinations) {
      const key = each.params.filter((_, k) => k !== sides.size).join(", ");
      if (!found.has(key)) found.set(key, []);
      found.get(key).push(each);
    }
    const names = sides.param_names.filter((_, k) => k !== sides.size);
    return sides.crossovers
      .map(([rest, words]) => ({
        title: rest.map((value, at) => `${names[at]} ${plain(value)}`).join(", "),
        words,
        combinations: found.get(rest.join(", ")).sort((a, b) => a.size - b.size),
      }))
      .filter(panel => panel.combinations.some(each => each.leaders.length));
  };
  const fastest = combination => (combination.outcome === "fastest" ? combination.leaders[0] : "");
  // Neighbours with the same outcome: what to call it, the longest first, and the implementation that it is about.
  const stretches = (combinations, names) => {
    const found = [];
    combinations.forEach((each, at) => {
      const own = names.filter(name => each.leaders.includes(name)),
        name = own.length === 1 ? own[0] : "",
        labels = {
          fastest: [name, SHAPES[names.indexOf(name) % 4]],
          alone: [`only ${name}`, SHAPES[names.indexOf(name) % 4]],
          "no difference shown": [`${own.join(", ")}: no difference`, "no difference", "="],
          "nothing measured": ["nothing measured", "nothing", "–"],
        }[each.outcome];
      if (found.at(-1)?.labels[0] === labels[0]) found.at(-1).last = at;
      else found.push({labels, name, first: at, last: at});
    });
    return found;
  };
  const ranked = (sides, combination) =>
    sides.names
      .map((name, k) => ({name, k, time: combination.times[k]}))
      .filter(each => each.time)
      .sort((a, b) => (a.time.value ?? Infinity) - (b.time.value ?? Infinity));
  // In words, for the table, the box at the pointer and readers that do not see: "triton is the fastest", "only triton".
  const answer = ({outcome, leaders}) =>
    outcome === "fastest"
      ? `${leaders[0]} is the fastest`
      : outcome === "alone"
        ? `only ${leaders[0]}`
        : outcome === "no difference shown"
          ? `${outcome}: ${leaders.join(", ")}`
          : outcome;
  const told = (sides, combination) => [
    h(
      "div",
      null,
      h("b", null, `${sides.param_names[sides.size]} ${plain(combination.params[sides.size])}`),
      ` · ${answer(combination)}`,
    ),
    ...ranked(sides, combination).map(({name, k, time}) =>
      h(
        "div",
        null,
        h("span", {style: `color:var(${tone(k)})`, "aria-hidden": "true"}, `${SHAPES[k % 4]} `),
        `${name} `,
        time.value === null
          ? h("span", {class: "soft"}, time.failure)
          : [
              h("b", null, text.value(time.value, sides.unit)),
              time.low < time.high &&
                h("span", {class: "soft"}, ` ${text.span(time.low, time.high, sides.unit).join(" … ")}`),
              time.ratio !== null && h("span", {class: "soft"}, ` ${text.change(time.ratio)}`),
            ],
      ),
    ),
  ];

  R.sides = {SHAPES, plain, tone, panelsOf, fastest, stretches, ranked, answer, told};
})(regress);

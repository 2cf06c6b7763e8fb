// The implementations of a benchmark at a commit, in the words, shapes and colours that the chart and the table share.
(R => {
  const {h, text} = R;
  const SHAPES = ["●", "■", "▲", "◆"];

  const plain = param => param.replace(/^(['"])(.*)\1$/s, "$2");
  const tone = k => `--l${k % 8}`;

  // A panel for each combination of the parameters other than implementation and size, its times by size; none without a size.
  const panelsOf = sides => {
    if (sides.size === null) return [];
    const byRest = new Map();
    for (const combination of sides.combinations) {
      const key = combination.params.filter((_, k) => k !== sides.size).join(", ");
      if (!byRest.has(key)) byRest.set(key, []);
      byRest.get(key).push(combination);
    }
    const names = sides.param_names.filter((_, k) => k !== sides.size);
    return sides.crossovers
      .map(([rest, words]) => ({
        title: rest.map((value, at) => `${names[at]} ${plain(value)}`).join(", "),
        words,
        combinations: byRest.get(rest.join(", ")).sort((a, b) => a.size - b.size),
      }))
      .filter(panel => panel.combinations.some(combination => combination.leaders.length));
  };
  const fastest = combination => (combination.outcome === "fastest" ? combination.leaders[0] : "");
  // Neighbouring sizes with the same outcome: labels for it, the longest first, and the implementation that it is about.
  const stretches = (combinations, names) => {
    const joined = [];
    combinations.forEach((combination, at) => {
      const own = names.filter(name => combination.leaders.includes(name)),
        name = own.length === 1 ? own[0] : "",
        labels = {
          fastest: [name, SHAPES[names.indexOf(name) % 4]],
          alone: [`only ${name}`, SHAPES[names.indexOf(name) % 4]],
          "no difference shown": [`${own.join(", ")}: no difference`, "no difference", "="],
          "nothing measured": ["nothing measured", "nothing", "–"],
        }[combination.outcome];
      if (joined.at(-1)?.labels[0] === labels[0]) joined.at(-1).last = at;
      else joined.push({labels, name, first: at, last: at});
    });
    return joined;
  };
  const ranked = (sides, combination) =>
    sides.names
      .map((name, k) => ({name, k, time: combination.times[k]}))
      .filter(contender => contender.time)
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

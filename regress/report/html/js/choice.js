// Which case, metric and place of a benchmark are shown, and how a reader chooses others.
(R => {
  const {h} = R;
  const FIRST = ["gpu_time", "wall_time", "host_time", "peak_memory"];
  const rank = name => FIRST.indexOf(name) + 1 || FIRST.length + 1;

  // Case, metric and place that are shown: as the hash says, else those of the worst row of the benchmark.
  const chosen = shard => {
    const rows = R.index.rows
      .filter(row => row.name === shard.name)
      .sort((a, b) => R.urgency(a) - R.urgency(b));
    const fits = row =>
      (!R.get("metric") || row.metric === R.get("metric")) && (!R.state.query.has("c") || row.params === R.get("c"));
    const worst = rows.find(fits) ?? rows.find(row => !R.get("metric") || row.metric === R.get("metric")) ?? rows[0];
    const metrics = [...new Set(shard.lines.map(line => line.metric))].sort((a, b) => rank(a) - rank(b));
    const metric = metrics.includes(R.get("metric")) ? R.get("metric") : (worst?.metric ?? metrics[0]);
    const cases = [...new Map(shard.lines.map(line => [line.params.join(", "), line.params])).entries()];
    const wanted = R.state.query.has("c") ? R.get("c") : worst?.params;
    const [name, params] = cases.find(([known]) => known === wanted) ?? cases[0] ?? ["", []];
    const every = shard.lines.filter(line => line.metric === metric && line.params.join(", ") === name);
    const filter = R.placeFilter(),
      shown = every.filter(line => filter.shows(R.placeOf.get(line.place)));
    const asked = R.get("at") === "all" ? "all" : R.placeNamed(R.get("at")),
      worstPlace = worst ? R.index.places[worst.place].id : "";
    const place =
      asked === "all"
        ? "all"
        : (
            every.find(line => line.place === asked) ??
            shown.find(line => line.place === worstPlace) ??
            shown[0] ??
            every[0]
          )?.place;
    const newest = line => line.at.at(-1) ?? -1;
    return {
      metrics,
      metric,
      cases,
      name,
      params,
      every,
      place,
      lines:
        place === "all" ? [...every].sort((a, b) => newest(b) - newest(a)) : every.filter(line => line.place === place),
    };
  };
  const label = place => R.index.places[R.placeOf.get(place)]?.label ?? place;
  const pins = () =>
    ["pin", "with"]
      .map(R.get)
      .map(R.findCommit)
      .filter(at => at >= 0);

  const picker = (shard, view, go) => {
    if (view.cases.length < 2) return null;
    return h(
      "span",
      {class: "picker"},
      shard.param_names.map((name, k) => {
        const values = [...new Set(view.cases.map(([, params]) => params[k]))];
        if (values.length < 2) return null;
        const choose = event => {
          const wanted = view.params.map((param, at) => (at === k ? event.target.value : param)),
            score = params =>
              params.filter((param, at) => param === wanted[at]).length + (params[k] === wanted[k] ? 100 : 0);
          go({c: [...view.cases].sort((a, b) => score(b[1]) - score(a[1]))[0][0]});
        };
        return h(
          "label",
          null,
          h("span", {class: "soft"}, name),
          " ",
          h(
            "select",
            {onchange: choose, data: {param: name}},
            values.map(value => h("option", {value, selected: value === view.params[k]}, value.slice(0, 60))),
          ),
        );
      }),
    );
  };
  const choice = (labelled, values, current, go, words = value => value) =>
    values.length < 2
      ? null
      : h(
          "span",
          {class: "chips", role: "group", "aria-label": labelled},
          values.map(value =>
            h(
              "button",
              {
                type: "button",
                class: "chip",
                "aria-pressed": String(value === current),
                data: {chip: value},
                onclick: () => go(value),
              },
              words(value),
            ),
          ),
        );

  R.choice = {FIRST, rank, chosen, label, pins, picker, choice};
})(regress);

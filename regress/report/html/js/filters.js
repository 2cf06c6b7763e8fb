// What of the report is looked at: machine, GPU and environment (which are remembered), metrics, statuses, and a search.
(R => {
  const PLACED = [
    ["machine", "machine"],
    ["gpu", "gpu"],
    ["environment", "env"],
  ];

  // Reads what the hash says, else what was chosen last; the choice is put into the hash, so that a link says it too.
  R.placeFilter = () => {
    const wanted = {};
    for (const [field, key] of PLACED) {
      const known = new Set(R.index.places.map(place => place[field]));
      const asked = R.state.query.has(key) ? R.get(key) : R.remembered(key);
      if (asked && known.has(asked)) wanted[field] = asked;
    }
    const shown = R.index.places.map(place => Object.entries(wanted).every(([field, value]) => place[field] === value));
    return {
      wanted,
      shows: at => shown[at],
      all: !Object.keys(wanted).length,
      places: R.index.places.map((_, at) => at).filter(at => shown[at]),
    };
  };
  R.placeControls = onchange =>
    PLACED.map(([field, key]) => {
      const values = [...new Set(R.index.places.map(place => place[field]).filter(Boolean))];
      if (values.length < 2) return null;
      const {wanted} = R.placeFilter();
      const choose = event => {
        R.remember(key, event.target.value);
        R.put({[key]: event.target.value || "all"});
        onchange();
      };
      const name = {machine: "Machine", gpu: "GPU", environment: "Environment"}[field];
      const node = R.h(
        "select",
        {onchange: choose, "aria-label": name, data: {filter: key}},
        R.h("option", {value: ""}, `every ${name === "GPU" ? name : name.toLowerCase()}`),
        values.map(value => R.h("option", {value, selected: wanted[field] === value}, value)),
      );
      return node;
    });
  // Chips that can each be on; the hash has those that are, by `key`.
  R.chips = (label, key, values, onchange, text = value => value) =>
    R.h(
      "span",
      {class: "chips", role: "group", "aria-label": label},
      values.map(value =>
        R.h(
          "button",
          {
            type: "button",
            class: "chip",
            "aria-pressed": String(R.list(key).includes(value)),
            data: {chip: value},
            onclick: event => {
              const on = R.list(key).includes(value);
              R.put({[key]: (on ? R.list(key).filter(chosen => chosen !== value) : [...R.list(key), value]).join(",")});
              event.currentTarget.setAttribute("aria-pressed", String(!on));
              onchange();
            },
          },
          text(value),
        ),
      ),
    );
  R.searchBox = onchange =>
    R.h("input", {
      type: "search",
      id: "search",
      placeholder: "Search: softmax -float32",
      "aria-label": "Search; a minus excludes a word",
      value: R.get("q"),
      autocomplete: "off",
      spellcheck: "false",
      oninput: event => {
        R.put({q: event.target.value}, true);
        onchange();
      },
    });
})(regress);

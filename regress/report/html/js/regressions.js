// Every change of level, one row a cause: what is open first, the worst first, then what was seen once, then what was.
(R => {
  const {h, text} = R;
  const PAGE = 60;

  R.pages.regressions = () => {
    const {index} = R,
      holder = h("div", {class: "events"}),
      count = h("span", {class: "soft right", role: "status"}),
      tail = h("div", null);
    const metrics = [...new Set(index.events.map(event => event.metric))],
      authors = event => event.suspects.map(suspect => suspect.author).join(" ");
    const haystack = event =>
      `${index.entries[event.benchmark].name} ${event.params} ${R.metric(event.metric)} ${event.metric} ${event.suspects.map(suspect => `${suspect.sha} ${suspect.subject}`).join(" ")} ${authors(event)}`.toLowerCase();
    const haystacks = new Map(index.events.map(event => [event, haystack(event)]));
    let shown = PAGE;
    const draw = () => {
      const places = R.placeFilter(),
        match = R.search.matcher(R.get("q")),
        kinds = R.list("metric"),
        states = R.list("state"),
        moves = R.list("moved"),
        all = R.list("size").includes("small");
      const matching = index.events.filter(
        event =>
          event.places.some(places.shows) &&
          (kinds.length ? kinds.includes(event.metric) : event.gates) &&
          (!states.length || states.includes(event.state)) &&
          (!moves.length || moves.includes(event.moved)) &&
          (all || event.large) &&
          match(haystacks.get(event)),
      );
      const groups = R.causes(matching);
      if (R.get("sort") === "newest") groups.sort(([a], [b]) => b.first - a.first);
      count.textContent = `${matching.length} of ${index.events.length}${groups.length < matching.length ? ` in ${text.counted(groups.length, "row")}` : ""}`;
      holder.replaceChildren(...groups.slice(0, shown).map(R.causeCard));
      if (!matching.length)
        holder.replaceChildren(h("p", {class: "empty"}, "Nothing matches."));
      const exported = () => ({
        heads: [
          "benchmark",
          "params",
          "metric",
          "moved",
          "state",
          "change",
          "low",
          "high",
          "before",
          "after",
          "good",
          "first",
          "suspects",
          "authors",
          "cases",
          "places",
          "reasons",
          "acknowledged",
        ],
        rows: groups.flat().map(event => [
          index.entries[event.benchmark].name,
          event.params,
          event.metric,
          event.moved,
          event.state,
          event.ratio,
          event.low,
          event.high,
          event.before,
          event.after,
          index.commits[event.good].sha,
          index.commits[event.first].sha,
          event.suspects_n,
          [...new Set(event.suspects.map(suspect => suspect.author))].join("; "),
          event.cases,
          event.places.map(at => index.places[at].label).join("; "),
          event.reasons.join("; "),
          event.acknowledged?.join(" ").trim() ?? "",
        ]),
      });
      tail.replaceChildren(
        ...[
          groups.length > shown &&
            h(
              "button",
              {
                type: "button",
                class: "more",
                onclick: () => {
                  shown += PAGE;
                  draw();
                },
              },
              `Show more of ${groups.length}`,
            ),
          R.exports.buttons("changes", exported),
        ].filter(Boolean),
      );
    };
    draw();
    const present = (values, key) => values.filter(value => index.events.some(event => event[key] === value));
    if (!index.events.length) return [h("h1", null, "Changes"), h("p", {class: "lede"}, "No change is found in this history.")];
    const worse = index.events.filter(event => event.gates && event.large && event.moved === "regressed"),
      [open, tentative, relapsed] = ["open", "tentative", "relapsed"].map(
        state => worse.filter(event => event.state === state).length,
      ),
      sure = worse.length - tentative - relapsed;
    return [
      h("h1", null, "Changes"),
      h(
        "p",
        {class: "lede"},
        `${sure ? text.counted(sure, "regression") : "No regression"} ${index.left_out ? "among those listed here" : "in this history"}${sure ? `, ${open} of them open` : ""}${tentative ? `; ${tentative}${sure ? " more" : ""} tentative, to be measured again` : ""}${relapsed ? `; ${text.counted(relapsed, "short improvement")} lost again` : ""}. One row is one cause: what the same commits changed in the same places, or what moved at once.`,
        // One file has no feed beside it.
        document.querySelector("link[rel=alternate]") && [" ", h("a", {href: "feed.xml"}, "Feed of what is open"), "."],
      ),
      h(
        "div",
        {class: "filters"},
        R.searchBox(draw),
        R.placeControls(draw),
        R.chips("State", "state", present(R.states, "state"), draw),
        R.chips(
          "Direction",
          "moved",
          present(["regressed", "improved", "changed"], "moved"),
          draw,
          moved => `${R.sign(moved)} ${moved}`,
        ),
        R.chips("Size", "size", ["small"], draw, () => "also what does not count"),
        R.chips("Metric", "metric", metrics.length > 1 ? metrics : [], draw, R.metric),
        R.chips("Order", "sort", ["newest"], draw, () => "newest first"),
        count,
      ),
      holder,
      tail,
      R.leftOut(),
    ];
  };
})(regress);

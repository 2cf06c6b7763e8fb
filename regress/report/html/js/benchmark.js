// One benchmark: its history in a chart, what is pinned, other metrics beside it, its parameters, and the command to run it.
(R => {
  const {h, text} = R;
  const {FIRST, rank, chosen, label, pins, picker, choice} = R.choice;
  const {verdict, facts} = R.facts;
  const {changes, values, noted} = R.detail;

  const COLOURED = 40;
  // Places of which the line is switched off, by their numbers.
  const hidden = () => new Set(R.list("off").map(at => R.index.places[at]?.id));
  // Of several lines: what each is called, and a switch for it.
  const legend = (view, go) => {
    if (view.lines.length < 2) return null;
    const off = hidden(),
      shown = view.lines.filter(line => !off.has(line.place));
    const toggled = at => (R.list("off").includes(at) ? R.list("off").filter(place => place !== at) : [...R.list("off"), at]).join(",");
    return h(
      "div",
      {class: "chips legend", role: "group", "aria-label": "Lines"},
      view.lines.map(line => {
        const at = String(R.placeOf.get(line.place)),
          k = shown.indexOf(line);
        return h(
          "button",
          {
            type: "button",
            class: "chip",
            "aria-pressed": String(k >= 0),
            title: R.placeNames(Number(at)),
            data: {chip: `line ${at}`},
            onclick: () => go({off: toggled(at)}),
          },
          k >= 0 && shown.length <= COLOURED && h("i", {class: "dot", style: `background:${R.lineColor(k, shown.length)}`}),
          label(line.place),
        );
      }),
    );
  };
  const eventsOf = (shard, view) =>
    R.eventsOf(
      shard.name,
      view.metric,
      view.lines.map(line => R.placeOf.get(line.place)),
    );
  // The change that is asked for, or what is open: who may be to blame, how sure it is, and what to run next.
  const change = (shard, view) => {
    const events = eventsOf(shard, view),
      asked = R.findCommit(R.get("change")),
      held = view.lines
        .flatMap(line => line.changes)
        .filter(point => point.large && point.moved === "regressed" && !["recovered", "relapsed"].includes(point.state))
        .map(point => R.commitAt.get(shard.commits[point.first]))
        .sort((a, b) => b - a),
      alike = events.filter(event => event.moved === "regressed"),
      shown = asked >= 0 ? R.eventAt(events, asked) : held.length > 0 && R.eventAt(alike, held[0]);
    // What it comes from stands below, with all that was explained of the case.
    return shown && h("section", {class: "events", id: "change"}, R.eventCard({...shown, told: null}));
  };

  R.pages.benchmark = async () => {
    const entry = R.index.entries[R.entryOf.get(R.state.name)];
    if (!entry)
      return [
        h("h1", null, "There is no benchmark of that name"),
        h("p", null, R.state.name),
        h("p", null, h("a", {href: R.link("overview", "", {q: R.state.name.split(".").at(-1)})}, "Search for it")),
      ];
    const shard = await R.shard(entry),
      page = h("div", {class: "benchmark"});
    let charts = [];
    const go = changes => {
      R.put(changes);
      draw();
    };
    const draw = () => {
      charts.forEach(chart => chart.destroy());
      charts = [];
      const view = {...chosen(shard), shard},
        marked = pins();
      if (!view.lines.length) {
        page.replaceChildren(
          h("h1", {class: "mono"}, shard.name),
          h(
            "p",
            {class: "lede"},
            "It has no value at any commit of this report. ",
            h("a", {href: R.link("failures")}, "Failures"),
          ),
        );
        return;
      }
      const focus = document.activeElement?.closest?.(".benchmark") ? document.activeElement : null,
        held = focus && {chip: focus.dataset.chip, param: focus.dataset.param, toggle: focus.dataset.toggle};
      const plot = h("div", {
        class: "plot",
        role: "img",
        "aria-label": `${R.metric(view.metric)} of ${shard.name} over commits; the same data is in a table below`,
      });
      const toggle = (key, value, words) =>
        h(
          "button",
          {
            type: "button",
            class: "chip",
            "aria-pressed": String(R.get(key) === value),
            data: {toggle: words},
            onclick: () => go({[key]: R.get(key) === value ? "" : value}),
          },
          words,
        );
      const released = R.index.release !== "";
      const bar = h(
        "div",
        {class: "filters"},
        toggle("x", "date", "by date"),
        toggle("log", "1", "log axis"),
        released && toggle("rel", "tag", `relative to ${R.referenceName()}`),
        toggle("rel", "first", "relative to the first"),
        marked.length > 0 && toggle("rel", "pin", "relative to A"),
        R.get("z") && h("button", {type: "button", class: "chip", onclick: () => go({z: ""})}, "whole history"),
        h("button", {type: "button", class: "chip", onclick: () => R.savePicture(main, shard, view)}, "save as PNG"),
        h("span", {class: "soft small right wide"}, "drag to zoom · click to pin · n p changes · ? keys"),
      );
      const pinnedAt = h("div", null),
        others = h("div", {class: "together"});
      const places = [...new Set(view.every.map(line => line.place))];
      const sides = R.implementations(shard, view, go);
      page.replaceChildren(
        ...[
          h(
            "p",
            {class: "crumb"},
            h("a", {href: "#/"}, "Overview"),
            " / ",
            h("a", {href: R.link("overview", "", {q: shard.name.split(".")[0]})}, shard.name.split(".")[0]),
          ),
          h(
            "h1",
            {class: "mono"},
            R.name(shard.name),
            view.name && h("span", {class: "params"}, R.name(`(${view.name})`)),
          ),
          verdict(shard, view),
          h(
            "div",
            {class: "filters"},
            picker(shard, view, go),
            choice("Metric", view.metrics, view.metric, metric => go({metric, z: R.get("z")}), R.metric),
            places.length > 8
              ? h(
                  "label",
                  null,
                  h("span", {class: "soft"}, "where "),
                  h(
                    "select",
                    {onchange: event => go({at: event.target.value})},
                    [...places, "all"].map(place =>
                      h(
                        "option",
                        {value: place, selected: place === view.place, title: place === "all" ? null : R.placeNames(R.placeOf.get(place))},
                        place === "all" ? "everywhere" : label(place),
                      ),
                    ),
                  ),
                )
              : choice(
                  "Where",
                  places.length > 1 ? [...places, "all"] : [],
                  view.place,
                  at => go({at}),
                  place => (place === "all" ? "everywhere" : label(place)),
                ),
          ),
          h("div", {class: "two"}, h("div", null, plot, legend(view, go), bar, pinnedAt), facts(view)),
          change(shard, view),
          changes(shard, view),
          R.account.accounts(shard, view),
          others,
          sides
            ? sides.node
            : R.sizes(
                shard,
                shard.lines.filter(line => line.metric === view.metric && line.place === view.lines[0].place),
                params => go({c: params.join(", ")}),
              ),
          h("h2", null, "Measure it again"),
          R.command(
            `regress check ${marked.length > 1 ? marked.map(at => R.short(R.index.commits[at].sha)).join(" ") : "HEAD~1"} -b ${text.quoted(shard.name + (view.name && `(${view.name})`))}`,
          ),
          values(shard, view),
          shard.code && h("details", null, h("summary", null, "Its code"), h("pre", {tabindex: "0"}, shard.code)),
        ].filter(Boolean),
      );
      const zoomed = R.get("z").split("..").map(R.findCommit);
      const visible = view.lines.filter(line => !hidden().has(line.place)),
        shown = noted(shard, view.name, visible.length ? visible : view.lines);
      const main = R.chart({
        node: plot,
        shard,
        lines: shown,
        labels: shown.map(line => label(line.place)),
        colors: shown.length <= COLOURED,
        height: 330,
        byDate: R.get("x") === "date",
        log: R.get("log") === "1",
        relative: R.get("rel"),
        pins: marked,
        zoom: zoomed,
        sync: "commits",
        onpin: commit => {
          const sha = R.index.commits[commit].sha;
          if (R.eventAt(eventsOf(shard, view), commit)) R.put({change: sha});
          go(marked.length === 1 && marked[0] !== commit ? {with: sha} : {pin: sha, with: ""});
        },
        onzoom: ends => go({z: ends && ends.map(at => R.index.commits[at].sha).join("..")}),
      });
      charts.push(main, ...(sides?.drawn() ?? []));
      if (marked.length)
        pinnedAt.replaceChildren(
          R.pinned(main, marked, shard.name + (view.name && `(${view.name})`), () =>
            go({pin: "", with: "", rel: R.get("rel") === "pin" ? "" : R.get("rel")}),
          ),
        );
      const beside = shard.lines
        .filter(
          line =>
            line.place === view.lines[0].place &&
            line.params.join(", ") === view.name &&
            line.metric !== view.metric &&
            FIRST.includes(line.metric) &&
            line.values.length > 1,
        )
        .sort((a, b) => rank(a.metric) - rank(b.metric));
      if (beside.length) others.append(h("h2", null, "At the same commits"));
      for (const line of beside) {
        const smallPlot = h("div", {
          class: "plot small",
          role: "img",
          "aria-label": `${R.metric(line.metric)} over the same commits, now ${text.value(line.values.at(-1), line.unit)}`,
        });
        others.append(
          h(
            "div",
            {class: "beside"},
            h(
              "div",
              null,
              h(
                "button",
                {type: "button", class: "quiet", onclick: () => go({metric: line.metric})},
                R.metric(line.metric),
              ),
              h("div", null, text.value(line.values.at(-1), line.unit)),
            ),
            smallPlot,
          ),
        );
        charts.push(
          R.chart({
            node: smallPlot,
            shard,
            lines: [line],
            labels: [label(line.place)],
            height: 92,
            small: true,
            byDate: R.get("x") === "date",
            zoom: zoomed,
            sync: "commits",
            pins: marked,
          }),
        );
      }
      if (held)
        [...page.querySelectorAll("[data-chip],[data-param],[data-toggle]")]
          .find(
            control =>
              control.dataset.chip === held.chip &&
              control.dataset.param === held.param &&
              control.dataset.toggle === held.toggle,
          )
          ?.focus();
      R.live = {chart: main, go, pins: marked, command: () => page.querySelector(".command pre").textContent};
    };
    // The chart needs its width, so it is drawn when the page stands.
    const drawn = () => draw();
    document.addEventListener("drawn", drawn, {once: true});
    document.addEventListener("themed", draw);
    R.leave = () => {
      document.removeEventListener("themed", draw);
      document.removeEventListener("drawn", drawn);
      charts.forEach(chart => chart.destroy());
      R.live = null;
    };
    return page;
  };
})(regress);

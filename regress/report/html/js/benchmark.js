// One benchmark: its history in a chart, what is pinned, the other metrics beside it, its parameters, and the command to run it.
(R => {
  const {h, text} = R;
  const FIRST = ["gpu_time", "wall_time", "host_time", "peak_memory"],
    TOGETHER = ["gpu_time", "wall_time", "host_time", "peak_memory"];
  const rank = name => FIRST.indexOf(name) + 1 || FIRST.length + 1;

  // Case, metric and place that are shown: as the hash says, else those of the worst row of the benchmark.
  const chosen = shard => {
    const rows = R.index.rows
      .filter(row => row.name === shard.name)
      .sort((a, b) => R.severity(a.status) - R.severity(b.status));
    const fits = row =>
      (!R.get("metric") || row.metric === R.get("metric")) && (!R.state.query.has("c") || row.params === R.get("c"));
    const row = rows.find(fits) ?? rows.find(each => !R.get("metric") || each.metric === R.get("metric")) ?? rows[0];
    const metrics = [...new Set(shard.lines.map(line => line.metric))].sort((a, b) => rank(a) - rank(b));
    const metric = metrics.includes(R.get("metric")) ? R.get("metric") : (row?.metric ?? metrics[0]);
    const cases = [...new Map(shard.lines.map(line => [line.params.join(", "), line.params])).entries()];
    const wanted = R.state.query.has("c") ? R.get("c") : row?.params;
    const [name, params] = cases.find(([each]) => each === wanted) ?? cases[0] ?? ["", []];
    const every = shard.lines.filter(line => line.metric === metric && line.params.join(", ") === name);
    const filter = R.placeFilter(),
      shown = every.filter(line => filter.shows(R.placeOf.get(line.place)));
    const asked = R.get("at"),
      default_ = row ? R.index.places[row.place].id : "";
    const place =
      asked === "all"
        ? "all"
        : (
            every.find(line => line.place === asked) ??
            shown.find(line => line.place === default_) ??
            shown[0] ??
            every[0]
          )?.place;
    return {
      metrics,
      metric,
      cases,
      name,
      params,
      every,
      place,
      lines: place === "all" ? every : every.filter(line => line.place === place),
    };
  };
  const label = place => R.index.places[R.placeOf.get(place)]?.label ?? place;
  const pins = () =>
    ["pin", "with"]
      .map(R.get)
      .map(R.findCommit)
      .filter(at => at >= 0);

  const picker = (shard, now, go) => {
    if (now.cases.length < 2) return null;
    return h(
      "span",
      {class: "picker"},
      shard.param_names.map((name, k) => {
        const values = [...new Set(now.cases.map(([, params]) => params[k]))];
        if (values.length < 2) return null;
        const choose = event => {
          const wanted = now.params.map((each, at) => (at === k ? event.target.value : each)),
            score = params =>
              params.filter((each, at) => each === wanted[at]).length + (params[k] === wanted[k] ? 100 : 0);
          go({c: [...now.cases].sort((a, b) => score(b[1]) - score(a[1]))[0][0]});
        };
        return h(
          "label",
          null,
          h("span", {class: "soft"}, name),
          " ",
          h(
            "select",
            {onchange: choose, data: {param: name}},
            values.map(value => h("option", {value, selected: value === now.params[k]}, value.slice(0, 60))),
          ),
        );
      }),
    );
  };
  const choice = (labelled, values, now, go, words = each => each) =>
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
                "aria-pressed": String(value === now),
                data: {chip: value},
                onclick: () => go(value),
              },
              words(value),
            ),
          ),
        );

  const verdict = (shard, now) => {
    const rows = R.index.rows.filter(
      row =>
        row.name === shard.name &&
        row.metric === now.metric &&
        (row.params === now.name || row.cases > 1) &&
        (now.place === "all" || R.index.places[row.place].id === now.place),
    );
    const row = rows.sort((a, b) => R.severity(a.status) - R.severity(b.status))[0];
    if (!row) return h("p", {class: "lede"}, "Its history has no change that counts.");
    const event = R.index.events.find(
      each =>
        each.large &&
        R.index.entries[each.benchmark].name === shard.name &&
        each.metric === now.metric &&
        each.first <= (row.changed ?? -1) &&
        each.places.includes(row.place) &&
        each.state !== "recovered",
    );
    const own = now.lines
      .filter(line => R.placeOf.get(line.place) === row.place)
      .flatMap(line => line.changes)
      .filter(each => each.large);
    const open = own.filter(
        each => row.status === "regressed" && each.moved === "regressed" && each.state === "confirmed",
      ),
      last = open.at(-1) ?? own.at(-1);
    const since = last && R.index.commits[R.commitAt.get(shard.commits[last.first])];
    return h(
      "p",
      {class: "lede"},
      R.tag(row.status),
      " ",
      row.why,
      last && [
        open.length > 1 ? `${open.length} times; the last: ` : open.length ? "" : " last change ",
        R.moved(last.ratio, last.moved),
        last.low !== last.high && ` (95 % interval ${text.interval(last.low, last.high)})`,
        " at ",
        R.commitLink(since),
        ` ${since.subject.slice(0, 90)}, ${since.author}, ${text.date(since.date)}`,
        event && event.suspects_n > 1 && `, or one of ${event.suspects_n - 1} commits before it`,
        ".",
      ],
    );
  };
  const facts = (now, chart) => {
    const line = now.lines[0],
      at = line.values.length - 1,
      place = R.index.places[R.placeOf.get(line.place)],
      machine = Object.fromEntries(R.index.machines)[place.machine] ?? {};
    const commit = R.index.commits[R.commitAt.get(now.shard.commits[line.at[at]])];
    const item = (name, ...value) => [h("dt", null, name), h("dd", null, ...value)];
    const said =
      [place.gpu, ...["driver", "cuda"].filter(each => machine[each]).map(each => `${each} ${machine[each]}`)]
        .filter(Boolean)
        .join(", ") || machine.cpu;
    return h(
      "dl",
      {class: "facts"},
      at < 0
        ? item("Values", "none")
        : [
            item(
              `Latest, at ${R.short(commit.sha)}`,
              h("span", {class: "big"}, text.value(line.values[at], line.unit)),
            ),
            item(
              "95 % interval",
              line.lows[at] === line.highs[at]
                ? line.exact
                  ? "exact"
                  : "one value"
                : text.axis([line.lows[at], line.highs[at]], line.unit).join(" to "),
            ),
            item("Noise", R.small(line.noise), h("span", {class: "soft"}, line.exact ? " exact" : " around its level")),
            item("Counts from", text.percent(line.threshold)),
          ],
      item(
        "Measured on",
        place.label,
        said && h("div", {class: "soft"}, said),
        h("div", {class: "soft"}, place.environment),
      ),
    );
  };
  // Noise under what is worth three digits.
  R.small = share => (share !== null && share > 0 && share < 5e-5 ? "< 0.01 %" : text.percent(share));

  const changes = (shard, now) => {
    const rows = now.lines.flatMap(line => line.changes.map(change => ({line, change})));
    if (!rows.length) return null;
    const commit = at => R.index.commits[R.commitAt.get(shard.commits[at])];
    return h(
      "section",
      null,
      h("h2", null, "Change points"),
      R.table({
        rows,
        caption: "Change points",
        name: "changes",
        columns: [
          {
            key: "first",
            label: "First commit",
            value: each => commit(each.change.first).sha,
            cell: each => [
              R.commitLink(commit(each.change.first)),
              " ",
              commit(each.change.first).subject.slice(0, 120),
              h(
                "div",
                {class: "soft small"},
                `${commit(each.change.first).author} · ${text.date(commit(each.change.first).date)}`,
              ),
            ],
          },
          ...(now.lines.length > 1
            ? [
                {
                  key: "place",
                  label: "Where",
                  value: each => label(each.line.place),
                  cell: each => label(each.line.place),
                },
              ]
            : []),
          {
            key: "change",
            label: "Change",
            num: true,
            value: each => each.change.ratio,
            cell: each => R.moved(each.change.ratio, each.change.moved),
          },
          {
            key: "interval",
            label: "95 % interval",
            num: true,
            hide: true,
            value: each => text.interval(each.change.low, each.change.high),
            cell: each =>
              each.change.low === each.change.high ? "exact" : text.interval(each.change.low, each.change.high),
          },
          {
            key: "values",
            label: "From, to",
            num: true,
            hide: true,
            value: each => each.change.after,
            cell: each =>
              `${text.value(each.change.before, each.line.unit)} → ${text.value(each.change.after, each.line.unit)}`,
          },
          {
            key: "state",
            label: "State",
            value: each => each.change.state,
            cell: each => [
              R.tag(each.change.state === "confirmed" ? each.change.moved : each.change.state),
              !each.change.large && h("span", {class: "soft small"}, " below the threshold"),
            ],
          },
        ],
      }).node,
    );
  };
  const values = (shard, now) => {
    const rows = () =>
      now.lines
        .flatMap(line => [
          ...line.at.map((at, k) => ({line, at, k, failure: ""})),
          ...line.failures.map(([at, failure]) => ({line, at, k: -1, failure})),
        ])
        .sort((a, b) => R.commitAt.get(shard.commits[b.at]) - R.commitAt.get(shard.commits[a.at]));
    const commit = each => R.index.commits[R.commitAt.get(shard.commits[each.at])],
      of = (each, column) => (each.k < 0 ? null : each.line[column][each.k]);
    const details = h("details", null, h("summary", null, "The chart as a table"));
    details.addEventListener("toggle", () => {
      if (!details.open || details.children.length > 1) return;
      const table = R.table({
        rows: rows(),
        caption: "Values of the chart",
        name: shard.name,
        columns: [
          {
            key: "commit",
            label: "Commit",
            value: each => commit(each).sha,
            cell: each => [R.commitLink(commit(each)), " ", commit(each).subject.slice(0, 100)],
          },
          {
            key: "author",
            value: each => commit(each).author,
            label: "Author",
            hide: true,
            cell: each => commit(each).author,
          },
          {
            key: "date",
            label: "Date",
            hide: true,
            value: each => new Date(commit(each).date * 1000).toISOString(),
            cell: each => text.date(commit(each).date),
          },
          ...(now.lines.length > 1
            ? [
                {
                  key: "place",
                  label: "Where",
                  value: each => label(each.line.place),
                  cell: each => label(each.line.place),
                },
              ]
            : []),
          {
            key: "value",
            label: R.metric(now.metric),
            num: true,
            value: each => of(each, "values"),
            cell: each => (each.k < 0 ? R.tag("failed", each.failure) : text.value(of(each, "values"), each.line.unit)),
          },
          {
            key: "low",
            label: "Low",
            num: true,
            hide: true,
            value: each => of(each, "lows"),
            cell: each => text.value(of(each, "lows"), each.line.unit),
          },
          {
            key: "high",
            label: "High",
            num: true,
            hide: true,
            value: each => of(each, "highs"),
            cell: each => text.value(of(each, "highs"), each.line.unit),
          },
          {
            key: "rounds",
            label: "Rounds",
            num: true,
            value: each => (typeof of(each, "rounds") === "object" ? of(each, "rounds")?.length : of(each, "rounds")),
            cell: each =>
              String(
                typeof of(each, "rounds") === "object"
                  ? (of(each, "rounds")?.length ?? "")
                  : (of(each, "rounds") ?? ""),
              ),
          },
        ],
      });
      details.append(table.node, table.exports);
    });
    return details;
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
      charts.forEach(each => each.destroy());
      charts = [];
      const now = {...chosen(shard), shard},
        marked = pins();
      if (!now.lines.length) {
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
        "aria-label": `${R.metric(now.metric)} of ${shard.name} over commits; the same as a table stands below`,
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
      const reference = R.index.commits[R.index.reference].tags.length ? R.commitName(R.index.reference) : "the first";
      const bar = h(
        "div",
        {class: "filters"},
        toggle("x", "date", "by date"),
        toggle("log", "1", "log axis"),
        toggle("rel", R.index.commits[R.index.reference].tags.length ? "tag" : "first", `relative to ${reference}`),
        marked.length > 0 && toggle("rel", "pin", "relative to A"),
        R.get("z") && h("button", {type: "button", class: "chip", onclick: () => go({z: ""})}, "whole history"),
        h("span", {class: "soft small right wide"}, "drag to zoom · click to pin · ← → to move · n p changes · ? keys"),
      );
      const pinnedAt = h("div", null),
        others = h("div", {class: "together"});
      const places = [...new Set(now.every.map(line => line.place))];
      page.replaceChildren(
        ...[
          h(
            "p",
            {class: "crumb"},
            h("a", {href: "#/"}, "Overview"),
            " / ",
            h("a", {href: R.link("overview", "", {q: shard.name.split(".")[0]})}, shard.name.split(".")[0]),
          ),
          h("h1", {class: "mono"}, shard.name, now.name && h("span", {class: "params"}, `(${now.name})`)),
          verdict(shard, now),
          h(
            "div",
            {class: "filters"},
            picker(shard, now, go),
            choice("Metric", now.metrics, now.metric, metric => go({metric, z: R.get("z")}), R.metric),
            places.length > 8
              ? h(
                  "label",
                  null,
                  h("span", {class: "soft"}, "where "),
                  h(
                    "select",
                    {onchange: event => go({at: event.target.value})},
                    [...places, "all"].map(each =>
                      h(
                        "option",
                        {value: each, selected: each === now.place},
                        each === "all" ? "everywhere" : label(each),
                      ),
                    ),
                  ),
                )
              : choice(
                  "Where",
                  places.length > 1 ? [...places, "all"] : [],
                  now.place,
                  at => go({at}),
                  each => (each === "all" ? "everywhere" : label(each)),
                ),
          ),
          h("div", {class: "two"}, h("div", null, plot, bar, pinnedAt), facts(now)),
          changes(shard, now),
          others,
          R.sizes(
            shard,
            shard.lines.filter(line => line.metric === now.metric && line.place === now.lines[0].place),
            params => go({c: params.join(", ")}),
          ),
          h("h2", null, "Measure it again"),
          R.command(
            `regress check ${marked.length > 1 ? marked.map(at => R.short(R.index.commits[at].sha)).join(" ") : "HEAD~1"} -b ${text.quoted(shard.name + (now.name && `(${now.name})`))}`,
          ),
          values(shard, now),
          shard.code && h("details", null, h("summary", null, "Its code"), h("pre", {tabindex: "0"}, shard.code)),
        ].filter(Boolean),
      );
      const zoomed = R.get("z").split("..").map(R.findCommit);
      const main = R.chart({
        node: plot,
        shard,
        lines: now.lines,
        labels: now.lines.map(line => label(line.place)),
        height: 330,
        byDate: R.get("x") === "date",
        log: R.get("log") === "1",
        relative: R.get("rel"),
        pins: marked,
        zoom: zoomed,
        sync: "commits",
        onpin: commit => {
          const sha = R.index.commits[commit].sha;
          go(marked.length === 1 && marked[0] !== commit ? {with: sha} : {pin: sha, with: ""});
        },
        onzoom: ends => go({z: ends && ends.map(at => R.index.commits[at].sha).join("..")}),
      });
      charts.push(main);
      if (marked.length)
        pinnedAt.replaceChildren(
          R.pinned(main, marked, shard.name + (now.name && `(${now.name})`), () =>
            go({pin: "", with: "", rel: R.get("rel") === "pin" ? "" : R.get("rel")}),
          ),
        );
      const beside = shard.lines
        .filter(
          line =>
            line.place === now.lines[0].place &&
            line.params.join(", ") === now.name &&
            line.metric !== now.metric &&
            TOGETHER.includes(line.metric) &&
            line.values.length > 1,
        )
        .sort((a, b) => rank(a.metric) - rank(b.metric));
      if (beside.length) others.append(h("h2", null, "At the same commits"));
      for (const line of beside) {
        const own = h("div", {
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
            own,
          ),
        );
        charts.push(
          R.chart({
            node: own,
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
            each =>
              each.dataset.chip === held.chip &&
              each.dataset.param === held.param &&
              each.dataset.toggle === held.toggle,
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
      charts.forEach(each => each.destroy());
      R.live = null;
    };
    return page;
  };
})(regress);

// What fails now, since when and with which words; and what did fail.
(R => {
  const {h, text} = R;

  R.pages.failures = () => {
    const {index} = R,
      heading = h("h1", null),
      holder = h("div", null);
    const commit = at => [
      h("span", {class: "mono", title: index.commits[at].subject}, R.commitName(at)),
      h("div", {class: "soft small nowrap"}, text.date(index.commits[at].date)),
    ];
    // What fails alike in several places is one row.
    const together = rows => {
      const groups = new Map();
      for (const each of rows) {
        const key = [each.benchmark, each.params, each.kind, each.first, each.last, each.commits, each.message].join("\n");
        if (groups.has(key)) groups.get(key).places.push(each.place);
        else groups.set(key, {...each, places: [each.place]});
      }
      return [...groups.values()].sort((a, b) => b.first - a.first || b.cases - a.cases);
    };
    const where = each => text.listed(each.places.map(at => index.places[at].label));
    const name = each =>
      `${index.entries[each.benchmark].name}${each.cases > 1 ? "" : each.params && `(${each.params})`}`;
    const table = (rows, caption) =>
      R.table({
        rows: together(rows),
        caption,
        name: "failures",
        sort: R.get("sort"),
        onsort: sort => {
          R.put({sort});
          draw();
        },
        link: each => R.link("benchmark", index.entries[each.benchmark].name, {c: each.params}),
        columns: [
          {
            key: "benchmark",
            label: "Benchmark",
            value: name,
            cell: each => [
              h(
                "a",
                {
                  class: "mono name",
                  href: R.link("benchmark", index.entries[each.benchmark].name, {
                    c: each.params,
                    at: index.places.length > 1 ? index.places[each.place].id : "",
                  }),
                },
                R.name(name(each)),
              ),
              each.cases > 1 &&
                h("span", {class: "soft small"}, ` ${each.cases} cases, such as (${each.params.slice(0, 60)})`),
              index.places.length > 1 && h("div", {class: "soft small narrow"}, where(each)),
              each.message &&
                h(
                  "details",
                  null,
                  h("summary", null, each.message.split("\n")[0].slice(0, 100)),
                  h("pre", {tabindex: "0"}, `${each.message}${each.where && `\n${each.where}`}`),
                ),
            ],
          },
          {key: "kind", label: "Failure", value: each => each.kind, cell: each => R.failure(each.kind)},
          ...(index.places.length > 1
            ? [
                {
                  key: "where",
                  label: "Where",
                  hide: true,
                  value: where,
                  cell: where,
                },
              ]
            : []),
          {
            key: "since",
            label: "Since",
            value: each => each.first,
            out: each => index.commits[each.first].sha,
            cell: each => commit(each.first),
          },
          {
            key: "last",
            label: "Last",
            hide: true,
            value: each => each.last,
            out: each => index.commits[each.last].sha,
            cell: each => commit(each.last),
          },
          {
            key: "commits",
            label: "Commits",
            num: true,
            hide: true,
            value: each => each.commits,
            cell: each => String(each.commits),
          },
          {key: "open", hidden: true, value: each => each.open},
        ],
      });
    const draw = () => {
      const places = R.placeFilter(),
        match = R.search.matcher(R.get("q"));
      const shown = index.broken.filter(each => places.shows(each.place)),
        found = shown.filter(each => match(`${name(each)} ${each.kind} ${each.message}`.toLowerCase()));
      const now = found.filter(each => each.open),
        before = found.filter(each => !each.open);
      const [a, b] = [table(now, "What fails"), table(before, "What failed before")];
      const open = R.counts(places.places).failed ?? 0,
        skipped = shown.reduce((sum, each) => sum + (each.open && each.kind === "skipped" ? each.cases : 0), 0),
        failing = open - skipped;
      const title = [
        failing && `${text.counted(failing, "case")} ${failing === 1 ? "fails" : "fail"}`,
        skipped && `${text.counted(skipped, "case")} that had a value ${skipped === 1 ? "is" : "are"} skipped`,
      ];
      heading.replaceChildren(`${title.filter(Boolean).join(", ") || "Nothing fails"}.`);
      holder.replaceChildren(
        ...[
          now.length
            ? [a.node, a.exports]
            : h("p", {class: "empty"}, shown.some(each => each.open) ? "Nothing matches." : "Nothing fails now."),
          before.length ? [h("h2", null, "Failed before"), b.node, b.exports] : [],
        ].flat(),
      );
    };
    draw();
    return [
      heading,
      h("p", {class: "lede"}, "A case fails where its newest result has no value, and counts once in each place. What is skipped is listed where it had a value before."),
      index.broken.length > 0 && h("div", {class: "filters"}, R.searchBox(draw), R.placeControls(draw)),
      index.broken.length > 0 ? holder : null,
      R.leftOut(),
    ];
  };
})(regress);

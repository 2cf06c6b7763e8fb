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
      for (const row of rows) {
        const key = [row.benchmark, row.params, row.kind, row.first, row.last, row.commits, row.message].join("\n");
        if (groups.has(key)) groups.get(key).places.push(row.place);
        else groups.set(key, {...row, places: [row.place]});
      }
      return [...groups.values()].sort((a, b) => b.first - a.first || b.cases - a.cases);
    };
    const where = row => text.listed(row.places.map(at => index.places[at].label));
    const name = row =>
      `${index.entries[row.benchmark].name}${row.cases > 1 ? "" : row.params && `(${row.params})`}`;
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
        link: row => R.link("benchmark", index.entries[row.benchmark].name, {c: row.params}),
        columns: [
          {
            key: "benchmark",
            label: "Benchmark",
            value: name,
            cell: row => [
              h(
                "a",
                {
                  class: "mono name",
                  href: R.link("benchmark", index.entries[row.benchmark].name, {
                    c: row.params,
                    at: index.places.length > 1 ? index.places[row.place].id : "",
                  }),
                },
                R.name(name(row)),
              ),
              row.cases > 1 &&
                h("span", {class: "soft small"}, ` ${row.cases} cases, such as (${row.params.slice(0, 60)})`),
              index.places.length > 1 && h("div", {class: "soft small narrow"}, where(row)),
              row.message &&
                h(
                  "details",
                  null,
                  h("summary", null, row.message.split("\n")[0].slice(0, 100)),
                  h("pre", {tabindex: "0"}, `${row.message}${row.where && `\n${row.where}`}`),
                ),
            ],
          },
          {key: "kind", label: "Failure", value: row => row.kind, cell: row => R.failure(row.kind)},
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
            value: row => row.first,
            out: row => index.commits[row.first].sha,
            cell: row => commit(row.first),
          },
          {
            key: "last",
            label: "Last",
            hide: true,
            value: row => row.last,
            out: row => index.commits[row.last].sha,
            cell: row => commit(row.last),
          },
          {
            key: "commits",
            label: "Commits",
            num: true,
            hide: true,
            value: row => row.commits,
            cell: row => String(row.commits),
          },
          {key: "open", hidden: true, value: row => row.open},
        ],
      });
    const draw = () => {
      const places = R.placeFilter(),
        match = R.search.matcher(R.get("q"));
      const shown = index.broken.filter(failure => places.shows(failure.place)),
        matching = shown.filter(failure => match(`${name(failure)} ${failure.kind} ${failure.message}`.toLowerCase()));
      const current = matching.filter(failure => failure.open),
        before = matching.filter(failure => !failure.open);
      const [a, b] = [table(current, "What fails"), table(before, "What failed before")];
      const open = R.counts(places.places).failed ?? 0,
        skipped = shown.reduce((sum, failure) => sum + (failure.open && failure.kind === "skipped" ? failure.cases : 0), 0),
        failing = open - skipped;
      const title = [
        failing && `${text.counted(failing, "case")} ${failing === 1 ? "fails" : "fail"}`,
        skipped && `${text.counted(skipped, "case")} that had a value ${skipped === 1 ? "is" : "are"} skipped`,
      ];
      heading.replaceChildren(`${title.filter(Boolean).join(", ") || "Nothing fails"}.`);
      holder.replaceChildren(
        ...[
          current.length
            ? [a.node, a.exports]
            : h("p", {class: "empty"}, shown.some(failure => failure.open) ? "Nothing matches." : "Nothing fails now."),
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

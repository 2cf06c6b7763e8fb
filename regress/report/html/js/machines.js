// Where it was measured: what tells the machines apart, how far each is, how well it measures, and what was left out.
(R => {
  const {h, text} = R;
  const LATE = ["machine", "version"];

  const value = fact => (/^\d{9,}$/.test(fact) ? text.value(Number(fact), "B") : String(fact));
  // A row for each machine; facts that all of them share stand above.
  const facts = () => {
    const {machines} = R.index,
      names = [...new Set(machines.flatMap(([, machine]) => Object.keys(machine)))].filter(name => !LATE.includes(name)),
      differs = name => new Set(machines.map(([, machine]) => machine[name] ?? null)).size > 1,
      same = names.filter(name => !differs(name));
    const columns = [
      {key: "machine", label: "Machine", value: ([name]) => name, cell: ([name]) => h("b", null, name)},
      ...names.filter(differs).map(name => ({
        key: name,
        label: name.replaceAll("_", " "),
        value: ([, machine]) => machine[name] ?? null,
        cell: ([, machine]) => (machine[name] === undefined ? h("span", {class: "soft"}, text.MISSING) : value(machine[name])),
      })),
    ];
    return [
      same.length > 0 &&
        h("p", {class: "soft"}, `${machines.length > 1 ? "The same on all: " : ""}${same.map(name => `${name} ${value(machines[0][1][name])}`).join(", ")}.`),
      columns.length > 1 && R.table({rows: machines, columns, caption: "Facts of the machines", name: "machines"}),
    ];
  };
  // Machines that come and go, as those of a service do: each has too few results to be judged. In a history with as few
  // commits, that says nothing about the machines.
  const passing = () => {
    const {fewest, results, places, commits} = R.index,
      few = results.filter(n => n < fewest).length;
    return few < 3 || few < places.length / 2 || commits.length < fewest
      ? null
      : h(
          "p",
          {class: "banner bad"},
          h("b", null, `${few} of ${places.length} places cannot be judged. `),
          `They have fewer than ${fewest} results each, in ${text.counted(commits.length, "commit")}. If machines are interchangeable, like the runners of a service, give them one name: `,
          h("code", {class: "mono"}, '"machine"'),
          " in asv.conf.json, or --machine NAME.",
        );
  };
  const places = () => {
    const {index} = R;
    const rows = index.places.map((place, at) => {
      const placeRows = index.rows.filter(row => row.place === at && row.gates),
        newest = Math.max(-1, ...placeRows.map(row => row.at));
      const noise = placeRows
        .map(row => row.noise)
        .filter(spread => spread !== null && spread > 0)
        .sort((a, b) => a - b);
      const counts = index.counts[at],
        count = status => counts[status] ?? 0;
      return {
        place,
        at,
        n: Object.values(counts).reduce((sum, n) => sum + n, 0),
        newest,
        behind: index.commits.length - 1 - newest,
        overall: index.overall.find(mean => mean.place === at),
        noise: noise.length ? noise[noise.length >> 1] : null,
        regressed: count("regressed"),
        failed: count("failed"),
        undecided: count("undecided"),
      };
    });
    return R.table({
      rows,
      caption: "Places: machine, device and environment",
      name: "places",
      link: row => R.link("overview", "", {machine: row.place.machine}),
      columns: [
        {
          key: "place",
          label: "Place",
          value: row => row.place.label,
          cell: row => [
            h(
              "a",
              {href: R.link("overview", "", {machine: row.place.machine, env: row.place.environment})},
              h("b", null, row.place.machine),
            ),
            h("div", {class: "soft small"}, [row.place.gpu, row.place.environment].filter(Boolean).join(" · ")),
            row.place.cards.map(card => h("div", {class: "soft small"}, R.card(card))),
          ],
        },
        {key: "cases", label: "Cases", num: true, value: row => row.n, cell: row => String(row.n)},
        {
          key: "regressed",
          label: "Regressed",
          num: true,
          value: row => row.regressed,
          cell: row => (row.regressed ? h("span", {class: "worse"}, `▲ ${row.regressed}`) : "0"),
        },
        {
          key: "failed",
          label: "Failed",
          num: true,
          hide: true,
          value: row => row.failed,
          cell: row => (row.failed ? h("span", {class: "worse"}, `✕ ${row.failed}`) : "0"),
        },
        {
          key: "undecided",
          label: "Undecided",
          num: true,
          hide: true,
          value: row => row.undecided,
          cell: row => String(row.undecided),
        },
        {
          key: "overall",
          label: `Since ${R.referenceName()}`,
          num: true,
          value: row => row.overall?.ratio,
          cell: row => (row.overall ? text.change(row.overall.ratio) : text.MISSING),
        },
        {
          key: "noise",
          label: "Noise",
          num: true,
          hide: true,
          value: row => row.noise,
          cell: row => text.noise(row.noise),
        },
        {
          key: "newest",
          label: "Newest result",
          hide: true,
          value: row => row.newest,
          cell: row =>
            row.newest < 0
              ? text.MISSING
              : [
                  h("span", {class: "mono"}, R.commitName(row.newest)),
                  h(
                    "div",
                    {class: "soft small"},
                    `${text.date(index.commits[row.newest].date)}${row.behind > 0 ? `, ${text.counted(row.behind, "commit")} behind` : ""}`,
                  ),
                ],
        },
      ],
    });
  };
  const aa = () =>
    R.index.aa.length
      ? R.table({
          rows: R.index.aa,
          caption: "A/A checks",
          name: "aa",
          columns: [
            {key: "machine", label: "Machine", value: row => row.machine, cell: row => row.machine},
            {
              key: "date",
              label: "When",
              value: row => row.date,
              cell: row => [text.date(row.date), h("span", {class: "soft"}, ` at ${row.commit}`)],
            },
            {key: "cases", label: "Cases", num: true, value: row => row.cases, cell: row => String(row.cases)},
            {
              key: "false_alarms",
              label: "False alarms",
              num: true,
              value: row => row.false_alarms,
              cell: row => (row.false_alarms ? h("b", {class: "worse"}, String(row.false_alarms)) : "0"),
            },
            {
              key: "undecided",
              label: "Undecided",
              num: true,
              hide: true,
              value: row => row.undecided,
              cell: row => String(row.undecided),
            },
            {
              key: "noise_floor",
              label: "Noise floor",
              num: true,
              value: row => row.noise_floor,
              cell: row => text.percent(row.noise_floor),
            },
            {
              key: "min_detectable",
              label: "Smallest detectable regression",
              num: true,
              hide: true,
              value: row => row.min_detectable,
              cell: row => text.percent(row.min_detectable),
            },
          ],
        }).node
      : h(
          "p",
          {class: "soft"},
          "No A/A check was made here. It shows how well a machine measures: ",
          h("code", {class: "mono"}, "regress doctor --aa"),
        );

  R.pages.machines = () => {
    const {index} = R,
      [same, table] = facts(),
      all = places();
    return [
      h("h1", null, "Machines"),
      h(
        "p",
        {class: "lede"},
        `${text.counted(index.machines.length, "machine")}, ${text.counted(new Set(index.places.map(place => place.environment)).size, "environment")}. What was measured in different places is never averaged.`,
      ),
      passing(),
      all.node,
      all.exports,
      (same || index.machines.length > 1) && h("h2", null, index.machines.length > 1 ? "What tells them apart" : "What it is"),
      same,
      index.machines.length > 1 &&
        (table ? [table.node, table.exports] : h("p", {class: "soft"}, "Nothing that differs is recorded of them.")),
      h("h2", null, "A/A checks"),
      aa(),
      index.strays.length > 0 && [
        h("h2", null, "Results of other commits"),
        h(
          "p",
          null,
          `${text.counted(index.strays.length, "commit")} with results ${index.strays.length === 1 ? "is" : "are"} not in this report: not on ${index.branch}, or before it begins.`,
        ),
        h(
          "details",
          null,
          h("summary", null, "Which"),
          h(
            "p",
            {class: "mono"},
            index.strays
              .slice(0, 500)
              .map(([sha, files]) => `${R.short(sha)} (${files})`)
              .join(" "),
          ),
        ),
      ],
      index.skipped.length > 0 && [
        h("h2", null, "Files that could not be used"),
        R.table({
          rows: index.skipped,
          caption: "Files that could not be used",
          name: "skipped",
          columns: [
            ["path", "File or folder", 0, ([path]) => h("span", {class: "mono name"}, R.name(path))],
            ["files", "Files", 1, ([, files]) => String(files)],
            ["why", "Why, and what to do", 2, ([, , why, fix]) => [why, h("div", {class: "soft"}, fix)]],
            ["fix", "", 3],
          ].map(([key, label, at, cell]) => ({key, label, value: row => row[at], cell, num: at === 1, hidden: !cell})),
        }).node,
      ],
    ];
  };
})(regress);

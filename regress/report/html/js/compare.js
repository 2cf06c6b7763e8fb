// Two commits, all benchmarks: what was measured, and the verdicts of the history, level against level. What was judged before
// the page was written is looked up here; a level holds over several commits, so one noisy night does not decide, and where
// a value is far off its level nothing is claimed.
(R => {
  const {h, text} = R;
  const WORDS = {r: "regressed", i: "improved", c: "changed", u: "unchanged", x: "incomparable"};
  const NEAR = 10;
  const BACK = {r: "i", i: "r"};
  const CLAIMS = ["regressed", "improved"];
  const urgency = comparison => R.severity(comparison.verdict) + (comparison.ratio ? 1 / (1 + R.far(comparison.ratio)) : 1);

  const levelAt = (row, at) => row.levels.findLastIndex(level => level.first <= at);
  const judge = (row, a, b, valueAt) => {
    const [from, to] = [levelAt(row, a), levelAt(row, b)],
      last = row.levels.at(-1).last,
      lost = row.status === "gone" || row.status === "failed";
    // A row that was lost long before the base is not gone since then, and one that came and went in between is not new.
    if ((from < 0 && to < 0) || (lost && a > last + NEAR) || (from < 0 && lost && b > last + NEAR)) return null;
    const [base, head] = [from < 0 ? null : valueAt(row, a), to < 0 ? null : valueAt(row, b)];
    if (from < 0) return {row, verdict: "new", base, head};
    if (to < 0 || (b > last && lost))
      return {row, verdict: to < 0 ? "gone" : row.status, base, head: null};
    return same(row, from, to, base, head);
  };
  const same = (row, from, to, base, head) => {
    const [low, high] = from < to ? [from, to] : [to, from],
      letter = low === high ? "u" : (row.levels[high].against[low] ?? "x");
    const values = [base, head, row.levels[from], row.levels[to]].map(end => end.value);
    if (Math.min(...values) < 0 && base.value !== head.value)
      return {row, verdict: "incomparable", base, head, ratio: null, why: R.NEGATIVE};
    const verdict = WORDS[from > to ? (BACK[letter] ?? letter) : letter];
    if (verdict === "incomparable") return {row, verdict, base, head, ratio: null, why: "measured differently in between"};
    const ratio = base.value > 0 ? head.value / base.value : null,
      why = doubt(row, from, to, base, head, ratio, verdict);
    // An undecided row has no change that counts, even if its levels differ, as those of values with two modes do.
    if (row.status === "undecided") return {row, verdict: row.status, moved: "unchanged", base, head, ratio, why: why ?? row.why};
    // The newest level may rest on a value or two, which the row says.
    const unsure = low < high && row.status === "tentative" && high === row.levels.length - 1;
    return {row, verdict: why ? "undecided" : unsure && CLAIMS.includes(verdict) ? "tentative" : verdict, moved: verdict, base, head, ratio, why};
  };
  const doubt = (row, from, to, base, head, ratio, verdict) => {
    const off = [
      [base, from],
      [head, to],
    ].filter(([end]) => row.off.includes(end.at));
    if (off.length)
      return off
        .map(([end, level]) => `${R.commitName(end.at)} was measured ${text.change(end.value / row.levels[level].value)} off its level`)
        .join("; ");
    const up = row.levels[to].value > row.levels[from].value;
    return ratio !== null && verdict !== "unchanged" && ratio > 1 !== up ? "the levels moved, and these two values did not" : null;
  };
  // The value, and the earlier commit that it is from if the commit itself was not measured.
  const measured = (end, at, row) =>
    end === null
      ? text.MISSING
      : [text.value(end.value, row.unit), end.at !== at && h("div", {class: "soft small mono"}, R.commitName(end.at))];
  const geomean = ratios => Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length);

  R.pages.compare = async () => {
    const {index} = R,
      valueAt = await R.measured(),
      last = index.commits.length - 1;
    const options = h(
      "datalist",
      {id: "commits"},
      [...index.commits]
        .reverse()
        .map(commit =>
          h(
            "option",
            {value: [commit.tags[0], R.short(commit.sha)].filter(Boolean)[0]},
            `${R.short(commit.sha)} ${commit.subject.slice(0, 70)}`,
          ),
        ),
    );
    const out = h("div", null),
      holder = h("div", null);
    const field = (key, label, fallback) => {
      const input = h("input", {
        list: "commits",
        value: R.get(key) || R.commitName(fallback),
        "aria-label": label,
        id: `commit-${key}`,
        size: "16",
        spellcheck: "false",
      });
      input.addEventListener("change", () => {
        R.put({[key]: input.value});
        draw();
      });
      return input;
    };
    const base = field("a", "Base", index.reference),
      head = field("b", "Head", last);
    const swap = h(
      "button",
      {
        type: "button",
        onclick: () => {
          [base.value, head.value] = [head.value, base.value];
          R.put({a: base.value, b: head.value});
          draw();
        },
      },
      "swap",
    );
    const told = at =>
      h(
        "div",
        null,
        h(
          "div",
          {class: "subject"},
          R.commitLink(index.commits[at]),
          " ",
          index.commits[at].tags.map(tag => [h("span", {class: "tag"}, tag), " "]),
          index.commits[at].subject,
        ),
        h("div", {class: "soft"}, R.by(index.commits[at].author, text.moment(index.commits[at].date))),
      );
    const draw = () => {
      const a = R.findCommit(base.value),
        b = R.findCommit(head.value);
      if (a < 0 || b < 0) {
        out.replaceChildren(
          h(
            "p",
            {class: "banner bad", role: "status"},
            `No commit with results is called ${a < 0 ? base.value : head.value}. `,
            "A tag, a sha, first and last are names.",
          ),
        );
        return;
      }
      const places = R.placeFilter(),
        match = R.search.matcher(R.get("q")),
        states = R.list("status");
      const judged = index.rows
        .filter(row => row.gates && places.shows(row.place))
        .map(row => judge(row, a, b, valueAt))
        .filter(Boolean);
      const count = {};
      for (const comparison of judged) count[comparison.verdict] = (count[comparison.verdict] ?? 0) + 1;
      const times = judged.filter(
        comparison => comparison.ratio && comparison.row.unit === "s" && comparison.verdict !== "undecided",
      );
      const byPlace = places.places
        .map(place => [place, times.filter(comparison => comparison.row.place === place).map(comparison => comparison.ratio)])
        .filter(([, ratios]) => ratios.length);
      const means = byPlace.map(
        ([place, ratios]) =>
          `${index.places.length > 1 ? `${index.places[place].label} ` : ""}${text.change(geomean(ratios))} over ${text.counted(ratios.length, "time")}`,
      );
      const wanted = judged.filter(
        comparison =>
          (states.length ? states.includes(comparison.verdict) : comparison.verdict !== "unchanged") &&
          match(comparison.row.text),
      );
      const several = index.places.length > 1;
      const table = R.table({
        rows: wanted,
        name: `compare-${base.value}-${head.value}`,
        caption: "Changed benchmarks",
        sort: R.get("sort") || "verdict",
        link: comparison => R.rowLink(comparison.row),
        onsort: sort => {
          R.put({sort});
          draw();
        },
        columns: [
          {
            key: "benchmark",
            label: "Benchmark",
            value: comparison => `${comparison.row.name}${comparison.row.params && `(${comparison.row.params})`}`,
            cell: comparison => [
              R.rowName(comparison.row),
              several && h("div", {class: "soft small"}, index.places[comparison.row.place].label),
            ],
          },
          {key: "where", hidden: true, value: comparison => index.places[comparison.row.place].label},
          {key: "metric", hidden: true, value: comparison => comparison.row.metric},
          {
            key: "history",
            label: "History",
            hide: true,
            cell: comparison => R.spark({...comparison.row, changed: null, status: comparison.verdict}, 150, 26, [a, b]),
          },
          {
            key: "base",
            label: "Base",
            num: true,
            hide: true,
            value: comparison => comparison.base?.value ?? null,
            cell: comparison => measured(comparison.base, a, comparison.row),
          },
          {
            key: "head",
            label: "Head",
            num: true,
            hide: true,
            value: comparison => comparison.head?.value ?? null,
            cell: comparison => measured(comparison.head, b, comparison.row),
          },
          {
            key: "change",
            label: "Change",
            num: true,
            value: comparison => comparison.ratio,
            cell: comparison => (comparison.ratio ? R.moved(comparison.ratio, comparison.moved) : text.MISSING),
          },
          {
            key: "verdict",
            label: "Verdict",
            value: urgency,
            out: comparison => comparison.verdict,
            cell: comparison =>
              R.tag(comparison.verdict, "", comparison.why),
          },
        ],
      });
      holder.replaceChildren(
        ...(wanted.length
          ? [table.node, table.exports]
          : [
              h(
                "p",
                {class: "empty"},
                !judged.length
                  ? "Nothing was measured at these two commits, or before them."
                  : states.length || R.get("q")
                    ? "Nothing matches."
                    : "Every benchmark is unchanged.",
              ),
            ]),
      );
      const words = R.statuses.filter(verdict => count[verdict]).map(verdict => `${count[verdict]} ${verdict}`);
      out.replaceChildren(
        h("div", {class: "pins"}, told(a), told(b)),
        h(
          "p",
          {class: "lede"},
          `${text.counted(judged.length, "series", "series")} (a case and a metric in one place${judged.some(comparison => comparison.row.cases > 1) ? "; of benchmarks with many cases the worst one" : ""})${words.length ? `: ${text.listed(words)}` : ""}. `,
          !means.length
            ? ""
            : means.length > 3
            ? `Geometric means: ${text.change(Math.min(...byPlace.map(([, ratios]) => geomean(ratios))))} to ${text.change(Math.max(...byPlace.map(([, ratios]) => geomean(ratios))))}.`
            : `Geometric mean: ${means.join("; ")}.`,
        ),
        h(
          "div",
          {class: "filters"},
          R.searchBox(draw),
          R.placeControls(draw),
          R.chips(
            "Verdict",
            "status",
            R.statuses.filter(verdict => count[verdict]),
            draw,
            verdict => `${R.sign(verdict)} ${verdict}`.trim(),
          ),
        ),
        holder,
        h("h2", null, "From the rounds of these two commits alone"),
        R.command(`regress compare ${R.short(index.commits[a].sha)} ${R.short(index.commits[b].sha)}`),
      );
    };
    const keep = event => {
      // The search box is made again with the table; the reader goes on typing in it.
      if (event.target.id === "search") {
        const at = event.target.selectionStart;
        queueMicrotask(() => {
          const box = document.getElementById("search");
          box?.focus();
          box?.setSelectionRange(at, at);
        });
      }
    };
    out.addEventListener("input", keep);
    draw();
    return [
      h("h1", null, "Compare two commits"),
      h("p", {class: "lede"}, "What was measured at the two commits, or last before them; judged by the levels of the history, each benchmark against itself in the same place."),
      h(
        "div",
        {class: "filters"},
        h("label", {class: "nowrap"}, "Base ", base),
        h("label", {class: "nowrap"}, "Head ", head),
        swap,
        options,
      ),
      out,
    ];
  };
})(regress);

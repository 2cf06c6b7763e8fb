// The first screen: is anything worse, since when, whose commit, how sure. Below it every benchmark.
(R => {
  const {h, text} = R;
  const DAY = 86400,
    MOST_SHOWN = 8;

  const counting = events => events.filter(event => event.gates && event.large && event.state === "open");
  const number = n => ["No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine"][n] ?? String(n);

  // News since the last visit, or on a first visit, of the last night: events, and cases that stopped giving numbers. An event
  // that was tentative and is open now is news again.
  const told = item =>
    item.id === undefined
      ? `${R.index.entries[item.benchmark].name} ${item.params} ${R.index.commits[item.first].sha}`
      : item.state === "tentative"
        ? `${item.id} ${item.state}`
        : item.id;
  const news = events => {
    if (news.found) return news;
    const key = `seen ${R.index.project}`,
      before = R.remembered(key),
      seen = new Set(before?.split("\n")),
      since = R.index.commits.at(-1).date - DAY;
    const fresh = event => (before === null ? R.index.commits[event.first].date > since : !seen.has(told(event)));
    news.visited = before !== null;
    news.found = new Set(events.filter(fresh).map(told));
    R.remember(key, events.map(told).slice(0, 1000).join("\n") || "-");
    return news;
  };
  const isNew = event => news.found.has(told(event));
  // What gave numbers and gives none; of a case in several places the earliest is shown.
  const stoppedIn = shows => {
    const stopped = R.index.broken.filter(failure => failure.open && failure.good !== null && shows(failure.place));
    stopped.sort((a, b) => b.first - a.first);
    const together = new Map();
    for (const failure of stopped) {
      const key = `${failure.benchmark} ${failure.params}`;
      together.set(key, {...failure, places: [...(together.get(key)?.places ?? []), failure.place]});
    }
    return [...together.values()];
  };
  // The first sentence where nothing is known to be worse: what is still open, and whether anything can be judged at all.
  const calm = (count, cases, waiting, places) => {
    const {undecided = 0, tentative = 0, changed = 0, failed = 0, gone = 0} = count,
      young = places.places.reduce((sum, at) => sum + R.index.young[at], 0),
      lacks = Math.max(0, ...R.index.rows.map(row => (row.status === "undecided" && row.gates && places.shows(row.place) ? row.lacks : 0))),
      takes = `it takes at least ${text.counted(lacks || R.index.fewest, lacks ? "more commit" : "commit")} with results`;
    if (cases > 0 && cases === gone) return "Nothing is measured any more.";
    if (cases === gone + failed) return "Nothing gives a number.";
    if (cases === gone + failed + undecided)
      return young === undecided ? `Nothing can be judged yet: ${takes}.` : "Nothing can be judged: every measured case is undecided.";
    const some = (n, what) => n > 0 && `${n} of ${text.counted(cases, "case")} ${what}`;
    const open = [
      tentative > 0 && waiting > 0 && `${text.counted(waiting, "benchmark")} may be: measure again`,
      changed > 0 && `${changed} changed, direction not declared`,
      some(undecided - young, undecided - young === 1 ? "is undecided" : "are undecided"),
      some(young, `cannot be judged yet: ${takes}`),
    ].filter(Boolean);
    const subject = count.acknowledged ? "Nothing but what is acknowledged" : "Nothing";
    return open.length ? `${subject} is known to be worse; ${open.join("; ")}.` : `${subject} is worse than before.`;
  };
  const headline = (open, fresh, stopped, waiting, places) => {
    const {index} = R,
      reference = R.referenceName(),
      newest = index.commits.at(-1);
    const since = index.release ? reference + R.referenceNote() : `the first measured commit, ${reference}`;
    const count = R.counts(places.places),
      cases = Object.values(count).reduce((sum, n) => sum + n, 0);
    const shifted = open.filter(event => event.shift !== null),
      worse = new Set(open.filter(event => event.shift === null).map(event => event.benchmark)).size,
      together = new Set(shifted.map(event => event.benchmark)).size,
      shifts = [...new Set(shifted.map(event => event.shift))].map(at => index.shifts[at]),
      suspects = [...new Set(shifts.map(shift => shift.suspect).filter(Boolean))];
    const undirected = count.changed ?? 0;
    const bad =
      [
        worse && `${number(worse)} benchmark${worse === 1 ? " is" : "s are"} worse than before.`,
        // Of those that moved at once, what is still worse.
        together && `${number(together)} moved ${shifts.length > 1 || together < shifts[0].benchmarks ? "together with others" : "at once"}${suspects.length ? `: was it the ${suspects.join(", or the ")}?` : "."}`,
        stopped && `${number(stopped)} case${stopped === 1 ? "" : "s"} stopped giving numbers.`,
      ]
        .filter(Boolean)
        .join(" ");
    const unsure = new Set(waiting.map(event => event.benchmark)).size,
      undecided = count.undecided ?? 0,
      most = 2 * undecided > cases ? ` ${undecided} of ${cases} cases are undecided.` : "";
    const title = bad ? bad + most : calm(count, cases, unsure, places);
    const counts = R.statuses.filter(status => count[status]).map(status => `${count[status]} ${status}`),
      valueless = index.entries.length - new Set(index.rows.map(row => row.benchmark)).size;
    const newestFirst = R.link("regressions", "", {state: "open", sort: "newest"});
    const lately = [
      [DAY, "24 h"],
      [7 * DAY, "7 days"],
    ].map(([span, word]) => [open.filter(event => newest.date - index.commits[event.first].date < span).length, word]);
    const recent = lately.filter(([n]) => n).map(([n, word]) => `${n} in the last ${word}`),
      lastly = `${recent.join(", ") || "none in the last 7 days"} before ${text.date(newest.date)}`,
      sinceVisit = news.visited && fresh ? `, ${fresh} new since your last visit` : "";
    return [
      h("h1", null, title),
      h(
        "p",
        {class: "lede"},
        open.length > 0 && [`${text.counted(open.length, "open regression")}: `, h("a", {href: newestFirst}, lastly), `${sinceVisit}. `],
        cases > 0 && `${text.counted(cases, "case")}${index.places.length > 1 ? ` in ${text.counted(places.places.length, "place")} (each in each place by its worst metric)` : ""}: ${text.listed(counts)}. `,
        valueless > 0 && places.all && `${text.counted(valueless, "benchmark")} ${valueless === 1 ? "has" : "have"} no value at any commit. `,
        overall(places, since),
        undirected > 0 && [
          " ",
          h("a", {href: R.link("regressions", "", {moved: "changed"})}, `${text.counted(undirected, "case")} changed`),
          "; which direction is better is not declared. Declare it with ",
          h("code", {class: "mono"}, '"better"'),
          " in asv.conf.json.",
        ],
      ),
    ];
  };
  const overall = (places, since) => {
    const means = R.index.overall.filter(mean => places.shows(mean.place));
    if (!means.length) return "";
    const inWords = mean => `${text.change(mean.ratio)} (${mean.n})`;
    if (means.length === 1)
      return `Overall ${text.change(means[0].ratio)} since ${since}, over ${text.counted(means[0].n, "time")} that can be judged at both ends.`;
    const worst = [...means].sort((a, b) => b.ratio - a.ratio),
      [most, least] = [worst[0], worst.at(-1)].map(mean => [text.change(mean.ratio), `on ${R.index.places[mean.place].label}`]);
    return h(
      "span",
      {title: worst.map(mean => `${R.index.places[mean.place].label}: ${inWords(mean)}`).join("\n")},
      `Overall since ${since}: ${most[0] === least[0] ? `${most[0]} in each of ${means.length} places` : `${least.join(" ")} to ${most.join(" ")}`}.`,
    );
  };
  // A case that gave numbers: since which commit it gives none, and why.
  R.stoppedLine = stopped =>
    h(
      "p",
      null,
      h(
        "a",
        {class: "mono name", href: R.link("benchmark", R.index.entries[stopped.benchmark].name, {c: stopped.params})},
        R.name(R.index.entries[stopped.benchmark].name + (stopped.cases > 1 || !stopped.params ? "" : `(${stopped.params})`)),
      ),
      stopped.cases > 1 && h("span", {class: "soft"}, ` ${stopped.cases} cases`),
      R.index.places.length > 1 && h("span", {class: "soft"}, ` ${R.placesNamed(stopped.places)}`),
      " ",
      R.failure(stopped.kind),
      ` since ${R.commitName(stopped.first)} ${R.index.commits[stopped.first].subject}; last value at ${R.commitName(stopped.good)}`,
      stopped.message && [": ", h("span", {class: "soft"}, stopped.message.split("\n")[0].slice(0, 200))],
    );
  const banner = () => {
    const {freshness, generated, commits, lost} = R.index,
      now = Date.now() / 1000;
    const old = now - generated,
      behind = freshness.oldest === null ? 0 : now - freshness.oldest;
    if (old > 3 * DAY)
      return h(
        "p",
        {class: "banner bad", role: "status"},
        h("b", null, "This report is old. "),
        `It was made ${text.ago(old)}; what was measured since is not in it.`,
      );
    if (lost.matters) {
      const newer = lost.newer ? `, ${lost.newer} of them newer than anything shown` : "";
      return h(
        "p",
        {class: "banner bad", role: "status"},
        h("b", null, "Results are missing. "),
        `${lost.files} of ${text.counted(lost.of, "file")} of results could not be used${newer}: `,
        h("a", {href: R.link("machines")}, "which, and why"),
        ".",
      );
    }
    if (!freshness.unmeasured) return null;
    const words = `${text.counted(freshness.unmeasured, "commit")} after ${R.short(commits.at(-1).sha)} ${freshness.unmeasured === 1 ? "has" : "have"} no results; the oldest of them is from ${text.ago(behind)}.`;
    return h(
      "p",
      {class: `banner ${behind > 3 * DAY ? "bad" : ""}`, role: "status"},
      behind > 3 * DAY && h("b", null, "Measuring has stopped. "),
      words,
    );
  };

  const isWaiting = event => event.gates && event.large && event.state === "tentative" && event.moved === "regressed";
  // Why these are not sure, except those whose card gives a reason.
  const onFew = groups => {
    const few = groups.filter(([first]) => !first.reasons.length).length;
    return (
      few > 0 &&
      h("p", {class: "soft"}, `${few < groups.length ? "Where no reason is given: seen" : "Seen"} in one or two results only; a stray value looks the same.`)
    );
  };
  const section = (title, groups, query, stopped = []) =>
    groups.length || stopped.length
      ? [
          h("h2", null, title),
          ...stopped.slice(0, MOST_SHOWN).map(R.stoppedLine),
          stopped.length > 0 && h("p", null, h("a", {href: R.link("failures")}, "What fails, and why")),
          title === "Measure again" && onFew(groups),
          groups.length > 0 && h("div", {class: "events"}, groups.slice(0, MOST_SHOWN).map(R.causeCard)),
          groups.length > MOST_SHOWN &&
            h("p", null, h("a", {href: R.link("regressions", "", query)}, `All ${groups.length}, a row a cause`)),
        ].filter(Boolean)
      : [];

  R.pages ??= {};
  R.pages.overview = () => {
    const {index} = R,
      holder = h("div", null),
      top = h("div", null),
      count = h("span", {class: "soft right", role: "status"});
    const metrics = [...new Set(index.rows.map(row => row.metric))],
      present = R.statuses.filter(status => index.rows.some(row => row.status === status));
    const draw = () => {
      const places = R.placeFilter(),
        open = counting(index.events).filter(event => event.places.some(places.shows));
      const waiting = index.events.filter(event => isWaiting(event) && event.places.some(places.shows)),
        stopped = stoppedIn(places.shows);
      news([...counting(index.events), ...index.events.filter(isWaiting), ...stoppedIn(() => true)]);
      const [fresh, older] = [true, false].map(wanted => open.filter(event => isNew(event) === wanted)),
        [freshWaiting, olderWaiting] = [true, false].map(wanted => waiting.filter(event => isNew(event) === wanted)),
        [freshStopped, olderStopped] = [true, false].map(wanted => stopped.filter(failure => isNew(failure) === wanted));
      const cases = stopped.reduce((sum, failure) => sum + failure.cases, 0);
      top.replaceChildren(
        ...[headline(open, fresh.length, cases, waiting, places), banner()].flat().filter(Boolean),
        R.timeline(
          index.events.filter(event => event.gates && event.places.some(places.shows)),
          index.broken.filter(failure => places.shows(failure.place)),
        ),
        h(
          "div",
          {class: "axis"},
          h("span", null, `${R.commitName(0)} · ${text.date(index.commits[0].date)}`),
          h("span", {class: "wide"}, index.commits.length > 120 ? "each bar a few measured commits; tall ones changed something" : "each bar a measured commit; tall ones changed something"),
          index.commits.length > 1 && h("span", null, `${R.commitName(index.commits.length - 1)} · ${text.date(index.commits.at(-1).date)}`),
        ),
        ...section(
          news.visited ? "New since your last visit" : "New since the night before",
          R.causes([...fresh, ...freshWaiting]),
          {},
          freshStopped,
        ),
        ...section("Stopped giving numbers", [], {}, olderStopped),
        ...section("Open regressions", R.causes(older), {state: "open"}),
        ...section("Measure again", R.causes(olderWaiting), {state: "tentative", moved: "regressed"}),
      );
      list(places);
    };
    const list = places => {
      const match = R.search.matcher(R.get("q")),
        kinds = new Set(R.list("metric")),
        states = new Set(R.list("status"));
      const rows = index.rows.filter(
        row => places.shows(row.place) && (kinds.size ? kinds.has(row.metric) : row.gates) && match(row.text),
      );
      let groups = R.grouped(rows);
      if (states.size) groups = groups.filter(group => group.some(row => states.has(row.status)));
      const sort = R.get("sort") || "status";
      const table = R.table({
        columns: R.columns(R.referenceName()),
        rows: groups,
        caption: "All benchmarks",
        name: "benchmarks",
        sort,
        link: group => R.rowLink(group[0]),
        onsort: key => {
          R.put({sort: key});
          list(R.placeFilter());
          holder.querySelector(`th[aria-sort] button`)?.focus();
        },
      });
      count.replaceChildren(`${groups.length} of ${text.counted((R.grouped.total ??= R.grouped(index.rows).length), "row")}`);
      holder.replaceChildren(table.node, table.exports);
      if (!groups.length)
        holder.replaceChildren(
          h("p", {class: "empty"}, index.rows.length ? ["Nothing matches. ", h("a", {href: "#/"}, "Show everything")] : "No benchmark has a value."),
        );
    };
    draw();
    return [
      top,
      h("h2", {id: "all"}, "All benchmarks"),
      h(
        "div",
        {class: "filters"},
        R.searchBox(() => list(R.placeFilter())),
        R.placeControls(draw),
        R.chips("Metric", "metric", metrics.length > 1 ? metrics : [], () => list(R.placeFilter()), R.metric),
        R.chips(
          "Status",
          "status",
          present.length > 1 ? present : [],
          () => list(R.placeFilter()),
          status => `${R.sign(status)} ${status}`.trim(),
        ),
        count,
      ),
      holder,
    ];
  };
})(regress);

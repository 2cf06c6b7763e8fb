// The words of the report, and the sign and colour that go with each: never a colour alone.
(R => {
  const ORDER = Object.keys(R.STATUSES);

  R.metric = name => (name === "peak_rss" ? "peak RSS" : name.replaceAll("_", " "));
  R.sign = status => R.STATUSES[status]?.[0] ?? "";
  R.tone = status => R.STATUSES[status]?.[1] ?? "";
  // The tone of a direction; a change that is neither known to be worse nor better has its own.
  R.toneOf = moved => ({regressed: "worse", improved: "better", changed: "moved", relapsed: "moved"})[moved] ?? "";
  // Of a change: which way it moved, unless it only ended a short improvement.
  R.kindOf = change => (change.state === "relapsed" ? change.state : change.moved);
  R.severity = status => ORDER.indexOf(status) + 1 || ORDER.length + 1;
  R.statuses = ORDER;
  // How far something moved, whichever way; from zero, farther than anything.
  R.far = ratio => (ratio === null ? Infinity : Math.abs(Math.log(ratio)));
  // Why a change does not count, in words: it is small, or something speaks against it.
  R.small = (change, threshold) => {
    if (change.large) return "";
    return change.reasons.length && R.far(change.ratio) > Math.log1p(threshold) ? "not claimed" : "below the threshold";
  };
  // Sorts rows: the more severe first, and among equally severe ones the one that moved farther.
  R.urgency = row => R.severity(row.status) + (row.changed === null ? 1 : 1 / (1 + R.far(row.change)));
  R.tag = (status, more = "", title = null) =>
    R.h(
      "span",
      {class: `tag ${R.tone(status)}`, title},
      R.sign(status) && R.h("span", {"aria-hidden": "true"}, `${R.sign(status)} `),
      status,
      more && ` ${more}`,
    );
  // A card in words, with as much of its id as tells it from others.
  R.card = words => words.replace(/(GPU-[0-9a-f]{8})-[0-9a-f-]+/g, "$1");
  // What is known of a commit, in a line: without the repository its author is unknown.
  R.by = (...known) => known.filter(Boolean).join(" · ");
  // The tag of a case without a number.
  R.failure = kind => (kind === "skipped" ? R.tag(kind) : R.tag("failed", kind));
  // A ratio, with an arrow that says which way, in the colour of what it means.
  R.moved = (ratio, moved, big = false) => {
    const arrow = ratio === null ? "" : ratio > 1 ? "▲" : ratio < 1 ? "▼" : "";
    return R.h(
      "span",
      {class: `${R.toneOf(moved)} ${big ? "big" : ""}`.trim()},
      R.h("span", {"aria-hidden": "true"}, arrow && `${arrow} `),
      ratio === null ? "from zero" : R.text.change(ratio),
    );
  };
  R.moveOf = (ratio, better) =>
    ratio === null || ratio === 1
      ? ""
      : better === "unknown"
        ? "changed"
        : ratio > 1 === (better === "lower")
          ? "regressed"
          : "improved";
  // All names of a place.
  R.placeNames = at => {
    const {machine, gpu, device, environment} = R.index.places[at];
    return [machine, gpu, device, environment].filter(Boolean).join("\n");
  };
  // A few places by name, many by number.
  R.placesNamed = places =>
    places.length > 3 ? `in ${places.length} places` : `on ${R.text.listed(places.map(at => R.index.places[at].label))}`;
  // How many cases have each status in these places: what every page counts.
  R.counts = places => {
    const count = {};
    for (const at of places)
      for (const [status, n] of Object.entries(R.index.counts[at])) count[status] = (count[status] ?? 0) + n;
    return count;
  };
  // "on 6 of 7 machines", or where.
  R.where = (places, of) => {
    const machines = new Set(places.map(at => R.index.places[at].machine)),
      all = new Set(of.map(at => R.index.places[at].machine));
    const missing = [...all].filter(machine => !machines.has(machine));
    if (all.size > 1)
      return `on ${machines.size} of ${R.text.counted(all.size, "machine")}${missing.length && missing.length < 3 ? ` (not ${missing.join(", ")})` : ""}`;
    if (of.length > 1) return `in ${places.length} of ${R.text.counted(of.length, "place")}`;
    return R.index.places.length > 1 ? `on ${R.index.places[places[0]].label}` : "";
  };
})(regress);

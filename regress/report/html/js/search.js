// Searching and sorting: words that have to be there, `-word` for those that must not, "two words" for a phrase.
(R => {
  const words = query =>
    [...query.toLowerCase().matchAll(/(-?)(?:"([^"]*)"?|(\S+))/g)]
      .map(([, not, phrase, word]) => ({not: not === "-", text: phrase ?? word}))
      .filter(each => each.text && each.text !== "-");
  const matcher = query => {
    const wanted = words(query);
    return text => wanted.every(each => text.includes(each.text) !== each.not);
  };
  const collator = new Intl.Collator("en", {numeric: true, sensitivity: "base"});
  // Numbers as numbers, names as a reader counts (f2 before f10), and what is missing last, whichever way it is sorted.
  const compare = (a, b, down) => {
    const none = each => each === null || each === undefined || each === "" || Number.isNaN(each);
    if (none(a) || none(b)) return none(a) - none(b);
    const order = typeof a === "number" && typeof b === "number" ? a - b : collator.compare(String(a), String(b));
    return down ? -order : order;
  };
  const sorted = (rows, value, down) =>
    rows
      .map((row, at) => [value(row), at, row])
      .sort((a, b) => compare(a[0], b[0], down) || a[1] - b[1])
      .map(each => each[2]);

  R.search = {words, matcher, compare, sorted};
})(regress);

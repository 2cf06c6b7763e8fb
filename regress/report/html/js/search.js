// Searching and sorting: words that have to be there, `-word` for those that must not, "two words" for a phrase.
(R => {
  const words = query =>
    [...query.toLowerCase().matchAll(/(-?)(?:"([^"]*)"?|(\S+))/g)]
      .map(([, not, phrase, word]) => ({not: not === "-", text: phrase ?? word}))
      .filter(word => word.text && word.text !== "-");
  const matcher = query => {
    const wanted = words(query);
    return text => wanted.every(word => text.includes(word.text) !== word.not);
  };
  const collator = new Intl.Collator("en", {numeric: true, sensitivity: "base"});
  // Numbers as numbers, names as a reader counts (f2 before f10), and what is missing last, whichever way it is sorted.
  const compare = (a, b, down) => {
    const none = value => value === null || value === undefined || value === "" || Number.isNaN(value);
    if (none(a) || none(b)) return none(a) - none(b);
    const order = typeof a === "number" && typeof b === "number" ? a - b : collator.compare(String(a), String(b));
    return down ? -order : order;
  };
  const sorted = (rows, value, down) =>
    rows
      .map((row, at) => [value(row), at, row])
      .sort((a, b) => compare(a[0], b[0], down) || a[1] - b[1])
      .map(([, , row]) => row);

  R.search = {words, matcher, compare, sorted};
})(regress);

// What is shown stands in the hash: `#/PAGE?key=value`, and `#/b/NAME?...` for a benchmark. A link to it shows the same again.
(R => {
  const parse = hash => {
    const [path, query = ""] = hash.replace(/^#/, "").split(/\?(.*)/s);
    const [, page = "", ...rest] = path.split("/");
    let name = rest.join("/");
    try {
      name = decodeURIComponent(name);
    } catch {
      // a link that somebody cut in two
    }
    return {page: page === "b" ? "benchmark" : page || "overview", name, query: new URLSearchParams(query)};
  };
  const link = (page, name = "", query = {}) => {
    const path = page === "benchmark" ? `b/${encodeURIComponent(name)}` : page === "overview" ? "" : page;
    const pairs = Object.entries(query).filter(
      ([, value]) => value !== null && value !== undefined && value !== "" && value !== false,
    );
    const text = new URLSearchParams(pairs).toString();
    return `#/${path}${text ? `?${text}` : ""}`;
  };

  R.state = parse(location.hash);
  R.parse = parse;
  R.link = link;
  R.get = key => R.state.query.get(key) ?? "";
  R.list = key => R.get(key).split(",").filter(Boolean);
  // Changes the hash without drawing the page again; what is empty is left out. That is slow in a
  // browser, so what is typed is put there `later`: when the typing pauses, or with the next click or key elsewhere.
  let waiting;
  const write = () => {
    clearTimeout(waiting);
    waiting = undefined;
    history.replaceState(null, "", link(R.state.page, R.state.name, Object.fromEntries(R.state.query)));
  };
  R.put = (changes, later = false) => {
    for (const [key, value] of Object.entries(changes)) {
      if (value === null || value === undefined || value === "" || value === false) R.state.query.delete(key);
      else R.state.query.set(key, value === true ? "1" : value);
    }
    clearTimeout(waiting);
    if (later) waiting = setTimeout(write, 200);
    else write();
  };
  for (const kind of ["click", "keydown", "pagehide"]) {
    addEventListener(kind, event => waiting !== undefined && event.target?.id !== "search" && write(), true);
  }
  // What the reader has chosen before. A browser may refuse to remember.
  R.remembered = key => {
    try {
      return localStorage.getItem(`regress ${key}`);
    } catch {
      return null;
    }
  };
  R.remember = (key, value) => {
    try {
      if (value) localStorage.setItem(`regress ${key}`, value);
      else localStorage.removeItem(`regress ${key}`);
    } catch {
      // then the choice is forgotten
    }
  };
})(regress);

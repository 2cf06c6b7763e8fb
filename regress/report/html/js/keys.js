// The keyboard, and the box that says what it does.
(R => {
  const {h} = R;
  const KEYS = [
    ["/", "search"],
    ["j k", "next, previous row"],
    ["Enter", "open the row, or pin the commit"],
    ["← →", "along the chart"],
    ["n p", "next, previous change"],
    ["l", "logarithmic axis"],
    ["c", "copy the command of a benchmark, or a link to this view"],
    ["o", "overview"],
    ["Esc", "leave the search, unpin"],
    ["?", "this box"],
  ];

  const dialog = document.getElementById("keys");
  const help = () => {
    dialog.replaceChildren(
      h("h2", {id: "keys-title"}, "Keyboard"),
      h(
        "dl",
        null,
        KEYS.map(([key, what]) => [
          h(
            "dt",
            null,
            key.split(" ").map(keyName => [h("kbd", null, keyName), " "]),
          ),
          h("dd", null, what),
        ]),
      ),
      h("p", {class: "soft small"}, 'Search: all words must occur, -word must not, "two words" stand together.'),
      h("form", {method: "dialog"}, h("button", null, "Close")),
    );
    dialog.showModal();
  };
  document.getElementById("keys-button").addEventListener("click", help);

  // The search of the header leads to the table of all benchmarks.
  const finder = document.getElementById("find");
  finder.addEventListener("submit", event => {
    event.preventDefault();
    const q = finder.elements[0].value;
    finder.reset();
    location.hash = R.link("overview", "", {q});
    document.addEventListener("drawn", () => document.getElementById("all")?.scrollIntoView(), {once: true});
  });

  const rows = () => [...document.querySelectorAll("main [data-link]")];
  const move = way => {
    const all = rows(),
      at = all.findIndex(row => row.classList.contains("at")),
      next = all[Math.max(0, Math.min(all.length - 1, at < 0 ? (way > 0 ? 0 : all.length - 1) : at + way))];
    if (!next) return;
    all[at]?.classList.remove("at");
    next.classList.add("at");
    next.querySelector("a")?.focus({preventScroll: true});
    next.scrollIntoView({block: "nearest"});
  };
  const onChart = {
    ArrowLeft: live => live.chart.step(-1),
    ArrowRight: live => live.chart.step(1),
    n: live => live.chart.change(1),
    p: live => live.chart.change(-1),
    l: live => live.go({log: R.get("log") ? "" : "1"}),
    c: live => R.copy(live.command()),
    Enter: live => {
      const commit = live.chart.current();
      if (commit === undefined) return;
      const sha = R.index.commits[commit].sha;
      live.go(live.pins.length === 1 && live.pins[0] !== commit ? {with: sha} : {pin: sha, with: ""});
    },
    Escape: live => live.go({pin: "", with: ""}),
  };
  addEventListener("keydown", event => {
    const {target, key} = event,
      typing = target.matches("input, textarea, select");
    if (event.ctrlKey || event.metaKey || event.altKey || dialog.open || !R.index) return;
    if (typing) {
      if (key === "Escape") target.blur();
      return;
    }
    const does = () => {
      if (key === "/") return (document.getElementById("search") ?? finder.elements[0]).focus() ?? true;
      if (key === "?") return help() ?? true;
      if (key === "o") return (location.hash = "#/") && true;
      if (R.live && onChart[key] && !(key === "Enter" && target.closest("a, button, summary")))
        return onChart[key](R.live) ?? true;
      if (key === "j" || key === "k") return move(key === "j" ? 1 : -1) ?? true;
      if (key === "n" || key === "p") return move(key === "n" ? 1 : -1) ?? true;
      if (key === "c") return R.copy(location.href, "a link to this view") && true;
      if (key === "Enter" && !target.closest("a, button, summary")) {
        const at = document.querySelector("main [data-link].at");
        if (at) return (location.hash = at.dataset.link) && true;
      }
      return false;
    };
    if (does() !== false) event.preventDefault();
  });
})(regress);

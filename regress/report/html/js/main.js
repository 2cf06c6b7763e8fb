// Begins: draws the page that the hash names, and again when it changes.
(R => {
  const {h} = R;
  const TITLES = {
    overview: "Overview",
    benchmark: "",
    compare: "Compare",
    regressions: "Changes",
    machines: "Machines",
    failures: "Failures",
  };

  const fresh = () => {
    const newest = R.index.commits.at(-1),
      node = document.getElementById("fresh");
    node.replaceChildren(
      "newest result: ",
      h("span", {class: "mono", title: newest.subject}, R.commitName(R.index.commits.length - 1)),
      ` from ${R.text.ago(Date.now() / 1000 - newest.date)}`,
    );
  };
  R.draw = async () => {
    R.leave?.();
    R.leave = null;
    const main = document.getElementById("main"),
      {page, name} = R.state;
    for (const link of document.querySelectorAll("header nav a")) {
      if (link.dataset.page === page) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    document.title = `${TITLES[page] || name || "Not found"} · ${R.index.project} · regress`;
    const draw = R.pages[page];
    let nodes;
    try {
      nodes = draw
        ? await draw()
        : [h("h1", null, "There is no such page"), h("p", null, h("a", {href: "#/"}, "Overview"))];
    } catch (error) {
      console.error(error);
      nodes = [
        h("h1", null, "This page cannot be shown"),
        h("p", null, error.message),
        h("p", null, "If the report was written again since you opened this page, reload it."),
      ];
    }
    main.replaceChildren(...[nodes].flat(Infinity).filter(Boolean));
    main.dataset.page = page;
    document.dispatchEvent(new Event("drawn"));
  };
  R.begin = () => {
    R.beginTheme();
    if (!R.index) {
      document
        .getElementById("main")
        .replaceChildren(
          h("h1", null, "The data of this report is not there"),
          h(
            "p",
            null,
            "Keep the folder data/ beside index.html, or make one file of it: regress report --single-file FILE",
          ),
        );
      return;
    }
    R.prepare();
    fresh();
    R.draw();
    addEventListener("hashchange", () => {
      const before = R.state;
      if (location.hash === "#main") return;
      R.state = R.parse(location.hash);
      R.draw().then(() => {
        if (before.page !== R.state.page || before.name !== R.state.name) {
          scrollTo(0, 0);
          document.getElementById("main").focus({preventScroll: true});
        }
      });
    });
  };
})(regress);

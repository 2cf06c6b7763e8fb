// What a difference comes from: a sentence with the commits that it is about, and behind it where the time went and which
// kernels changed.
(R => {
  const {h, text} = R;

  const parts = explanation =>
    h(
      "section",
      null,
      h("h2", null, "Where it went"),
      h(
        "div",
        {class: "scroll", tabindex: "0", role: "region", "aria-label": "Parts of the difference"},
        h(
          "table",
          {class: "rows parts"},
          h("caption", {class: "sr"}, "Parts of the difference, which add up to that of a profiled call"),
          h(
            "thead",
            null,
            h("tr", null, ["part", "difference", "", ""].map(word => h("th", {scope: "col", class: word === "difference" ? "n" : null}, word || h("span", {class: "sr"}, "more")))),
          ),
          h(
            "tbody",
            null,
            explanation.parts.map(([name, amount, part, more, share]) =>
              h(
                "tr",
                {class: share === null ? "sum" : null},
                h("th", {scope: "row"}, share === null ? h("b", null, name) : name, more !== "" && h("div", {class: "small soft"}, more)),
                h("td", {class: "n"}, amount),
                h("td", {class: "n"}, part),
                h("td", {class: "share"}, share !== null && h("i", {class: share < 0 ? "less" : "more", style: `width:${Math.min(100, Math.abs(100 * share))}%`})),
              ),
            ),
          ),
        ),
      ),
    );

  const time = (key, label, hide = false) => ({
    key,
    label,
    num: true,
    hide,
    value: kernel => kernel[key],
    cell: kernel => (kernel[key] === null ? text.MISSING : text.value(kernel[key], "s")),
  });
  const difference = {
    key: "difference_s",
    label: "difference",
    num: true,
    value: kernel => kernel.difference_s,
    cell: kernel => `${kernel.difference_s > 0 ? "+" : ""}${text.value(kernel.difference_s, "s")}`,
  };
  const kernels = (explanation, title) => {
    const columns = [
      {
        key: "kernel",
        label: "kernel",
        value: kernel => kernel.name,
        cell: kernel => [
          h("span", {class: "mono name"}, R.name(kernel.label)),
          kernel.more.map(line => h("div", {class: "small soft"}, line)),
        ],
      },
      {key: "kind", label: "what", value: kernel => kernel.kind, cell: kernel => kernel.kind},
      time("before_s", "before", true),
      time("after_s", "after", true),
      difference,
      {key: "launches", label: "launches", num: true, value: kernel => kernel.launches, cell: kernel => kernel.launches},
      {key: "matched", label: "matched by", hide: true, value: kernel => kernel.matched, cell: kernel => kernel.matched},
      {key: "for", label: "operator", hide: true, value: kernel => kernel.operator, cell: kernel => kernel.operator},
    ];
    return R.tabled(title, {columns, rows: explanation.kernels, caption: title, name: "kernels"});
  };

  // The commits that were compared with each other; where the report has both, a link to the case with these two pinned.
  const pair = (name, params, metric, base, head) => {
    const words = `${R.short(base)} → ${R.short(head)}`,
      query = {c: params, metric, pin: base, with: head};
    return [base, head].every(sha => R.commitAt.has(sha))
      ? h("a", {class: "mono pair", href: R.link("benchmark", name, query)}, words)
      : h("span", {class: "mono"}, words);
  };
  const when = account => {
    const end = (word, commit) => h("div", null, `${word} `, R.commitLink(commit), ` ${commit.subject}`);
    return h(
      "div",
      {class: "small soft"},
      end("base", account.base),
      end("head", account.head),
      h(
        "div",
        null,
        `${R.metric(account.metric)} on ${account.machine}, ${account.environment}, explained ${text.date(account.date)}`,
      ),
    );
  };
  const body = account => [
    when(account),
    account.found.warnings.map(words => h("p", {class: "banner"}, `doubt: ${words}`)),
    account.found.also.map(words => h("p", null, `Also: ${words}`)),
    account.found.parts.length > 0 && parts(account.found),
    account.found.kernels.length > 0 && kernels(account.found, "Kernels and copies that changed"),
  ];
  // Filled when it is opened: in the list of changes, the rest is first loaded with the data of the benchmark.
  const behind = account => {
    const details = h("details", null, h("summary", null, "Where it went, and which kernels"));
    details.addEventListener("toggle", async () => {
      if (!details.open || details.children.length > 1) return;
      const holder = h("div", null);
      details.append(holder);
      try {
        holder.append(...body(await account()).flat(Infinity).filter(Boolean));
      } catch (error) {
        holder.append(h("p", {class: "soft"}, `${error.message}. If the report was written again since you opened this page, reload it.`));
      }
    });
    return details;
  };
  // What a change comes from, in a line.
  const line = (told, name, params, metric) => {
    const about = [told.wider && "over more commits", told.params && `of (${told.params})`, told.where && `on ${told.where}`];
    return [
      told.confidence ? "because " : "explained: ",
      told.text,
      " ",
      told.confidence && h("span", {class: "tag"}, `${told.confidence} confidence`),
      " ",
      pair(name, told.params || params, metric, told.base, told.head),
      h("span", {class: "soft small"}, ` ${about.filter(Boolean).join(", ")}`),
    ];
  };
  // Below a change in the list of all.
  const told = event => {
    if (!event.told) return null;
    const entry = R.index.entries[event.benchmark];
    return h(
      "div",
      {class: "told"},
      line(event.told, entry.name, event.params, event.metric),
      behind(async () => (await R.shard(entry)).accounts[event.told.at]),
    );
  };
  // Of a benchmark: all that was explained of the case in view.
  const accounts = (shard, view) => {
    const explained = shard.accounts.filter(account => account.params === view.name);
    return (
      explained.length > 0 &&
      h(
        "section",
        {class: "accounts"},
        h("h2", null, "Where differences come from"),
        explained.map(account =>
          h(
            "div",
            {class: "told"},
            account.found.sentence,
            " ",
            pair(shard.name, account.params, account.metric, account.base.sha, account.head.sha),
            behind(async () => account),
          ),
        ),
      )
    );
  };

  R.account = {parts, kernels, line, told, accounts};
})(regress);

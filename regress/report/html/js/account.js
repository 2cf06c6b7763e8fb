// What a difference comes from: a sentence with the commits that it is about, and behind it where the time went and which
// kernels changed.
(R => {
  const {h, text} = R;

  const parts = each =>
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
            each.parts.map(([name, amount, part, more, share]) =>
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
    value: each => each[key],
    cell: each => (each[key] === null ? text.MISSING : text.value(each[key], "s")),
  });
  const difference = {
    key: "difference_s",
    label: "difference",
    num: true,
    value: each => each.difference_s,
    cell: each => `${each.difference_s > 0 ? "+" : ""}${text.value(each.difference_s, "s")}`,
  };
  const kernels = (each, title) => {
    const columns = [
      {
        key: "kernel",
        label: "kernel",
        value: one => one.name,
        cell: one => [
          h("span", {class: "mono name"}, R.name(one.label)),
          one.more.map(line => h("div", {class: "small soft"}, line)),
        ],
      },
      {key: "kind", label: "what", value: one => one.kind, cell: one => one.kind},
      time("before_s", "before", true),
      time("after_s", "after", true),
      difference,
      {key: "launches", label: "launches", num: true, value: one => one.launches, cell: one => one.launches},
      {key: "matched", label: "matched by", hide: true, value: one => one.matched, cell: one => one.matched},
      {key: "for", label: "operator", hide: true, value: one => one.operator, cell: one => one.operator},
    ];
    return R.tabled(title, {columns, rows: each.kernels, caption: title, name: "kernels"});
  };

  // The commits that were compared with each other; where the report has both, a link to the case with these two pinned.
  const pair = (name, params, metric, base, head) => {
    const words = `${R.short(base)} → ${R.short(head)}`,
      query = {c: params, metric, pin: base, with: head};
    return [base, head].every(sha => R.commitAt.has(sha))
      ? h("a", {class: "mono pair", href: R.link("benchmark", name, query)}, words)
      : h("span", {class: "mono"}, words);
  };
  const when = each => {
    const end = (word, commit) => h("div", null, `${word} `, R.commitLink(commit), ` ${commit.subject}`);
    return h(
      "div",
      {class: "small soft"},
      end("base", each.base),
      end("head", each.head),
      h("div", null, `${R.metric(each.metric)} on ${each.machine}, ${each.environment}, explained ${text.date(each.date)}`),
    );
  };
  const body = each => [
    when(each),
    each.found.warnings.map(words => h("p", {class: "banner"}, `doubt: ${words}`)),
    each.found.also.map(words => h("p", null, `Also: ${words}`)),
    each.found.parts.length > 0 && parts(each.found),
    each.found.kernels.length > 0 && kernels(each.found, "Kernels and copies that changed"),
  ];
  // Filled when it is opened: on the page of a change the rest is in the data of the benchmark.
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
  const accounts = (shard, now) => {
    const found = shard.accounts.filter(each => each.params === now.name);
    return (
      found.length > 0 &&
      h(
        "section",
        {class: "accounts"},
        h("h2", null, "Where differences come from"),
        found.map(each =>
          h(
            "div",
            {class: "told"},
            each.found.sentence,
            " ",
            pair(shard.name, each.params, each.metric, each.base.sha, each.head.sha),
            behind(async () => each),
          ),
        ),
      )
    );
  };

  R.account = {parts, kernels, line, told, accounts};
})(regress);

// A table that sorts by its heads, shows more as it is scrolled, and gives its rows to export and keyboard.
(R => {
  const PAGE = 40;

  // Columns: {key, label, num, hide, hidden, value(row), cell(row)}; `value` sorts and is exported, `cell` is shown. What has
  // `hide` is not shown on a small screen, what is `hidden` is exported only.
  R.table = ({columns: every, rows, caption, name, sort = "", onsort, link}) => {
    const columns = every.filter(column => !column.hidden);
    const [key, down] = sort.startsWith("-") ? [sort.slice(1), true] : [sort, false];
    const by = columns.find(column => column.key === key);
    const ordered = by ? R.search.sorted(rows, by.value, down) : rows;
    const kind = column => [column.num && "n", column.hide && "hide"].filter(Boolean).join(" ") || null;
    const head = column => {
      const state = column === by ? (down ? "descending" : "ascending") : null;
      const turned =
        column === by
          ? down === Boolean(column.num)
            ? `${down ? "" : "-"}${column.key}`
            : ""
          : `${column.num ? "-" : ""}${column.key}`;
      const arrow = R.h("span", {"aria-hidden": "true", class: "arrow"}, state ? (down ? " ↓" : " ↑") : "");
      const inner =
        onsort && column.label
          ? R.h("button", {type: "button", class: "head", onclick: () => onsort(turned)}, column.label, arrow)
          : column.label;
      return R.h("th", {scope: "col", class: kind(column), "aria-sort": state}, inner);
    };
    const body = R.h("tbody", null);
    const line = row =>
      R.h(
        "tr",
        {data: link ? {link: link(row)} : {}},
        columns.map((column, at) =>
          R.h(
            at ? "td" : "th",
            {class: kind(column), scope: at ? null : "row"},
            column.cell ? column.cell(row) : R.text.MISSING,
          ),
        ),
      );
    const more = R.h("button", {type: "button", class: "more"});
    let shown = 0;
    const show = () => {
      body.append(...ordered.slice(shown, shown + PAGE).map(line));
      shown = Math.min(shown + PAGE, ordered.length);
      more.hidden = shown >= ordered.length;
      more.textContent = `Show ${Math.min(PAGE, ordered.length - shown)} more of ${ordered.length}`;
    };
    more.addEventListener("click", show);
    show();
    // The rest comes when the reader begins to scroll towards it: all of it, a piece at a time.
    const rest = () => {
      if (more.hidden || !more.isConnected) return;
      show();
      setTimeout(rest);
    };
    new IntersectionObserver((seen, observer) => {
      if (!seen.some(entry => entry.isIntersecting)) return;
      observer.disconnect();
      rest();
    }, {rootMargin: "400px"}).observe(more);
    const table = R.h(
      "table",
      {class: "rows"},
      R.h("caption", {class: "sr"}, caption),
      R.h("thead", null, R.h("tr", null, columns.map(head))),
      body,
    );
    const exported = () => {
      const listed = every.filter(column => column.value);
      return {
        heads: listed.map(column => column.key),
        rows: ordered.map(row => listed.map(column => (column.out ?? column.value)(row))),
      };
    };
    return {
      node: R.h("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": caption}, table, more),
      exports: R.exports.buttons(name, exported),
      exported,
      table,
    };
  };

  // A section with such a table, which is drawn again when a head is pressed.
  R.tabled = (title, options) => {
    const section = R.h("section", null, R.h("h2", null, title));
    const draw = sort => {
      const table = R.table({...options, sort, onsort: draw});
      section.replaceChildren(section.firstChild, table.node, table.exports);
      section.querySelector("th[aria-sort] button")?.focus({preventScroll: true});
    };
    draw("");
    return section;
  };
})(regress);

// The table in view as CSV, JSON or Markdown: numbers in full, and in seconds and bytes.
(R => {
  const cell = value => (value === null || value === undefined ? "" : value);
  const csvCell = value => {
    // A spreadsheet takes text that begins like this for a formula.
    const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(cell(value));
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const csv = table => [table.heads, ...table.rows].map(row => row.map(csvCell).join(",")).join("\r\n") + "\r\n";
  const json = table =>
    JSON.stringify(
      table.rows.map(row => Object.fromEntries(table.heads.map((head, at) => [head, row[at] ?? null]))),
      null,
      1,
    ) + "\n";
  const mdCell = value =>
    String(cell(value))
      .replace(/[\\`*_<>|[\]]/g, "\\$&")
      .replace(/[\r\n\u2028\u2029]+/g, " ");
  const markdown = table =>
    [table.heads.map(mdCell), table.heads.map(() => "---"), ...table.rows.map(row => row.map(mdCell))]
      .map(row => `| ${row.join(" | ")} |`)
      .join("\n") + "\n";

  const save = (name, blob) => {
    const url = URL.createObjectURL(blob);
    R.h("a", {href: url, download: name}).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  };
  // Buttons; `table()` gives {heads, rows} of what is in view when they are pressed.
  const buttons = (name, table) =>
    R.h(
      "span",
      {class: "exports", role: "group", "aria-label": "Export this table"},
      R.h("span", {class: "soft"}, "export"),
      [
        ["CSV", "csv", "text/csv", csv],
        ["JSON", "json", "application/json", json],
        ["Markdown", "md", "text/markdown", markdown],
      ].map(([label, ending, type, write]) =>
        R.h(
          "button",
          {type: "button", class: "quiet", onclick: () => save(`${name}.${ending}`, new Blob([write(table())], {type}))},
          label,
        ),
      ),
    );

  R.exports = {csv, json, markdown, save, buttons};
})(regress);

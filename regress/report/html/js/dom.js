// Elements. Text goes in as text and never as markup, whatever it says; there is no other way to put text on a page here.
(R => {
  const SVG = "http://www.w3.org/2000/svg";

  const fill = (node, attributes, children) => {
    for (const [name, value] of Object.entries(attributes ?? {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (name === "data") Object.assign(node.dataset, value);
      else if (name === "value") node.value = value;
      else node.setAttribute(name, value === true ? "" : value);
    }
    node.append(
      ...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false && child !== ""),
    );
    return node;
  };
  const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

  // A long name, with places where the line may break.
  const name = words => words.split(/(?<=[._,(])/).flatMap((part, at) => (at ? [h("wbr"), part] : [part]));

  // Tells a screen reader, and shows a line for a moment.
  let timer;
  const say = text => {
    const said = document.getElementById("said");
    said.textContent = text;
    said.classList.add("shown");
    clearTimeout(timer);
    timer = setTimeout(() => said.classList.remove("shown"), 1600);
  };
  const copy = async (text, what) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = h("textarea", {class: "sr", value: text, readonly: true});
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    say(`copied: ${what ?? text}`);
  };
  const copyButton = (label, text, more = "") =>
    h(
      "button",
      {
        type: "button",
        class: "copy",
        title: [text, more].filter(Boolean).join("\n"),
        "aria-label": ["Copy the command: ", label, more && `, ${more}`].filter(Boolean).join(""),
        onclick: () => copy(text, more && `${text} (${more})`),
      },
      label,
    );
  const command = text => h("div", {class: "command"}, h("pre", {tabindex: "0"}, text), copyButton("copy", text));

  R.h = h;
  R.svg = svg;
  R.name = name;
  R.say = say;
  R.copy = copy;
  R.copyButton = copyButton;
  R.command = command;
})(regress);

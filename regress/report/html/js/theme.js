// Light or dark: the system's choice, until the reader makes one.
(R => {
  const theme = () =>
    document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  const button = document.getElementById("theme");
  const setTheme = name => {
    if (name) document.documentElement.dataset.theme = name;
    button.textContent = theme() === "dark" ? "light" : "dark";
    button.setAttribute("aria-label", `Switch to the ${button.textContent} theme`);
    document.dispatchEvent(new Event("themed"));
  };
  button.addEventListener("click", () => {
    const next = theme() === "dark" ? "light" : "dark";
    R.remember("theme", next);
    setTheme(next);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(""));
  // Paper is white, whatever the screen is: the charts are drawn for it.
  matchMedia("print").addEventListener("change", () => document.dispatchEvent(new Event("themed")));

  // For a page that stands as it is from the start: what is drawn on it follows the theme and the width.
  R.redrawn = draw => {
    let waiting;
    addEventListener("resize", () => {
      clearTimeout(waiting);
      waiting = setTimeout(draw, 80);
    });
    document.addEventListener("themed", draw);
  };
  R.beginTheme = () => setTheme(new URLSearchParams(location.search).get("theme") || R.remembered("theme") || "");
})(regress);

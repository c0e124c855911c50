"use strict";
for (const heading of document.querySelectorAll("th[aria-sort]")) {
  heading.querySelector("button").addEventListener("click", () => {
    const body = heading.closest("table").tBodies[0];
    const down = heading.getAttribute("aria-sort") === "ascending";
    const key = (row) => {
      const cell = row.cells[heading.cellIndex];
      if (heading.dataset.kind === "text") return cell.textContent;
      return cell.dataset.value === "" ? null : Number(cell.dataset.value);
    };
    const compare = (a, b) =>
      heading.dataset.kind === "text" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
    const rows = [...body.rows].map((row) => [key(row), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null); // unknown comes last
      return down ? compare(b, a) : compare(a, b);
    });
    body.append(...rows.map(([, row]) => row));
    for (const other of heading.parentElement.cells) other.setAttribute("aria-sort", "none");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  });
}
for (const filters of document.querySelectorAll(".filters")) {
  const choices = [...filters.querySelectorAll("select")];
  const body = filters.parentElement.querySelector("table").tBodies[0];
  filters.hidden = false;
  filters.addEventListener("change", () => {
    for (const row of body.rows) {
      const fits = (each) => !each.value || row.cells[each.dataset.column].textContent === each.value;
      row.hidden = !choices.every(fits);
      const target = document.getElementById(row.querySelector("a").hash.slice(1));
      if (target) target.hidden = row.hidden;
    }
  });
}
function pressed(button, is_on) {
  button.setAttribute("aria-pressed", is_on);
  return button;
}
for (const name of document.querySelectorAll(".legend li")) {
  // A name of the legend hides what has its colour, in its picture or in all of its section.
  const colour = `var(--${name.querySelector("b").className})`;
  const marks = name
    .closest("figure, section")
    .querySelectorAll(`.chart [fill="${colour}"], .chart [stroke="${colour}"]`);
  if (!marks.length) continue;
  const button = pressed(document.createElement("button"), true);
  button.append(...name.childNodes);
  name.append(button);
  button.addEventListener("click", () => {
    const is_on = button.getAttribute("aria-pressed") !== "true";
    for (const mark of marks) mark.classList.toggle("hidden", !is_on);
    pressed(button, is_on);
  });
}
for (const caption of document.querySelectorAll(".figures figcaption, .pair figcaption")) {
  const button = pressed(document.createElement("button"), false);
  button.textContent = "⤢";
  button.setAttribute("aria-label", "As wide as the page");
  caption.append(button);
  button.addEventListener("click", () => {
    pressed(button, caption.parentElement.classList.toggle("enlarged"));
  });
}
let folded = [];
window.addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  for (const each of folded) each.open = true;
});
window.addEventListener("afterprint", () => {
  for (const each of folded) each.open = false;
});

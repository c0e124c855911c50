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
let folded = [];
window.addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  for (const each of folded) each.open = true;
});
window.addEventListener("afterprint", () => {
  for (const each of folded) each.open = false;
});

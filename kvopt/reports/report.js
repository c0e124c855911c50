"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip");
  const charts = [];

  // ---- tables ------------------------------------------------------------------------

  const key = (row, column, kind) => {
    const cell = row.cells[column];
    if (kind === "text") return cell.textContent;
    return cell.dataset.value === "" ? null : Number(cell.dataset.value);
  };

  const compare = (a, b, kind) => (kind === "text" ? a.localeCompare(b, "en") : a - b);

  const sort = (heading) => {
    const body = heading.closest("table").tBodies[0];
    const down = heading.getAttribute("aria-sort") === "ascending";
    const { kind } = heading.dataset;
    const rows = [...body.rows].map((row) => [key(row, heading.cellIndex, kind), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null); // unknown comes last
      return down ? compare(b, a, kind) : compare(a, b, kind);
    });
    body.append(...rows.map(([, row]) => row));
    for (const other of heading.parentElement.cells) {
      if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
    }
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  };

  for (const heading of document.querySelectorAll("th[aria-sort]")) {
    heading.querySelector("button").addEventListener("click", () => sort(heading));
  }

  // ---- points ------------------------------------------------------------------------

  const element = (name, text) => {
    const made = document.createElement(name);
    made.textContent = text;
    return made;
  };

  const mark = (chart, point) => {
    chart.ring.setAttribute("cx", point[0]);
    chart.ring.setAttribute("cy", point[1]);
    chart.ring.removeAttribute("visibility");
  };

  const hide = () => {
    tip.hidden = true;
    tip.classList.remove("kept");
    for (const chart of charts) chart.ring.setAttribute("visibility", "hidden");
  };

  const place = (chart, point) => {
    const box = chart.svg.getBoundingClientRect();
    const scale = box.width / chart.svg.viewBox.baseVal.width;
    const x = box.left + point[0] * scale;
    const y = box.top + point[1] * scale;
    const wide = document.documentElement.clientWidth;
    const left = Math.max(8, Math.min(x + 14, wide - tip.offsetWidth - 8));
    const above = y - tip.offsetHeight - 14;
    tip.style.left = `${left + window.scrollX}px`;
    tip.style.top = `${(above < 8 ? y + 14 : above) + window.scrollY}px`;
  };

  const show = (chart, index, keep) => {
    const point = chart.points[index];
    const [name, size, optimum, address] = data.instances[point[3]];
    chart.at = index;
    tip.replaceChildren(element("strong", name), element("span", size));
    tip.append(element("span", optimum), element("span", point[4]));
    if (address) {
      const link = element("a", "certificate");
      link.href = address;
      link.tabIndex = -1; // Enter on the chart leads there
      tip.append(link);
    }
    for (const other of charts) {
      const same = other === chart ? index : other.places.get(point[3]);
      if (same === undefined) other.ring.setAttribute("visibility", "hidden");
      else mark(other, other.points[same]);
    }
    tip.hidden = false;
    tip.classList.toggle("kept", keep);
    place(chart, point);
  };

  const nearest = (chart, event) => {
    const box = chart.svg.getBoundingClientRect();
    const scale = chart.svg.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * scale;
    const y = (event.clientY - box.top) * scale;
    let best = -1;
    let least = 24 ** 2;
    chart.points.forEach(([px, low, high], index) => {
      const dy = y - Math.min(Math.max(y, high), low); // to the nearest place of the interval
      const distance = (x - px) ** 2 + dy ** 2;
      if (distance < least) [best, least] = [index, distance];
    });
    return best;
  };

  const step = (chart, event) => {
    const last = chart.points.length - 1;
    const to = {
      ArrowRight: Math.min(chart.at + 1, last),
      ArrowDown: Math.min(chart.at + 1, last),
      ArrowLeft: Math.max(chart.at - 1, 0),
      ArrowUp: Math.max(chart.at - 1, 0),
      Home: 0,
      End: last,
    }[event.key];
    if (event.key === "Escape") hide();
    else if (event.key === "Enter" && !tip.hidden) tip.querySelector("a")?.click();
    else if (to !== undefined) show(chart, to, false);
    else return;
    event.preventDefault();
  };

  for (const box of document.querySelectorAll(".points")) {
    const svg = box.querySelector("svg");
    const ring = document.createElementNS("http://www.w3.org/2000/svg", "circle");
    ring.setAttribute("class", "ring");
    ring.setAttribute("r", "6");
    ring.setAttribute("visibility", "hidden");
    svg.append(ring);
    const points = data.charts[box.dataset.chart];
    const places = new Map(points.map((point, index) => [point[3], index]));
    const chart = { svg, ring, points, places, at: 0 };
    charts.push(chart);
    box.addEventListener("pointermove", (event) => {
      if (event.pointerType !== "mouse" || tip.classList.contains("kept")) return;
      const found = nearest(chart, event);
      if (found < 0) hide();
      else show(chart, found, false);
    });
    box.addEventListener("pointerleave", () => tip.classList.contains("kept") || hide());
    box.addEventListener("click", (event) => {
      const found = nearest(chart, event);
      if (found < 0) hide();
      else show(chart, found, true); // stays, so that its link can be reached
    });
    box.addEventListener("focus", () => {
      if (box.matches(":focus-visible")) show(chart, chart.at, false);
    });
    box.addEventListener("blur", () => tip.classList.contains("kept") || hide());
    box.addEventListener("keydown", (event) => step(chart, event));
  }
  document.addEventListener("click", (event) => {
    if (!event.target.closest(".points, #tip")) hide();
  });

  // ---- paper -------------------------------------------------------------------------

  let folded = [];
  window.addEventListener("beforeprint", () => {
    hide();
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const each of folded) each.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const each of folded) each.open = false;
  });
})();

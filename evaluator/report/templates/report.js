"use strict";

// Sortable tables: a button in each header of a column, aria-sort on the column that orders the rows.

const words = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

function keyOf(row, column, isNumber) {
  const cell = row.cells[column];
  return isNumber ? Number.parseFloat(cell.dataset.value) : cell.firstChild?.textContent ?? "";
}

function isMissing(key) {
  return Number.isNaN(key) || key === "" || key === "–";
}

function compare(a, b) {
  return typeof a === "number" ? a - b : words.compare(a, b);
}

function sortRows(table, column) {
  const header = table.tHead.rows[0].cells[column];
  const isNumber = header.classList.contains("number");
  const first = isNumber ? "descending" : "ascending";
  const other = isNumber ? "ascending" : "descending";
  const direction = header.getAttribute("aria-sort") === first ? other : first;
  const sign = direction === "ascending" ? 1 : -1;
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => ({ row, key: keyOf(row, column, isNumber) }));
  rows.sort((one, two) => {
    if (isMissing(one.key) || isMissing(two.key)) return isMissing(one.key) - isMissing(two.key);
    return sign * compare(one.key, two.key);
  });
  body.append(...rows.map(({ row }) => row));
  for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", direction);
  document.getElementById("sorted").textContent =
    `${table.caption.textContent}: sorted by ${header.textContent}, ${direction}`;
}

for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((header, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    button.addEventListener("click", () => sortRows(table, column));
    header.append(button);
  });
}

document.getElementById("sortable").hidden = false;

// Explanations of headings, when they are pointed at or focused; Escape closes them. Without script they are titles.

const tip = document.getElementById("tip");
let explained = null;

function explain(header) {
  explained = header;
  tip.textContent = header.dataset.meaning;
  tip.hidden = false;
  const box = header.getBoundingClientRect();
  const left = Math.min(box.left, document.documentElement.clientWidth - tip.offsetWidth - 8);
  const below = box.bottom + 6 + tip.offsetHeight < innerHeight;
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${below ? box.bottom + 6 : box.top - tip.offsetHeight - 6}px`;
}

function stopExplaining() {
  explained = null;
  tip.hidden = true;
}

for (const header of document.querySelectorAll("th[title]")) {
  header.dataset.meaning = header.title;
  header.removeAttribute("title");
  header.querySelector("button")?.setAttribute("aria-description", header.dataset.meaning);
  for (const kind of ["mouseenter", "focusin"]) header.addEventListener(kind, () => explain(header));
  for (const kind of ["mouseleave", "focusout"]) header.addEventListener(kind, stopExplaining);
}
addEventListener("keydown", (event) => event.key === "Escape" && stopExplaining());
addEventListener("scroll", () => explained && explain(explained), { capture: true, passive: true });

// Tables as LaTeX and Markdown.

function copyBySelection(text) {
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

for (const buttons of document.querySelectorAll(".copy")) {
  buttons.hidden = false;
  for (const button of buttons.querySelectorAll("button")) {
    let source = buttons;
    while (!source.classList.contains(button.dataset.form)) source = source.nextElementSibling;
    const words = button.textContent;
    button.addEventListener("click", async () => {
      button.textContent = (await copy(source.textContent)) ? "Copied" : "Not copied: the browser forbids it";
      setTimeout(() => { button.textContent = words; }, 2000);
    });
  }
}

// What is pointed at is opened.

function openTarget(hash) {
  const target = hash && document.getElementById(decodeURIComponent(hash.slice(1)));
  const details = target && (target.closest("details") ?? target.parentElement.querySelector(":scope > details"));
  if (details && target.id !== "answer" && target.id !== "scores" && target.id !== "listen") details.open = true;
}

addEventListener("hashchange", () => openTarget(location.hash));
openTarget(location.hash);

// In a frame of a notebook, "#scores" is an address of the notebook's page: the script goes there itself.

if (location.href === "about:srcdoc") {
  for (const link of document.querySelectorAll('a[href^="#"]')) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      openTarget(link.hash);
      document.getElementById(link.hash.slice(1)).scrollIntoView();
    });
  }
}

// Which samples are shown.

function showSamples(filter, samples) {
  const wanted = [...filter.querySelectorAll("select")].filter((one) => one.value);
  for (const sample of samples) {
    sample.hidden = !wanted.every((one) => sample.dataset[one.dataset.key] === one.value);
    if (sample.hidden) for (const player of sample.querySelectorAll("audio")) player.pause();
  }
  const shown = samples.filter((sample) => !sample.hidden);
  const more = samples.map((sample) => sample.closest("details.more")).find(Boolean);
  if (wanted.length) more.open = true;
  more.hidden = !shown.some((sample) => more.contains(sample));
  filter.querySelector("[role=status]").textContent =
    wanted.length ? `${shown.length || "None"} of ${samples.length} ${filter.dataset.what}` : "";
}

for (const filter of document.querySelectorAll(".filter")) {
  const samples = [];
  for (let next = filter.nextElementSibling; next?.matches(".sample, details.more"); next = next.nextElementSibling) {
    samples.push(...(next.matches(".sample") ? [next] : next.querySelectorAll(".sample")));
  }
  filter.hidden = false;
  // A browser that goes back to the page may keep what was chosen.
  for (const select of filter.querySelectorAll("select")) select.value = "";
  filter.addEventListener("change", () => showSamples(filter, samples));
}

// One player at a time.

document.addEventListener(
  "play",
  (event) => {
    for (const player of document.querySelectorAll("audio")) {
      if (player !== event.target) player.pause();
    }
  },
  true,
);

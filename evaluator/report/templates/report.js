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

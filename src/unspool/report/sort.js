
// Headings of sortable tables become buttons; a row without a number in the column stays at the end either way.
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, place) => {
    const button = head.querySelector("button");
    button.disabled = false;
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      const numbers = head.classList.contains("number");
      const key = (row) => {
        const cell = row.cells[place];
        return numbers ? Number.parseFloat(cell.dataset.order ?? "NaN") : cell.textContent.trim();
      };
      const compare = (a, b) => {
        const one = key(a), two = key(b);
        if (numbers && (Number.isNaN(one) || Number.isNaN(two))) return Number.isNaN(one) - Number.isNaN(two);
        const rise = numbers ? one - two : one.localeCompare(two, "en", { numeric: true });
        return down ? -rise : rise;
      };
      const body = table.tBodies[0];
      body.append(...[...body.rows].sort(compare));
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
    });
  });
}

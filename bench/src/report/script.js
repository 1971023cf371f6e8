// The page is whole without this: it adds a filter of scenarios and the sorting of tables.
for (const box of document.querySelectorAll("#filter")) {
  box.hidden = false;
  box.addEventListener("input", () => {
    const want = box.value.trim().toLowerCase();
    for (const item of document.querySelectorAll("[data-scenario]")) {
      const { scenario, about } = item.dataset;
      item.hidden = !scenario.includes(want) && !about.toLowerCase().includes(want);
    }
  });
}
for (const head of document.querySelectorAll("table.sortable thead th")) {
  head.dataset.sorts = "";
  head.addEventListener("click", () => {
    const table = head.closest("table"), body = table.tBodies[0], at = head.cellIndex;
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = row => row.cells[at].dataset.value ?? row.cells[at].textContent;
    const order = (a, b) => {
      const [x, y] = [key(a), key(b)];
      const difference = Number(x) - Number(y);
      return (Number.isNaN(difference) ? x.localeCompare(y) : difference) * (up ? 1 : -1);
    };
    body.append(...[...body.rows].sort(order));
  });
}

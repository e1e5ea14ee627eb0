  const rows = [...byId("runs").tBodies[0].rows];
  const heads = [...byId("runs").tHead.rows[0].cells];
  const choices = [...document.querySelectorAll("select[data-column]")];

  function filter() {
    const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) {
      const chosen = choices.every((choice) => !choice.value || row.cells[choice.dataset.column].textContent === choice.value);
      const text = row.textContent.toLowerCase();
      row.hidden = !chosen || !words.every((word) => text.includes(word));
    }
    byId("shown").textContent = rows.filter((row) => !row.hidden).length + " of " + rows.length;
  }

  const valueOf = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent;

  function compare(a, b) {
    const numbers = a.trim() !== "" && b.trim() !== "" && !isNaN(a) && !isNaN(b);
    return numbers ? a - b : a.localeCompare(b);
  }

  // figures begin with the largest, words with the first
  function sort(column) {
    const head = heads[column];
    const first = head.classList.contains("right") ? "descending" : "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    const way = head.getAttribute("aria-sort") === first ? other : first;
    for (const each of heads) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", way);
    const sign = way === "ascending" ? 1 : -1;
    rows.sort((a, b) => sign * compare(valueOf(a, column), valueOf(b, column)));
    byId("runs").tBodies[0].append(...rows);
  }

  heads.forEach((head, column) => head.firstChild.addEventListener("click", () => sort(column)));
  byId("search").addEventListener("input", filter);
  for (const choice of choices) choice.addEventListener("change", filter);
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("filters").addEventListener("reset", () => setTimeout(filter));
  filter();

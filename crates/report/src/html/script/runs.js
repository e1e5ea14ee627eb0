  const table = byId("runs");
  const heads = [...table.tHead.rows[0].cells];
  const choices = [...document.querySelectorAll("select[data-column]")];
  // a line is a run, or a group: its runs stand in a body behind its own, which is folded until somebody opens it
  const lines = [...table.tBodies].filter((body) => !body.id).map((body) => {
    const row = body.rows[0];
    const fold = row.querySelector("button");
    const members = fold && byId(fold.getAttribute("aria-controls"));
    return { body, row, fold, members, runs: members ? [...members.rows] : [row], sought: false };
  });

  const isOpen = (line) => line.fold.getAttribute("aria-expanded") === "true";

  function open(line, wanted) {
    line.fold.setAttribute("aria-expanded", wanted);
    line.members.hidden = !wanted || line.body.hidden;
  }

  function filter() {
    const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    let all = 0;
    for (const line of lines) {
      let fitting = 0;
      for (const row of line.runs) {
        const chosen = choices.every((choice) => !choice.value || row.cells[choice.dataset.column].textContent === choice.value);
        // of the whole id, which is the title of the first cell, the end alone may stand in the row
        const text = (row.textContent + " " + row.cells[0].title).toLowerCase();
        row.hidden = !chosen || !words.every((word) => text.includes(word));
        fitting += row.hidden ? 0 : 1;
      }
      found += fitting;
      all += line.runs.length;
      line.body.hidden = fitting === 0;
      if (line.fold) {
        // what is looked for among the runs of a group is not hidden behind it
        const sought = fitting > 0 && fitting < line.runs.length;
        open(line, sought === line.sought ? isOpen(line) : sought);
        line.sought = sought;
      }
    }
    byId("shown").textContent = found + " of " + all;
  }

  const valueOf = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent;

  function compare(a, b) {
    const numbers = a.trim() !== "" && b.trim() !== "" && !isNaN(a) && !isNaN(b);
    return numbers ? a - b : a.localeCompare(b);
  }

  // figures begin with the largest, words with the first; of a group its own figure counts, and its runs are sorted behind it
  function sort(column) {
    const head = heads[column];
    const first = head.classList.contains("right") ? "descending" : "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    const way = head.getAttribute("aria-sort") === first ? other : first;
    for (const each of heads) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", way);
    const sign = way === "ascending" ? 1 : -1;
    const inOrder = (a, b) => sign * compare(valueOf(a, column), valueOf(b, column));
    lines.sort((a, b) => inOrder(a.row, b.row));
    for (const line of lines) {
      table.append(line.body);
      if (line.members) {
        line.members.append(...line.runs.sort(inOrder));
        table.append(line.members);
      }
    }
  }

  heads.forEach((head, column) => head.firstChild.addEventListener("click", () => sort(column)));
  for (const line of lines.filter((line) => line.fold)) {
    line.fold.hidden = false;
    open(line, false);
    line.fold.addEventListener("click", () => open(line, !isOpen(line)));
  }
  byId("search").addEventListener("input", filter);
  for (const choice of choices) choice.addEventListener("change", filter);
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("filters").addEventListener("reset", () => setTimeout(filter));
  filter();

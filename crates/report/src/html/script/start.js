  // what is typed in one go is one step of Back
  let typing = false;

  function changed(byTyping) {
    filter();
    opened = "";
    noteInAddress(!(byTyping && typing));
    typing = byTyping;
  }

  function listen() {
    let waiting = 0;
    byId("search").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => changed(true), 80); });
    for (const id of CONTROLS.slice(1)) byId(id).addEventListener("change", () => changed(false));
    byId("filters").addEventListener("submit", (event) => { event.preventDefault(); changed(false); });
    byId("filters").addEventListener("reset", () => setTimeout(() => changed(false)));
    byId("more").addEventListener("click", showMore);
    document.addEventListener("keydown", pressed);
    addEventListener("hashchange", followAddress);
  }

  function showMore() {
    const first = drawn;
    more();
    // the button may be gone now, and with it the place of whoever works by keyboard
    byId("list").children[first].firstChild.focus({ preventScroll: true });
  }

  // keys: / searches, j and k (or arrows) walk the rows, Escape closes one
  function pressed(event) {
    const inField = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (event.key === "/" && !inField) { event.preventDefault(); byId("search").focus(); return; }
    if (event.key === "Escape" && inField) { document.activeElement.blur(); return; }
    const open = event.key === "Escape" && document.activeElement.closest("#list > li");
    if (open && isOpen(open)) {
      open.firstChild.focus();
      open.firstChild.click();
      return;
    }
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
    if (step && !inField && !event.ctrlKey && !event.metaKey && !event.altKey) walk(event, step);
  }

  function walk(event, step) {
    const rows = byId("list").children;
    // from within an open row too
    const at = [...rows].indexOf(document.activeElement.closest("#list > li"));
    if (at < 0 && event.key.startsWith("Arrow")) return;
    if (at + step >= drawn) more();
    const next = rows[Math.min(rows.length - 1, Math.max(0, at + step))];
    if (next) { event.preventDefault(); next.firstChild.focus(); }
  }

  fillControls();
  listen();
  filter();
  followAddress();

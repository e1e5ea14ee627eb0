  // the question that was opened last, by its id
  let opened = "";

  const controls = () => CONTROLS.map((id) => byId(id).value).join("\n");

  // the address of this list, with what is open: who opens it sees the same
  function address() {
    const said = new URLSearchParams();
    for (const id of CONTROLS) {
      if (byId(id).value) said.set(id, byId(id).value);
    }
    if (opened) said.set("q", opened);
    const words = said.toString();
    return location.href.split("#")[0] + (words ? "#" + words : "");
  }

  // `step`: Back takes it back
  function noteInAddress(step) {
    if (address() === location.href) return;
    try {
      history[step ? "pushState" : "replaceState"](null, "", address());
    } catch {
      // a browser that was told too often in a short time: the list is right, its address a step behind
    }
  }

  // shows what the address says; one that names a part of the page says nothing of the list
  function followAddress() {
    const words = location.hash.slice(1);
    if (words && !words.includes("=")) return;
    const said = new URLSearchParams(words);
    const before = { controls: controls(), opened };
    for (const id of CONTROLS) setControl(byId(id), said.get(id) || "");
    opened = said.get("q") || "";
    if (controls() !== before.controls) filter();
    if (opened === before.opened) return;
    const last = before.opened && rowOf(before.opened);
    if (last) unfold(last.item, last.q, false);
    showOpened();
  }

  function setControl(control, value) {
    control.value = value;
    // a choice that this page does not have
    if (control.selectedIndex === -1) control.value = "";
  }

  function showOpened() {
    const named = opened && rowOf(opened);
    if (!named) return;
    unfold(named.item, named.q, true);
    named.item.firstChild.scrollIntoView({ block: "start" });
  }

  const STEP = 100;
  const CONTROLS = ["search", "category", "outcome", "result", "cause", "order"];
  let matching = [];
  let drawn = 0;

  function options(id, values) {
    for (const value of values) byId(id).append(element("option", { value }, value));
  }

  function fillControls() {
    options("category", [...data.categories].sort());
    options("outcome", [...new Set(data.questions.map((q) => q.out))].sort());
    options("cause", [...new Set(data.questions.flatMap(causesOf))].sort());
    if (data.lower) byId("order").querySelector("[value=score]").textContent = "highest score";
    if (data.questions.some((q) => q.flip)) options("result", ["won", "lost"]);
  }

  function matches(q, wanted) {
    if (wanted.category && data.categories[q.cat] !== wanted.category) return false;
    if (wanted.outcome && q.out !== wanted.outcome) return false;
    if (wanted.cause && !causesOf(q).includes(wanted.cause)) return false;
    if (wanted.result === "passed" && passed(q) !== true) return false;
    if (wanted.result === "failed" && passed(q) !== false) return false;
    if ((wanted.result === "won" || wanted.result === "lost") && q.flip !== wanted.result) return false;
    return wanted.words.every((word) => q.text.includes(word) || hitText(q).includes(word));
  }

  function inOrder(questions) {
    const low = (q) => { const score = scoreOf(q); return score === null ? 2 : gain(score); };
    const orders = { score: (a, b) => low(a) - low(b), slow: (a, b) => timeOf(b) - timeOf(a), usd: (a, b) => b.usd - a.usd };
    const order = orders[byId("order").value];
    return order ? [...questions].sort(order) : questions;
  }

  function filter() {
    const wanted = { words: byId("search").value.toLowerCase().split(/\s+/).filter(Boolean) };
    for (const id of ["category", "outcome", "result", "cause"]) wanted[id] = byId(id).value;
    matching = inOrder(data.questions.filter((q) => matches(q, wanted)));
    byId("shown").textContent = matching.length + " of " + data.questions.length;
    const scores = matching.map(scoreOf).filter((score) => score !== null);
    const mean = scores.reduce((sum, score) => sum + score, 0) / scores.length;
    byId("mean").textContent = scores.length ? "plain mean of " + data.metric + " " + (mean * 100).toFixed(2) + " %" : "";
    byId("list").replaceChildren();
    drawn = 0;
    more();
  }

  function more() {
    const rows = matching.slice(drawn, drawn + STEP).map(row);
    byId("list").append(...rows);
    drawn += rows.length;
    byId("more").hidden = drawn >= matching.length;
    byId("printed").textContent = drawn + " of " + data.questions.length + " questions; more are shown on the screen.";
  }

  function row(q) {
    const score = scoreOf(q);
    const good = passed(q);
    const tags = causesOf(q).concat(q.flip || []);
    const button = element("button", { class: "row", type: "button", "aria-expanded": "false" },
      element("span", { class: good === null ? "" : good ? "pass" : "failing" }, score === null ? q.out : percent(score)),
      element("span", { class: "id", title: q.id }, q.id),
      element("span", {}, q.q, ...tags.map((name) => element("span", { class: "tag" }, name.replaceAll("_", " ")))),
      element("span", { class: "ms" }, timeOf(q) ? timeOf(q).toFixed(1) + " ms" : ""));
    const item = element("li", { "data-id": q.id }, button);
    button.addEventListener("click", () => {
      unfold(item, q, !isOpen(item));
      if (isOpen(item)) opened = q.id;
      else if (opened === q.id) opened = "";
      noteInAddress(true);
    });
    unfold(item, q, Boolean(data.open));
    return item;
  }

  const isOpen = (item) => item.firstChild.getAttribute("aria-expanded") === "true";

  function unfold(item, q, open) {
    if (isOpen(item) === open) return;
    item.firstChild.setAttribute("aria-expanded", String(open));
    if (open) item.append(detail(q));
    else item.lastChild.remove();
  }

  // the row of a question, drawn if need be; nothing when it is not in the list
  function rowOf(id) {
    const at = matching.findIndex((q) => q.id === id);
    if (at < 0) return null;
    while (drawn <= at) more();
    return { item: byId("list").children[at], q: matching[at] };
  }

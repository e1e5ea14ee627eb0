"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const STEP = 100;
  const phases = ["recall", "answer", "judge"];

  function element(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== undefined) node.setAttribute(name, value);
    }
    // text nodes only: nothing of a dataset or a model is ever markup
    for (const child of children) node.append(child);
    return node;
  }

  const scoreOf = (q) => {
    const found = q.s.find(([metric]) => metric === data.metric);
    return found ? found[1] : null;
  };
  const timeOf = (q) => q.t.slice(0, 3).reduce((sum, ms) => sum + (ms || 0), 0);
  // signed so that more is better
  const gain = (score) => data.lower ? -score : score;
  const passed = (q) => {
    const score = scoreOf(q);
    if (score === null) return null;
    return gain(score) > gain(data.pass) || (score === data.pass && !data.beyond);
  };
  for (const q of data.questions) {
    q.text = [q.id, q.bank, q.q, q.gold || "", q.ans || "", q.err || "", ...(q.f || []).map((f) => f.join("=")), ...(q.se || []).map(([query]) => query)].join("\n").toLowerCase();
  }
  const hitText = (q) => q.hits.map(([id, , , text]) => id + " " + data.texts[text]).join("\n").toLowerCase();

  function options(id, values) {
    for (const value of values) byId(id).append(element("option", { value }, value));
  }
  options("category", [...data.categories].sort());
  options("outcome", [...new Set(data.questions.map((q) => q.out))].sort());
  options("cause", [...new Set(data.questions.flatMap((q) => (q.fail || []).concat(q.why || [])))].sort());
  if (data.lower) byId("order").querySelector("[value=score]").textContent = "highest score";
  if (data.questions.some((q) => q.flip)) options("result", ["won", "lost"]);

  let matching = [];
  let drawn = 0;

  function matches(q, wanted) {
    if (wanted.category && data.categories[q.cat] !== wanted.category) return false;
    if (wanted.outcome && q.out !== wanted.outcome) return false;
    if (wanted.cause && !(q.fail || []).concat(q.why || []).includes(wanted.cause)) return false;
    if (wanted.result === "passed" && passed(q) !== true) return false;
    if (wanted.result === "failed" && passed(q) !== false) return false;
    if ((wanted.result === "won" || wanted.result === "lost") && q.flip !== wanted.result) return false;
    return wanted.words.every((word) => q.text.includes(word) || hitText(q).includes(word));
  }

  function filter() {
    const wanted = { words: byId("search").value.toLowerCase().split(/\s+/).filter(Boolean) };
    for (const id of ["category", "outcome", "result", "cause"]) wanted[id] = byId(id).value;
    matching = data.questions.filter((q) => matches(q, wanted));
    const low = (q) => { const score = scoreOf(q); return score === null ? 2 : gain(score); };
    const orders = { score: (a, b) => low(a) - low(b), slow: (a, b) => timeOf(b) - timeOf(a), usd: (a, b) => b.usd - a.usd };
    const order = orders[byId("order").value];
    if (order) matching = [...matching].sort(order);
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
    const shown = score === null ? q.out : (score * 100).toFixed(score === 0 || score === 1 ? 0 : 1) + " %";
    const good = passed(q);
    const button = element("button", { class: "row", type: "button", "aria-expanded": "false" },
      element("span", { class: good === null ? "" : good ? "pass" : "failing" }, shown),
      element("span", { class: "id", title: q.id }, q.id),
      element("span", {}, q.q, ...(q.fail || []).concat(q.why || [], q.flip || []).map((name) => element("span", { class: "tag" }, name.replaceAll("_", " ")))),
      element("span", { class: "ms" }, timeOf(q) ? timeOf(q).toFixed(1) + " ms" : ""));
    const item = element("li", { "data-id": q.id }, button);
    button.addEventListener("click", () => toggle(item, button, q));
    return item;
  }

  function toggle(item, button, q) {
    const open = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!open));
    if (open) item.lastChild.remove();
    else item.append(detail(q));
    // the address of the page names the question, so that it can be handed on
    history.replaceState(null, "", open ? "#browser" : "#q=" + encodeURIComponent(q.id));
  }

  // opens the question that the address names
  function openNamed() {
    if (!location.hash.startsWith("#q=")) return;
    const named = location.hash.slice(3);
    const at = matching.findIndex((q) => encodeURIComponent(q.id) === named || q.id === named);
    if (at < 0) return;
    while (drawn <= at) more();
    const button = byId("list").children[at].firstChild;
    if (button.getAttribute("aria-expanded") === "false") button.click();
    button.scrollIntoView({ block: "start" });
  }

  function detail(q) {
    const list = element("dl");
    const put = (name, ...value) => list.append(element("dt", {}, name), element("dd", {}, ...value));
    put("question", q.q);
    put("gold", q.gold === undefined ? "–" : q.gold);
    put("answer", q.ans === undefined ? "–" : q.ans === "" ? "(empty)" : q.ans);
    if (q.by) put("answered by", q.by === "native" ? "the memory system itself" : "an answerer, for the system has no answer of its own");
    if (q.se) {
      put("searches", element("ol", {}, ...q.se.map(([query, hits]) => element("li", {}, query + " · " + hits + " hits"))));
    }
    put("category", data.categories[q.cat] + " · " + q.bank + " · " + q.out);
    if (q.f) put("facets", q.f.map((f) => f.join("=")).join(" · "));
    if (q.os) put("evidence in the files", q.os.map(([id, original]) => id + " is " + original).join(" · "));
    if (q.s.length) put("scores", q.s.map(([metric, score]) => metric + " " + score.toFixed(4)).join(" · "));
    if (q.why) put("wrong because", { not_stored: "what it rests on is not stored", not_retrieved: "it is stored, and was not retrieved", answered_wrongly: "it was retrieved, and answered wrongly" }[q.why] || q.why);
    if (q.err) put("error", q.err);
    for (const [judge, vote, verdict, raw] of q.j) {
      put("judgement", element("strong", {}, verdict), " " + judge + ", vote " + (vote + 1), element("pre", {}, raw));
    }
    for (const number of q.p || []) {
      const [name, system, user] = data.prompts[number];
      put("prompt", element("details", {}, element("summary", {}, name), element("pre", {}, system),
        "the question is laid out as in this sample:", element("pre", {}, user)));
    }
    put("time", timing(q));
    if (q.usd) put("cost", "$" + q.usd.toFixed(6));
    put("trace", trace(q.tr, q.tu));
    const box = element("div", { class: "detail" }, list);
    box.append(element("strong", {}, q.hits.length + " retrieved" + (q.miss.length ? ", not among them: " + q.miss.join(", ") : "")));
    box.append(element("ol", { class: "hits" }, ...q.hits.map(([id, session, score, text, evidence, byText, level, details]) =>
      element("li", { class: evidence ? "evidence" : null, title: evidence ? "evidence" : null },
        element("code", {}, id + (session && session !== id ? " (" + session + ")" : "") + (score === null ? "" : " " + score.toFixed(3)) + (byText ? " placed by text" : "") + (level ? " " + level : "") + " "),
        data.texts[text],
        ...(details ? [element("p", { class: "said" }, details.map((one) => one.join(": ")).join(" · "))] : [])))));
    return box;
  }

  function timing(q) {
    const wait = (q.t[4] || 0);
    const all = timeOf(q) + (q.t[3] || 0);
    const bar = element("div", { class: "timing", role: "img" });
    const parts = phases.map((phase, i) => [phase, q.t[i]]).concat([["wait", q.t[3]]]).filter(([, ms]) => ms);
    for (const [phase, ms] of parts) {
      const piece = element("i", { class: phase, title: phase + " " + ms + " ms" });
      piece.style.width = (100 * ms / all) + "%";
      bar.append(piece);
    }
    const words = parts.map(([phase, ms]) => (phase === "wait" ? "queue" : phase) + " " + ms + " ms");
    if (wait) words.push("of it rate limits " + wait + " ms");
    bar.setAttribute("aria-label", words.join(", "));
    const box = element("div", {});
    if (parts.length) box.append(bar);
    box.append(words.join(" · ") || "–");
    return box;
  }

  // where the run kept the trace, else where the reader of this page says that traces are
  function trace(id, kept) {
    const place = kept || (data.trace_url || "").replaceAll("{trace_id}", id);
    if (/^https?:\/\//.test(place)) {
      return element("a", { href: place, rel: "noreferrer" }, id);
    }
    return element("code", {}, id);
  }

  let waiting = 0;
  byId("search").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, 80); });
  for (const id of ["category", "outcome", "result", "cause", "order"]) byId(id).addEventListener("change", filter);
  byId("filters").addEventListener("submit", (event) => { event.preventDefault(); filter(); });
  byId("filters").addEventListener("reset", () => setTimeout(filter));
  byId("more").addEventListener("click", () => {
    const first = drawn;
    more();
    // the button may be gone now, and with it the place of whoever works by keyboard
    byId("list").children[first].firstChild.focus({ preventScroll: true });
  });
  byId("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
  // keys: / searches, j and k (or arrows) walk the rows, Escape closes one
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (event.key === "/" && !typing) { event.preventDefault(); byId("search").focus(); return; }
    if (event.key === "Escape" && typing) { document.activeElement.blur(); return; }
    const open = event.key === "Escape" && document.activeElement.closest("#list > li");
    if (open && open.firstChild.getAttribute("aria-expanded") === "true") {
      open.firstChild.focus();
      open.firstChild.click();
      return;
    }
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
    if (!step || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const rows = byId("list").children;
    // from within an open row too
    const at = [...rows].indexOf(document.activeElement.closest("#list > li"));
    if (at < 0 && event.key.startsWith("Arrow")) return;
    if (at + step >= drawn) more();
    const next = rows[Math.min(rows.length - 1, Math.max(0, at + step))];
    if (next) { event.preventDefault(); next.firstChild.focus(); }
  });
  addEventListener("hashchange", openNamed);
  filter();
  openNamed();
})();

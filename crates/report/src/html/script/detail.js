  const PHASES = ["recall", "answer", "judge"];
  const CAUSES = { not_stored: "what it rests on is not stored", not_retrieved: "it is stored, and was not retrieved", answered_wrongly: "it was retrieved, and answered wrongly" };

  // all that is known of a question
  function detail(q) {
    const box = element("div", { class: "detail" }, copies(q), facts(q));
    box.append(q.other ? bothSides(q) : found("", q));
    if (q.miss.length) box.append(missed(q));
    if (q.cut) box.append(element("p", { class: "note" }, "More of this question is left out, for the page would be too large" + (data.run ? ": " + showCommand(q) : ".")));
    return box;
  }

  function copies(q) {
    const command = data.run ? [copyButton("command", showCommand(q))] : [];
    return element("p", { class: "copies" }, copyButton("id", q.id), copyButton("question", q.q), ...command);
  }

  // as a shell reads it
  const quoted = (word) => /^[\w.:@/+-]+$/.test(word) ? word : "'" + word.replaceAll("'", "'\\''") + "'";
  const showCommand = (q) => "bench-coord show " + quoted(data.run) + " " + quoted(q.id);

  const putInto = (list) => (name, ...value) => list.append(element("dt", {}, name), element("dd", {}, ...value));

  function facts(q) {
    const list = element("dl");
    const put = putInto(list);
    put("question", q.q);
    put("gold", q.gold === undefined ? "–" : q.gold);
    // of a flip they stand beside those of the other run
    if (!q.other) putResult(put, q, "");
    if (q.by) put("answered by", q.by === "native" ? "the memory system itself" : "an answerer, for the system has no answer of its own");
    if (q.se) {
      put("searches", element("ol", {}, ...q.se.map(([query, hits]) => element("li", {}, query + " · " + hits + " hits"))));
    }
    put("category", data.categories[q.cat] + " · " + q.bank + " · " + q.out);
    if (q.f) put("facets", q.f.map((f) => f.join("=")).join(" · "));
    if (q.os) put("evidence in the files", q.os.map(([id, original]) => id + " is " + original).join(" · "));
    if (q.why) put("wrong because", CAUSES[q.why] || q.why);
    for (const prompt of q.sent || []) put("prompt as sent", sentPrompt(q, prompt));
    for (const number of q.p || []) put("prompt", samplePrompt(number));
    put("time", timing(q));
    if (q.usd) put("cost", "$" + q.usd.toFixed(6));
    put("trace", trace(q.tr, q.tu));
    return list;
  }

  // what a run made of a question; `whose` ends the names
  function putResult(put, side, whose) {
    put("answer" + whose, answerOf(side));
    put("scores" + whose, side.s.length ? scores(side) : side.out);
    for (const vote of side.j) put("judgement" + whose, ...judgement(vote));
    if (side.err) put("error" + whose, side.err);
  }

  const answerOf = (side) => side.ans === undefined ? "–" : side.ans === "" ? "(empty)" : side.ans;
  const scores = (side) => side.s.map(([metric, score]) => metric + " " + score.toFixed(4)).join(" · ");

  // a vote: its verdict, why, and behind a fold the reply as it came
  function judgement([judge, vote, verdict, grade, silent, replies]) {
    const about = " " + judge + ", vote " + (vote + 1) + (grade === null ? "" : ", grade " + grade.toFixed(2)) + (silent ? ", another vote speaks for its judge" : "");
    const reasons = replies.map(reasonOf).filter(Boolean);
    const raw = replies.filter((reply) => reply.trim() && reasonOf(reply) !== reply.trim());
    return [element("strong", {}, verdict), about,
      ...reasons.map((reason) => element("p", { class: "reason" }, reason)),
      ...(raw.length ? [fold(raw.length > 1 ? "replies as they came" : "reply as it came", ...raw.map((reply) => element("pre", {}, reply)))] : [])];
  }

  // the judge's reason in a reply: a field of its JSON with what stands before it; a reply that is no JSON is a reason itself
  function reasonOf(reply) {
    const from = reply.indexOf("{");
    let read = null;
    try {
      read = JSON.parse(reply.slice(from, reply.lastIndexOf("}") + 1));
    } catch {
      return reply.trim();
    }
    const words = ["reasoning", "reason", "explanation", "rationale"].map((name) => read[name]).find((value) => typeof value === "string");
    return [reply.slice(0, from).replace(/```\w*\s*$/, "").trim(), (words || "").trim()].filter(Boolean).join("\n");
  }

  function sentPrompt(q, [name, system, pieces]) {
    const words = (piece) => typeof piece === "string" ? piece : data.texts[q.hits[piece[0]][3]].slice(piece[1], piece[2]);
    return fold(name, element("pre", {}, data.texts[system]), element("pre", {}, pieces.map(words).join("")));
  }

  function samplePrompt(number) {
    const [name, system, user] = data.prompts[number];
    return fold(name, element("pre", {}, system), "the question is laid out as in this sample, which is another one:", element("pre", {}, user));
  }

  // a flip: both answers, and both contexts
  function bothSides(q) {
    const side = (made, whose, by) => {
      const list = element("dl");
      putResult(putInto(list), made, whose);
      return element("div", {}, list, found(by, made));
    };
    return element("div", { class: "sides" }, side(q.other, " of " + data.baseline, data.baseline), side(q, data.name ? " of " + data.name : "", data.name || "this run"));
  }

  // what a run retrieved for a question
  function found(whose, side) {
    const title = side.hits.length + " retrieved" + (whose ? " by " + whose : "");
    return element("div", {}, element("strong", {}, title), element("ol", { class: "hits" }, ...side.hits.map(hit)));
  }

  function hit([id, session, score, text, evidence, byText, level, details]) {
    const about = id + (session && session !== id ? " (" + session + ")" : "") + (score === null ? "" : " " + score.toFixed(3)) + (byText ? " placed by text" : "") + (level ? " " + level : "") + " ";
    const said = details ? [element("p", { class: "said" }, details.map((one) => one.join(": ")).join(" · "))] : [];
    return element("li", { class: evidence ? "evidence" : null, title: evidence ? "evidence" : null }, element("code", {}, about), data.texts[text], ...said);
  }

  function missed(q) {
    const one = ([id, text]) => element("li", {}, element("code", {}, id + " "), text === null ? "" : data.texts[text]);
    return element("div", { class: "missed" }, element("strong", {}, q.miss.length + " of the evidence not retrieved"), element("ul", { class: "hits" }, ...q.miss.map(one)));
  }

  function timing(q) {
    const wait = (q.t[4] || 0);
    const all = timeOf(q) + (q.t[3] || 0);
    const bar = element("div", { class: "timing", role: "img" });
    const parts = PHASES.map((phase, i) => [phase, q.t[i]]).concat([["wait", q.t[3]]]).filter(([, ms]) => ms);
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

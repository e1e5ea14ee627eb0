  const data = JSON.parse(byId("data").textContent);

  const scoreOf = (side) => {
    const found = side.s.find(([metric]) => metric === data.metric);
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
  const causesOf = (q) => (q.fail || []).concat(q.why || []);
  const percent = (score) => (score * 100).toFixed(score === 0 || score === 1 ? 0 : 1) + " %";

  // what is searched in, in small letters
  for (const q of data.questions) {
    q.text = [q.id, q.bank, q.q, q.gold || "", q.ans || "", q.err || "", ...(q.f || []).map((f) => f.join("=")), ...(q.se || []).map(([query]) => query)].join("\n").toLowerCase();
  }
  const hitText = (q) => q.hits.map(([id, , , text]) => id + " " + data.texts[text]).join("\n").toLowerCase();

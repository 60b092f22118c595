// ---- Live numbers --------------------------------------------------------------------------------
const kSamples = 120;
const charts = {};
function addChart(id, name, format, { floor = 0, ceiling, rule } = {}) {
  const value = make("output", { id: `now-${id}`, textContent: none });
  const low = make("span"), high = make("span");
  const plot = svg("svg", { viewBox: `0 0 ${kSamples - 1} 40`, preserveAspectRatio: "none", role: "img", "aria-label": `${name}, last two minutes` });
  const path = svg("path", { d: "" });
  const line = rule === undefined ? null : svg("line", { x1: 0, x2: kSamples - 1 });
  if (line) plot.append(line);
  plot.append(path);
  $("charts").append(make("div", { className: "chart" }, make("div", { className: "name", textContent: name }), value, plot, make("div", { className: "range" }, low, high)));
  const series = [];
  charts[id] = (sample, keep) => {
    series.push(sample);
    if (series.length > kSamples) series.shift();
    const shown = sample ?? (keep ? series.findLast((x) => x !== null) : null);
    value.textContent = known(shown) ? format(shown) : none;
    const values = series.filter((x) => x !== null);
    const top = Math.max(ceiling ?? 0, ...values, rule ?? 0, 1e-6) * (ceiling ? 1 : 1.1);
    const y = (x) => (37 - 34 * (x - floor) / (top - floor)).toFixed(2);
    let d = "", open = false;
    series.forEach((x, i) => {
      if (x === null) { open = false; return; }
      const px = kSamples - series.length + i;
      d += `${open ? "L" : `M${px} ${y(x)}L`}${px} ${y(x)}`;
      open = true;
    });
    path.setAttribute("d", d);
    if (line) { line.setAttribute("y1", y(rule)); line.setAttribute("y2", y(rule)); }
    low.textContent = values.length ? `low ${format(Math.min(...values))}` : "";
    high.textContent = values.length ? `high ${format(Math.max(...values))}` : "";
  };
}
addChart("rate", "tokens / s", (x) => x.toFixed(x < 100 ? 1 : 0));
addChart("k", "k", (x) => x.toFixed(1), { ceiling: 4 });
addChart("alpha", "alpha", percent, { ceiling: 1 });
addChart("c", "c", (x) => x.toFixed(3));
addChart("v", "v", (x) => x.toFixed(2), { rule: 1 });

let before = null;
function sample(stats) {
  const s = stats.speculation, now = performance.now();
  const current = { now, generated: stats.tokens.generated, rounds: s.rounds, proposed: s.proposed, accepted: s.accepted };
  if (before && current.generated >= before.generated) {
    const d = (name) => current[name] - before[name];
    const rounds = d("rounds"), proposed = d("proposed");
    const k = rounds ? proposed / rounds : null, alpha = proposed ? d("accepted") / proposed : null;
    charts.rate(1000 * d("generated") / d("now"), true);
    charts.k(k, true);
    charts.alpha(alpha, true);
    charts.c(rounds ? s.c : null, true);
    charts.v(rounds ? s.v : null, true);
  } else for (const push of Object.values(charts)) push(null, true);
  before = current;
}
function facts(stats) {
  const m = stats.model, c = stats.compute, s = stats.speculation, r = stats.requests;
  const fact = (name, value) => make("span", {}, `${name} `, make("b", { textContent: value }));
  $("facts").replaceChildren($("state"), fact("model", m.id), fact("parameters", `${(m.parameters / 1e6).toFixed(1)} M + ${(m.draft_parameters / 1e6).toFixed(1)} M draft`),
    fact("weights", m.weights_dtype), fact("isa", `${c.isa}, ${c.kernel}`), fact("numerics", c.numerics), fact("governor", `${s.governor}, K ${s.k}`), fact("memory", bytes(stats.memory.resident_bytes)));
  $("load").textContent = `${r.running} of ${r.sequences} running, ${r.waiting} of ${r.queue} waiting`;
  $("foot").textContent = `SPEL ${stats.version}`;
  boundTokens(m.max_seq - 1);  // The prompt has one at least.
}
const setState = (state) => { if ($("state").textContent !== state) { $("state").textContent = state; $("state").dataset.state = state; } };
let timer = null, probed = false;
async function poll() {
  try {
    const stats = await (await call("/v1/stats")).json();
    setState(stats.state);
    facts(stats);
    sample(stats);
    if (!probed) { probed = true; probeNotes(); }
  } catch (error) {
    before = null;
    setState(error.status === 503 ? "loading" : error.status === 401 ? "needs a key" : error.status ? `error ${error.status}` : "unreachable");
  }
  schedule();
}
function schedule() {
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(poll, 1000);
}
document.addEventListener("visibilitychange", () => { if (!document.hidden) { before = null; poll(); } });

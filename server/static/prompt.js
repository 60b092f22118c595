// ---- Prompt and parameters -----------------------------------------------------------------------
const examples = {
  recall() {
    const filler = ["the lamp was lit ", "rain fell on the roof ", "she closed the book ", "they walked home "];
    let text = "";
    for (let i = 0; i < 8; ++i) text += `KEY_${11 + i}=${1000 + (i * 7919 + 907) % 9000} ${filler[i % 4]}`;
    return `${text}?KEY_15=`;
  },
  prose: () => "It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a wife. However little known the feelings",
  noise() {
    let state = 20;
    const next = () => (state = (state * 1103515245 + 12345) % 2147483648) / 2147483648;
    return Array.from({ length: 120 }, () => String.fromCharCode(33 + Math.floor(next() * 94))).join("");
  },
};
for (const button of document.querySelectorAll("[data-example]")) {
  button.onclick = () => {
    $("prompt").value = examples[button.dataset.example]();
    store("localStorage", "field prompt", $("prompt").value);
    $("prompt").focus();
    writeCurl();
  };
}
/// What is typed outlives a reload.
const kept = document.querySelectorAll("#form :is(textarea, input, select), #notes :is(textarea, input, select)");
const given = new Map();
function recallFields() {
  for (const field of kept) {
    given.set(field, field.value);
    field.value = store("localStorage", `field ${field.id}`) || field.value;
    field.addEventListener("input", () => store("localStorage", `field ${field.id}`, field.value));
  }
}
$("reset").onclick = () => {
  for (const [field, value] of given) { field.value = value; store("localStorage", `field ${field.id}`, ""); }
  writeCurl();
};
/// No answer is longer than the context.
const counts = [$("max_tokens"), $("nb-tokens")];
const cutToContext = (field) => { if (Number(field.value) > Number(field.max)) field.value = field.max; };
function boundTokens(most) {
  for (const field of counts) { field.max = most; if (field !== document.activeElement) cutToContext(field); }
}
for (const field of counts) field.addEventListener("change", () => { cutToContext(field); writeCurl(); });
const number = (id) => $(id).value.trim() === "" ? undefined : Number($(id).value);
function request() {
  const speculation = { mode: $("mode").value || undefined, governor: $("governor").value || undefined, k: number("k") };
  return {
    prompt: $("prompt").value,
    max_tokens: number("max_tokens"), temperature: number("temperature"),
    top_p: number("top_p"), top_k: number("top_k"), min_p: number("min_p"), repetition_penalty: number("repetition_penalty"), seed: number("seed"),
    stop: $("stop").value || undefined,
    notebank: $("bank_used").value ? { bank: $("bank_used").value } : undefined,
    speculation: Object.values(speculation).some((value) => value !== undefined) ? speculation : undefined,
    stream: true, return_token_ids: true, stream_options: { include_usage: true },
  };
}
function writeCurl() {
  const body = JSON.stringify(request(), (key, value) => key === "return_token_ids" || key === "stream_options" ? undefined : value);
  const key = store("sessionStorage", "key") ? ' -H "Authorization: Bearer $KEY"' : "";
  $("curl").textContent = `curl -N ${location.origin}/v1/completions -H 'Content-Type: application/json'${key} -d '${body.replaceAll("'", "'\\''")}'`;
}
$("form").addEventListener("input", writeCurl);

let running = null;
function busy(controller) {
  running = controller;
  for (const id of ["go", "compare", "nb-replay"]) $(id).disabled = controller !== null;
  $("stop_button").disabled = controller === null;
  schedule();
}
const say = (text) => { $("announce").textContent = text; };
function judge(kind, text) {
  $("verdict").hidden = !text;
  $("verdict").className = `verdict ${kind}`;
  $("verdict").textContent = text;
}
function setPanes(...panes) {
  $("panes").className = panes.length > 1 ? "panes two" : "panes";
  $("panes").replaceChildren(...panes.map((pane) => pane.node));
}
/// Brings the buttons, with what they make below them, to where it can be seen.
function reveal(buttons, output) {
  const { top, bottom } = output.getBoundingClientRect();
  if (top < 0 || Math.min(bottom, top + 160) > innerHeight) buttons.scrollIntoView({ block: "start" });
}
async function alone(work) {
  if (running) return;
  const controller = new AbortController();
  busy(controller);
  judge("", "");
  try { await work(controller.signal); } finally { busy(null); }
}
const generate = () => alone(async (signal) => {
  const pane = new Pane("Answer");
  setPanes(pane);
  reveal($("actions"), pane.text);
  if (await pane.run_("/v1/completions", request(), signal)) {
    const s = pane.last?.speculation;
    say(`Done: ${pane.last?.usage?.completion_tokens ?? ""} tokens, ${fixed(pane.last?.timings?.predicted_per_second, 0)} tokens a second, ${s?.proposed ? `${percent(s.alpha)} of proposals accepted` : "nothing drafted"}.`);
  } else say("The answer did not finish.");
});
const compare = () => alone(async (signal) => {
  const on = new Pane("Speculation on"), off = new Pane("Speculation off");
  setPanes(on, off);
  reveal($("actions"), on.text);
  off.text.dataset.empty = "Runs second, so that neither slows the other.";
  const body = request();
  const okay = await on.run_("/v1/completions", { ...body, speculation: { ...body.speculation, mode: "on" } }, signal, { compared: true }) &&
    await off.run_("/v1/completions", { ...body, speculation: { mode: "off" } }, signal, { compared: true });
  if (!okay) return say("The comparison did not finish.");
  const gain = on.last.timings.predicted_per_second / off.last.timings.predicted_per_second;
  const same = on.whole === off.whole;
  const text = `${same ? "The same text, character for character" : "The texts differ, which must not happen: please report it with the curl line above"}. ` +
    `${fixed(on.last.timings.predicted_per_second, 1)} tokens/s with speculation, ${fixed(off.last.timings.predicted_per_second, 1)} without, the prompt's reading left out: ${fixed(gain, 2, "×")}, ` +
    `in ${on.last.speculation.rounds + on.last.speculation.ar_rounds} target passes instead of ${off.last.speculation.rounds + off.last.speculation.ar_rounds}.`;
  judge(same ? "good" : "bad", text);
  say(text);
});
$("form").addEventListener("submit", (event) => { event.preventDefault(); generate(); });
$("compare").onclick = () => { if ($("form").reportValidity()) compare(); };
$("stop_button").onclick = () => running?.abort();
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && running) { event.preventDefault(); running.abort(); }
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); if (!running && $("form").reportValidity()) generate(); }
});

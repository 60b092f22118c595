// ---- NoteBank ------------------------------------------------------------------------------------
// Prose with facts in it: two notes are kept of every 128 tokens, so facts side by side would crowd each other out.
$("nb-text").value = "It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a wife. KEY_15=6583 However little known the feelings or views of such a man may be on his first entering a neighbourhood, this truth is so well fixed in the minds of the surrounding families, KEY_16=5502 that he is considered as the rightful property of some one or other of their daughters. My dear Mr. Bennet, said his lady to him one day, KEY_17=4421 have you heard that Netherfield Park is let at last?";
const bank = () => `/v1/notebanks/${encodeURIComponent($("nb-bank").value)}`;
function notice(text, bad) {
  $("nb-notice").hidden = !text;
  $("nb-notice").className = `notice ${bad ? "bad" : ""}`;
  $("nb-notice").textContent = text;
}
async function probeNotes() {
  try {
    const { data } = await (await call("/v1/notebanks")).json();
    $("nb-state").textContent = data.length ? data.map((b) => `${b.name}: ${b.notes} notes, ${bytes(b.bytes)}`).join("; ") : "no banks yet";
  } catch (error) {
    $("nb-state").textContent = none;
    notice(String(error), true);
  }
}
const noteItem = (note) => make("li", {}, make("code", { textContent: note.text }), make("div", { className: "hint", textContent: `note ${note.id}, at token ${note.start}, score ${fixed(note.score, 3)}` }));
async function withNotes(button, work) {
  $(button).disabled = true;
  notice("");
  try { await work(); } catch (error) { notice(String(error), true); say(String(error)); } finally { $(button).disabled = running !== null && button === "nb-replay"; }
}
$("nb-write").onclick = () => withNotes("nb-write", async () => {
  const response = await call(`${bank()}/write`, { method: "POST", body: { text: $("nb-text").value, stream: true } });
  let answer = null;
  for await (const event of events(response)) {
    if (event.progress) notice(`Read ${event.progress.tokens} of ${event.progress.total} tokens, ${event.progress.notes} notes kept.`);
    else answer = event;
  }
  if (!answer) throw new Error("The connection ended before the text was read.");
  $("nb-written").replaceChildren(...answer.notes.map(noteItem));
  const listed = answer.notes.length < answer.count ? ` The first ${answer.notes.length} are listed.` : "";
  notice(`Kept ${answer.count} notes of ${answer.tokens} tokens in ${fixed(answer.seconds, 2)} s.${listed}`);
  await probeNotes();
});
$("nb-forget").onclick = () => {
  $("nb-sure-text").textContent = `Forget the bank "${$("nb-bank").value}" with all its notes? They cannot be brought back.`;
  $("nb-sure").showModal();
};
$("nb-sure").onclose = () => $("nb-sure").returnValue === "forget" && withNotes("nb-forget", async () => {
  await call(bank(), { method: "DELETE" });
  for (const id of ["nb-written", "nb-found", "nb-pane"]) $(id).replaceChildren();
  notice(`Bank ${$("nb-bank").value} is gone, with all its notes.`);
  await probeNotes();
});
$("nb-address").onclick = () => withNotes("nb-address", async () => {
  const answer = await (await call(`${bank()}/address`, { method: "POST", body: { query: $("nb-query").value, top: number("nb-top"), ranker: $("nb-ranker").value } })).json();
  $("nb-found").replaceChildren(...answer.notes.map(noteItem));
  notice(answer.notes.length ? `Found ${answer.notes.length} notes in ${(1000 * answer.seconds).toFixed(1)} ms.` : "No note answers this query.");
});
/// The notes an answer was given before its prompt; their texts are asked for one by one.
async function showRead(read) {
  const texts = await Promise.all(read.notes.map(async (note) => (await call(`${bank()}/notes/${note.id}`)).json()));
  $("nb-found").replaceChildren(...read.notes.map((note, i) => noteItem({ ...note, text: texts[i].text })));
  notice(`Read ${read.notes.length} notes, ${read.tokens} tokens, before the prompt; found in ${(1000 * read.seconds).toFixed(1)} ms.`);
}
$("nb-replay").onclick = () => alone((signal) => withNotes("nb-replay", async () => {
  const pane = new Pane("Replayed answer");
  $("nb-pane").replaceChildren(pane.node);
  reveal($("nb-asking"), pane.text);
  const okay = await pane.run_(`${bank()}/replay`, {
    prompt: $("nb-query").value, max_tokens: number("nb-tokens"), temperature: 0, top: number("nb-top"), ranker: $("nb-ranker").value,
    stream: true, return_token_ids: true, stream_options: { include_usage: true },
  }, signal);
  if (okay && pane.last?.notebank?.length) await showRead(pane.last.notebank[0]);
}));

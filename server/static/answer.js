// ---- One answer: text, rounds, receipt -----------------------------------------------------------
const hue = (position) => (168 + position * 34) % 360;
class Pane {
  constructor(title) {
    this.text = make("div", { className: "text", tabIndex: 0 });
    this.text.setAttribute("role", "region");
    this.text.setAttribute("aria-label", `${title}: text`);
    this.text.dataset.empty = "Nothing yet.";
    this.bars = svg("svg", { class: "rounds", role: "img", "aria-label": "Tokens won in each round", preserveAspectRatio: "none" });
    this.receipt = make("dl", { className: "receipt" });
    this.node = make("div", { className: "pane" }, make("h3", { textContent: title }), this.text, this.bars, this.receipt);
    this.clear();
  }
  clear() {
    this.text.replaceChildren();
    this.bars.replaceChildren();
    this.receipt.replaceChildren();
    this.points = 0;  // Code points shown so far.
    this.run = 0;     // Draft tokens since the target last chose.
    this.rounds = [];
    this.whole = "";
    this.last = null;
    this.fresh = document.createDocumentFragment();
    this.later = null;
  }
  begin() { this.clear(); this.text.classList.add("live"); this.began = performance.now(); this.first = null; }
  end() { this.flush(); this.text.classList.remove("live"); }
  fail(error) { this.text.append(make("div", { className: "notice bad", textContent: String(error) })); }

  /// A chunk: its text, cut at its tokens' offsets.
  add(chunk) {
    if (chunk.speculation) this.last = chunk;
    const choice = chunk.choices?.[0];
    if (!choice || (!choice.text && !choice.spel)) return;
    this.first ??= performance.now();
    this.whole += choice.text;
    const letters = [...choice.text];
    const at = choice.spel?.text_offsets ?? [];
    const piece = document.createDocumentFragment();
    if (!at.length) piece.append(choice.text);
    at.forEach((offset, i) => {
      const end = i + 1 < at.length ? at[i + 1] - this.points : letters.length;
      piece.append(this.token(letters.slice(offset - this.points, end).join(""), choice.spel.draft_positions[i]));
    });
    this.points += letters.length;
    this.fresh.append(piece);
    this.later ??= setTimeout(() => this.flush(), 80);
  }
  /// Shows what has come since the last time. A fast stream must not keep the page from its keys.
  flush() {
    clearTimeout(this.later);
    this.later = null;
    if (!this.fresh.hasChildNodes()) return;
    const stick = this.text.scrollHeight - this.text.scrollTop - this.text.clientHeight < 40;
    this.text.append(this.fresh);
    if (stick) this.text.scrollTop = this.text.scrollHeight;
    this.draw();
  }
  token(text, position) {
    if (position >= 0) {
      this.run = position + 1;
      const node = make("span", { className: "d", textContent: text, title: `draft token ${position + 1}, accepted` });
      node.style.setProperty("--h", hue(position));
      return node;
    }
    const after = this.run;
    this.rounds.push(after);
    this.run = 0;
    return make("span", after ? { className: "fix", textContent: text, title: `the target's own, after ${after} accepted` }
                              : { className: "t", textContent: text, title: "the target's own" });
  }
  draw() {
    const shown = this.rounds.slice(-160);
    const top = Math.max(4, ...shown) + 1;
    this.bars.setAttribute("viewBox", `0 0 ${Math.max(shown.length, 40)} ${top}`);
    this.bars.replaceChildren();
    shown.forEach((accepted, x) => {
      for (let i = 0; i < accepted; ++i) this.bars.append(svg("rect", { x: x + .1, y: top - i - 1, width: .8, height: .92, fill: `hsl(${hue(i)} 62% 52%)` }));
      this.bars.append(svg("rect", { x: x + .1, y: top - accepted - 1, width: .8, height: .92, fill: accepted ? "var(--fix)" : "var(--edge)" }));
    });
  }
  /// The receipt. `compared`: the gain is measured against a run of its own, and told there.
  show(compared) {
    const s = this.last?.speculation;
    if (!s) return;
    const t = this.last.timings;
    const positions = s.accepted_by_position.slice(0, Math.max(1, s.k));
    const facts = [
      ["tokens / s", fixed(t.predicted_per_second, 1)], ["first token", this.first === null ? none : `${(this.first - this.began).toFixed(0)} ms`],
      ["tokens", this.last.usage?.completion_tokens ?? t.predicted_n],
      ["target passes", s.rounds + s.ar_rounds],
      ["alpha", s.proposed ? percent(s.alpha) : none],
      ["accepted / proposed", `${s.accepted} / ${s.proposed}`],
      ["by position", s.proposed ? positions.join(" · ") : none],
      ["c", fixed(s.c, 3)], ["v", fixed(s.v, 2)],
      ...(compared ? [] : [["over plain", s.proposed ? fixed(s.speedup, 2, "×") : none]]),
      ["governor", s.draft_enabled ? `${s.governor}, K ${s.k}` : s.draft_reason || "off"],
      ["trips / resumes", `${s.trips} / ${s.resumes}`],
      ["prompt", `${t.prompt_n + t.cache_n} (${t.cache_n} reused)`],
    ];
    this.receipt.replaceChildren(...facts.map(([name, value]) => make("div", {}, make("dt", { textContent: name }), make("dd", { textContent: value }))));
  }
  async run_(path, body, signal, { compared = false } = {}) {
    this.begin();
    try {
      const response = await call(path, { method: "POST", body, signal });
      for await (const chunk of events(response)) this.add(chunk);
      this.flush();
      this.show(compared);
      return true;
    } catch (error) {
      this.flush();
      if (error.name === "AbortError") this.text.append(make("div", { className: "notice", textContent: "Stopped; the server gave the sequence back." }));
      else this.fail(error);
      return false;
    } finally {
      this.end();
    }
  }
}

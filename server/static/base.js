"use strict";
const $ = (id) => document.getElementById(id);
const make = (tag, props = {}, ...children) => {
  const node = Object.assign(document.createElement(tag), props);
  node.append(...children);
  return node;
};
const SVG = "http://www.w3.org/2000/svg";
const svg = (tag, attributes) => {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
};
const none = "—";  // What is not known, or cannot be.
const known = (value) => Number.isFinite(value);
const fixed = (value, digits, unit = "") => known(value) ? value.toFixed(digits) + unit : none;
const percent = (value) => known(value) ? `${(100 * value).toFixed(0)} %` : none;
const bytes = (n) => n > 2 ** 30 ? `${(n / 2 ** 30).toFixed(2)} GiB` : n > 2 ** 20 ? `${(n / 2 ** 20).toFixed(0)} MiB` : `${(n / 2 ** 10).toFixed(0)} KiB`;
/// Reads, or with a value writes, what this browser keeps. Where storage is off, even naming it throws.
const store = (area, name, value) => {
  try {
    if (value === undefined) return window[area].getItem(name) || "";
    window[area].setItem(name, value);
  } catch { /* The page works without. */ }
  return "";
};

// ---- Theme ---------------------------------------------------------------------------------------
const darkScheme = matchMedia("(prefers-color-scheme: dark)");
function applyTheme(theme) {
  const root = document.documentElement;
  if (theme) root.dataset.theme = theme; else delete root.dataset.theme;
  root.dataset.shade = (theme || (darkScheme.matches ? "dark" : "light"));
  $("theme").textContent = `Theme: ${theme || "system"}`;
}
let theme = store("localStorage", "theme");
applyTheme(theme);
darkScheme.addEventListener("change", () => applyTheme(theme));
$("theme").onclick = () => {
  theme = { "": "light", light: "dark", dark: "" }[theme];
  store("localStorage", "theme", theme);
  applyTheme(theme);
};

// ---- Talking to the server -----------------------------------------------------------------------
$("key").value = store("sessionStorage", "key");
$("key").onchange = () => { store("sessionStorage", "key", $("key").value.trim()); poll(); };
const showKey = (open) => { $("key-box").hidden = !open; $("key-button").setAttribute("aria-expanded", String(open)); };
$("key-button").onclick = () => { showKey($("key-box").hidden); if (!$("key-box").hidden) $("key").focus(); };

class ApiError extends Error {
  constructor(status, body) {
    super(body?.error?.message || `the server answered ${status}`);
    this.status = status;
    this.param = body?.error?.param;
  }
  toString() { return `${this.status}: ${this.message}${this.param ? ` (${this.param})` : ""}`; }
}
async function call(path, { method = "GET", body, signal } = {}) {
  const headers = {};
  const key = store("sessionStorage", "key");
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body) headers["Content-Type"] = "application/json";
  const response = await fetch(path, { method, headers, body: body && JSON.stringify(body), signal });
  if (!response.ok) {
    const error = new ApiError(response.status, await response.json().catch(() => null));
    if (response.status === 401) showKey(true);
    throw error;
  }
  return response;
}
/// The data of each server-sent event, parsed; ends at [DONE] or with the stream.
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    for (let end; (end = rest.indexOf("\n\n")) >= 0; rest = rest.slice(end + 2)) {
      const data = rest.slice(0, end).split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart()).join("\n");
      if (data === "[DONE]") return;
      if (!data) continue;
      const event = JSON.parse(data);
      if (event.error) throw new ApiError(event.error.code || 500, event);
      yield event;
    }
  }
}

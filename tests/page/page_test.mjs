// The live page in Chromium against a real server: what it shows is what the server said.
// Environment: SPEL_BINARY, SPEL_MODEL, CHROMIUM, SCREENSHOTS (a folder; none: no pictures).
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";

import { lowContrast, namelessControls, overflowing, smallTargets } from "./in_page.mjs";
import { startServer } from "./server.mjs";

const { SPEL_BINARY, SPEL_MODEL, CHROMIUM, SCREENSHOTS } = process.env;
const kPatient = { timeout: 180_000 };  // A busy machine is no failure.
const kDesktop = { width: 1280, height: 900 };
const kPhone = { width: 390, height: 844 };
const kSmallPhone = { width: 360, height: 640 };

let server, browser;

before(async () => {
  server = await startServer(SPEL_BINARY, SPEL_MODEL);
  browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: ["--disable-gpu", ...(process.getuid() === 0 ? ["--no-sandbox"] : [])],
  });
  if (SCREENSHOTS) mkdirSync(SCREENSHOTS, { recursive: true });
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

/** A fresh page that fails the test on any script error, console error or foreign request. */
async function withPage(options, work) {
  const context = await browser.newContext({ viewport: kDesktop, colorScheme: "light", ...options });
  context.setDefaultTimeout(kPatient.timeout);
  const page = await context.newPage();
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    // A refused request is logged by the browser itself; the page is to show it, which is tested.
    if (message.type() === "error" && !/Failed to load resource/.test(message.text())) complaints.push(message.text());
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(server.url) && !request.url().startsWith("data:")) complaints.push(`foreign: ${request.url()}`);
  });
  try {
    await open(page);
    await work(page);
    assert.deepEqual(complaints, []);
  } finally {
    await context.close();
  }
}

async function open(page) {
  await page.goto(server.url);
  await page.waitForSelector("#state[data-state=ready]");
}
const picture = async (page, name, { fullPage = true } = {}) => {
  if (SCREENSHOTS) await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`), fullPage });
};
const idle = (page) => page.waitForSelector("#stop_button[disabled]", { state: "attached" });
/** What is to be read of answers and charts. */
const shown = async (page) => (await page.locator("#panes, #verdict, #charts").allTextContents()).join(" ");
const tokens = (page, count) => page.fill("#max_tokens", String(count));

async function generate(page) {
  await page.press("#prompt", "Control+Enter");
  await page.waitForSelector("#panes .receipt dd, #panes .notice");
  await idle(page);
}

test("shows the text the server gives, with each accepted draft token coloured", kPatient, () =>
  withPage({}, async (page) => {
    await tokens(page, 40);
    await generate(page);
    const prompt = await page.inputValue("#prompt");
    const response = await fetch(`${server.url}/v1/completions`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ prompt, max_tokens: 40, temperature: 0, seed: 7 }),
    });
    const answer = await response.json();
    assert.equal(await page.textContent("#panes .text"), answer.choices[0].text);
    const accepted = await page.textContent("#panes .receipt div:has(dt:text-is('accepted / proposed')) dd");
    assert.equal(await page.locator("#panes .d").count(), Number(accepted.split(" / ")[0]));
    assert.ok((await page.locator("#panes .rounds rect").count()) >= 40);
    await picture(page, "desktop");
  }));

test("moves its charts with what the server measures", kPatient, () =>
  withPage({}, async (page) => {
    await tokens(page, 120);
    await page.press("#prompt", "Control+Enter");
    for (const id of ["rate", "k", "alpha"]) {
      await page.waitForFunction((name) => /\d/.test(document.getElementById(name).textContent), `now-${id}`);
    }
    assert.match(await page.getAttribute("#charts path >> nth=0", "d"), /L/);
    await idle(page);
  }));

test("finds the same text with speculation on and off", kPatient, () =>
  withPage({}, async (page) => {
    await tokens(page, 48);
    await page.click("#compare");
    await page.waitForSelector("#verdict:not([hidden])");
    assert.match(await page.textContent("#verdict"), /^The same text, character for character/);
    assert.equal(await page.locator("#panes .text").count(), 2);
    assert.equal(await page.locator("#panes .pane:nth-child(2) .d").count(), 0);
    // The gain was measured: it is told once, by the verdict.
    assert.equal(await page.getByText("over plain").count(), 0);
    assert.equal((await shown(page)).match(/\d×/g).length, 1);
    await picture(page, "compare");
  }));

test("gives the sequence back when Escape stops an answer", kPatient, () =>
  withPage({}, async (page) => {
    await tokens(page, 900);
    await page.press("#prompt", "Control+Enter");
    await page.waitForSelector("#panes .text span");
    await page.keyboard.press("Escape");
    await page.waitForSelector("#panes .notice, #panes .receipt dd");
    assert.equal(await page.locator("#panes .receipt dd").count(), 0, "the answer ended before Escape");
    assert.match(await page.textContent("#panes .notice"), /^Stopped/);
    const running = async () => (await (await fetch(`${server.url}/v1/stats`)).json()).requests.running;
    for (let i = 0; (await running()) > 0; ++i) {
      assert.ok(i < 100, "still running after 5 s");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }));

test("shows the server's own words when it refuses", kPatient, () =>
  withPage({}, async (page) => {
    await page.fill("#prompt", "x".repeat(1100));
    await generate(page);
    assert.match(await page.textContent("#panes .notice"), /^(Error: )?400: /);
  }));

test("says what cannot be known with a dash, and the gain of a run once", kPatient, () =>
  withPage({}, async (page) => {
    const fact = (name) => page.textContent(`#panes .receipt div:has(dt:text-is('${name}')) dd`);
    let told = { c: null, v: null, speedup: null };
    await page.route("**/v1/completions", async (route) => {
      const response = await route.fetch();
      const body = (await response.text()).replace(/("speculation":)(\{.*?\})/g, (_, name, receipt) =>
        name + JSON.stringify({ ...JSON.parse(receipt), ...told }));
      await route.fulfill({ response, body });
    });
    await tokens(page, 40);
    await generate(page);
    for (const name of ["c", "v", "over plain"]) assert.equal(await fact(name), "—");
    assert.equal((await shown(page)).match(/\d×/g), null);
    told = { c: 0.1, v: 1.25, speedup: 1.75 };
    await generate(page);
    assert.deepEqual([await fact("c"), await fact("v"), await fact("over plain")], ["0.100", "1.25", "1.75×"]);
    assert.deepEqual((await shown(page)).match(/[\d.]+×/g), ["1.75×"]);
  }));

test("shows live figures that are not there with a dash", kPatient, () =>
  withPage({}, async (page) => {
    await page.route("**/v1/stats", async (route) => {
      const stats = await (await route.fetch()).json();
      Object.assign(stats.speculation, { c: null, v: null });
      await route.fulfill({ json: stats });
    });
    await tokens(page, 120);
    await generate(page);
    await page.waitForFunction(() => /[1-9]/.test(document.getElementById("now-k").textContent));
    assert.equal(await page.textContent("#now-c"), "—");
    assert.equal(await page.textContent("#now-v"), "—");
  }));

test("keeps what was typed when it is loaded again, until all is reset", kPatient, () =>
  withPage({}, async (page) => {
    const example = await page.inputValue("#prompt");
    await page.fill("#prompt", "The old man said");
    await page.fill("#nb-text", "KEY_1=2;");
    await page.selectOption("#mode", "off");
    await open(page);
    assert.equal(await page.inputValue("#prompt"), "The old man said");
    assert.equal(await page.inputValue("#nb-text"), "KEY_1=2;");
    assert.equal(await page.inputValue("#mode"), "off");
    assert.match(await page.textContent("#curl"), /The old man said/);
    await page.click("#reset");
    assert.equal(await page.inputValue("#prompt"), example);
    await open(page);
    assert.equal(await page.inputValue("#prompt"), example);
    assert.equal(await page.inputValue("#mode"), "");
  }));

test("works where the browser keeps nothing", kPatient, () =>
  withPage({}, async (page) => {
    await page.addInitScript(() => {
      for (const area of ["localStorage", "sessionStorage"]) {
        Object.defineProperty(window, area, { get() { throw new DOMException("off", "SecurityError"); } });
      }
    });
    await open(page);
    await page.fill("#prompt", "The old man said");
    await tokens(page, 4);
    await generate(page);
    assert.equal((await page.textContent("#panes .text")).length, 4);
  }));

test("asks for no more tokens than the context holds", kPatient, () =>
  withPage({}, async (page) => {
    for (const id of ["#max_tokens", "#nb-tokens"]) {
      await page.waitForSelector(`${id}[max="1023"]`);
      await page.fill(id, "4096");
      await page.press(id, "Tab");
      assert.equal(await page.inputValue(id), "1023");
    }
  }));

for (const viewport of [kPhone, kSmallPhone]) {
  test(`shows the answer at once on a phone of ${viewport.width} x ${viewport.height}`, kPatient, () =>
    withPage({ viewport, hasTouch: true, isMobile: true }, async (page) => {
      await tokens(page, 300);
      await page.tap("#go");
      await page.waitForSelector("#panes .text span");
      for (const id of ["#panes .text", "#stop_button"]) {
        const box = await page.locator(id).boundingBox();
        assert.ok(box.y >= 0 && box.y + 44 <= viewport.height, `${id} is at ${box.y}`);
      }
      await picture(page, `phone-answer-${viewport.width}`, { fullPage: false });
      await page.tap("#stop_button");
      await idle(page);
    }));
}

test("writes notes, finds the right one, answers from it and forgets", kPatient, () =>
  withPage({}, async (page) => {
    const told = (text) => page.waitForFunction((words) => document.getElementById("nb-notice").textContent.includes(words), text);
    const banks = async () => (await (await fetch(`${server.url}/v1/notebanks`)).json()).data;
    await page.fill("#nb-bank", "page-test");
    await page.fill("#nb-tokens", "4");
    await page.click("#nb-write");
    await told("Kept ");
    const [{ name, notes }] = await banks();
    assert.equal(name, "page-test");
    assert.match(await page.textContent("#nb-notice"), new RegExp(`^Kept ${notes} notes of \\d+ tokens`));
    assert.equal(await page.locator("#nb-written li").count(), notes);
    assert.match(await page.textContent("#nb-state"), new RegExp(`page-test: ${notes} notes`));

    await page.click("#nb-address");
    await told("Found 2 notes");
    assert.ok((await page.textContent("#nb-found")).includes("KEY_15=6583"));

    await page.click("#nb-replay");
    await told("before the prompt");
    assert.equal(await page.textContent("#nb-pane .text"), "6583");
    assert.ok((await page.textContent("#nb-found")).includes("KEY_15=6583"));
    await picture(page, "notebank");

    await page.click("#nb-forget");
    assert.match(await page.textContent("#nb-sure"), /"page-test" with all its notes/);
    await page.keyboard.press("Enter");  // Whoever does not read keeps the bank.
    await page.click("#nb-forget");
    await page.keyboard.press("Escape");
    assert.equal((await banks()).length, 1);
    await page.click("#nb-forget");
    await picture(page, "forget", { fullPage: false });
    await page.click("#nb-sure-forget");
    await told("is gone");
    assert.deepEqual(await banks(), []);
    await page.click("#nb-address");
    await told("404: there is no bank page-test");
  }));

test("says so when the server has gone, and goes on when it is back", kPatient, () =>
  withPage({}, async (page) => {
    await page.route("**/v1/stats", (route) => route.abort());
    await page.waitForSelector("#state[data-state=unreachable]");
    await page.unroute("**/v1/stats");
    await page.waitForSelector("#state[data-state=ready]");
  }));

for (const colorScheme of ["light", "dark"]) {
  for (const [name, viewport] of [["desktop", kDesktop], ["phone", kPhone]]) {
    test(`reads well in ${colorScheme} on a ${name}`, kPatient, () =>
      withPage({ colorScheme, viewport, reducedMotion: "reduce" }, async (page) => {
        for (const summary of await page.locator("summary").all()) await summary.click();
        await page.click("#key-button");
        await tokens(page, 40);
        await generate(page);
        assert.deepEqual(await page.evaluate(lowContrast), []);
        assert.deepEqual(await page.evaluate(namelessControls), []);
        assert.deepEqual(await page.evaluate(overflowing), []);
        if (viewport === kPhone) assert.deepEqual(await page.evaluate(smallTargets), []);
        await page.click("#key-button");
        for (const summary of await page.locator("summary").all()) await summary.click();
        await picture(page, `${name}-${colorScheme}`);
      }));
  }
}

test("stands still for those who ask for it", kPatient, () =>
  withPage({ reducedMotion: "reduce" }, async (page) => {
    await tokens(page, 200);
    await page.press("#prompt", "Control+Enter");
    await page.waitForSelector("#panes .text span");
    assert.equal(await page.evaluate(() => document.getAnimations().length), 0);
    await page.keyboard.press("Escape");
    await idle(page);
  }));

test("can be used with the keyboard alone", kPatient, () =>
  withPage({}, async (page) => {
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
    await page.keyboard.press("Enter");
    const reached = new Set();
    for (let i = 0; i < 60; ++i) {
      await page.keyboard.press("Tab");
      reached.add(await page.evaluate(() => document.activeElement.id));
    }
    for (const id of ["max_tokens", "mode", "go", "compare", "nb-bank", "nb-write", "nb-address", "nb-replay"]) {
      assert.ok(reached.has(id), `Tab never reached #${id}`);
    }
  }));

// The live page in Chromium against a real server: what it shows is what the server said.
// Environment: SPEL_BINARY, SPEL_MODEL, CHROMIUM, SCREENSHOTS (a folder; none: no pictures).
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";

import { lowContrast, namelessControls, overflowing } from "./in_page.mjs";
import { startServer } from "./server.mjs";

const { SPEL_BINARY, SPEL_MODEL, CHROMIUM, SCREENSHOTS } = process.env;
const kPatient = { timeout: 180_000 };  // A busy machine is no failure.
const kDesktop = { width: 1280, height: 900 };
const kPhone = { width: 360, height: 740 };

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
    await page.goto(server.url);
    await page.waitForSelector("#state[data-state=ready]");
    await work(page);
    assert.deepEqual(complaints, []);
  } finally {
    await context.close();
  }
}

const picture = async (page, name) => {
  if (SCREENSHOTS) await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`), fullPage: true });
};
const idle = (page) => page.waitForSelector("#stop_button[disabled]", { state: "attached" });
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
    for (const id of ["rate", "k", "alpha", "c", "v", "speedup"]) {
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
    const shown = await page.textContent("#panes .notice");
    assert.match(shown, /^(Error: )?400: /);
  }));

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

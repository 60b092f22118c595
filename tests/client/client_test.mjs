// OpenAI's client for Node, unchanged but for baseURL, against a real server.
// Environment: SPEL_BINARY, SPEL_MODEL.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import OpenAI from "openai";

import { startServer } from "./server.mjs";

const { SPEL_BINARY, SPEL_MODEL } = process.env;
const kModel = "spel-21m";
const kPrompt = "KEY_15=1907; said the old man by the river. ?KEY_15=";
const kMessages = [{ role: "user", content: "It was a fine morning, and" }];
const kGaugeMs = 2_000;  // Generous: a busy machine is no failure. The abuse suite measures it.

const clientOf = (url, apiKey = "unused") =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0, timeout: 60_000 });

/** The chunks of a stream, and what its choice 0 says. */
async function collect(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  const choices = chunks.flatMap((chunk) => chunk.choices);
  const text = choices.filter((choice) => choice.index === 0)
    .map((choice) => choice.text ?? choice.delta.content ?? "").join("");
  const reasons = choices.map((choice) => choice.finish_reason).filter((reason) => reason !== null);
  return { chunks, text, reasons };
}

/** The error the client throws, which has to be of `type`. */
async function refusal(promise, type) {
  const error = await promise.then(() => null, (thrown) => thrown);
  assert.ok(error instanceof type, `expected ${type.name}, got ${error?.constructor.name}: ${error}`);
  return error;
}

async function gauge(url, name) {
  const page = await (await fetch(`${url}/metrics`)).text();
  const line = page.split("\n").find((text) => text.startsWith(`${name} `));
  assert.ok(line, `no ${name} in /metrics`);
  return Number(line.split(" ")[1]);
}

async function eventually(condition, ms, what) {
  const deadline = Date.now() + ms;
  while (!(await condition())) {
    assert.ok(Date.now() < deadline, `not within ${ms} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

describe("without API keys", () => {
  let server, client;
  before(async () => {
    server = await startServer(SPEL_BINARY, SPEL_MODEL);
    client = clientOf(server.url);
  });
  after(async () => assert.equal(await server?.stop(), 0));

  test("models", async () => {
    const list = await client.models.list();
    assert.deepEqual(list.data.map((model) => model.id), [kModel]);
    const model = await client.models.retrieve(kModel);
    assert.equal(model.object, "model");
    assert.equal(model.id, kModel);
  });

  test("a completion recalls a fact", async () => {
    const answer = await client.completions.create({
      model: kModel, prompt: kPrompt, max_tokens: 4, temperature: 0 });
    assert.equal(answer.object, "text_completion");
    assert.equal(answer.choices[0].text, "1907");
    assert.equal(answer.choices[0].finish_reason, "length");
    assert.deepEqual(
      [answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens],
      [kPrompt.length, 4, kPrompt.length + 4]);
    const details = answer.usage.completion_tokens_details;
    assert.equal(details.accepted_prediction_tokens, answer.speculation.accepted);
  });

  test("a streamed completion says the same", async () => {
    const request = { model: kModel, prompt: kPrompt, max_tokens: 40, temperature: 0 };
    const whole = await client.completions.create(request);
    const { chunks, text, reasons } = await collect(
      await client.completions.create({ ...request, stream: true }));
    assert.ok(chunks.length > 1);
    assert.equal(text, whole.choices[0].text);
    assert.deepEqual(reasons, ["length"]);
    assert.equal(new Set(chunks.map((chunk) => chunk.id)).size, 1);
  });

  test("stream_options.include_usage", async () => {
    const { chunks } = await collect(await client.completions.create({
      model: kModel, prompt: kPrompt, max_tokens: 8, temperature: 0, stream: true,
      stream_options: { include_usage: true } }));
    const last = chunks.at(-1);
    assert.deepEqual(last.choices, []);
    assert.equal(last.usage.completion_tokens, 8);
    assert.ok(chunks.slice(0, -1).every((chunk) => chunk.usage === null));
  });

  test("chat, whole and streamed", async () => {
    const request = { model: kModel, messages: kMessages, max_tokens: 24, temperature: 0 };
    const whole = await client.chat.completions.create(request);
    assert.equal(whole.object, "chat.completion");
    assert.equal(whole.choices[0].message.role, "assistant");
    assert.ok(whole.choices[0].message.content.length > 0);
    const { chunks, text, reasons } = await collect(
      await client.chat.completions.create({ ...request, stream: true }));
    assert.equal(chunks[0].choices[0].delta.role, "assistant");
    assert.equal(text, whole.choices[0].message.content);
    assert.deepEqual(reasons, [whole.choices[0].finish_reason]);
  });

  test("the client's own stream helper assembles the same chat", async () => {
    const request = { model: kModel, messages: kMessages, max_tokens: 24, temperature: 0 };
    const whole = await client.chat.completions.create(request);
    const assembled = await client.chat.completions.stream(request).finalChatCompletion();
    assert.deepEqual(assembled.choices[0].message.content, whole.choices[0].message.content);
  });

  test("many prompts in one request, each with a text of its own", async () => {
    const answer = await client.completions.create({
      model: kModel, prompt: Array(20).fill("The old man said "), max_tokens: 24, temperature: 1, seed: 7 });
    assert.equal(answer.choices.length, 20);
    assert.ok(new Set(answer.choices.map((choice) => choice.text)).size > 15);
  });

  test("n choices", async () => {
    const answer = await client.completions.create({
      model: kModel, prompt: "The", max_tokens: 12, temperature: 1, seed: 5, n: 3 });
    assert.deepEqual(answer.choices.map((choice) => choice.index), [0, 1, 2]);
    assert.equal(new Set(answer.choices.map((choice) => choice.text)).size, 3);
  });

  test("logprobs", async () => {
    const answer = await client.completions.create({
      model: kModel, prompt: kPrompt, max_tokens: 4, temperature: 0, logprobs: 2 });
    const { tokens, token_logprobs: values, top_logprobs: top } = answer.choices[0].logprobs;
    assert.equal(tokens.join(""), "1907");
    assert.ok(values.every((value) => value <= 0));
    assert.ok(top.every((entry) => Object.keys(entry).length === 2));
    assert.equal(top[0][tokens[0]], values[0]);
    const chat = await client.chat.completions.create({
      model: kModel, messages: kMessages, max_tokens: 3, temperature: 0, logprobs: true, top_logprobs: 3 });
    const content = chat.choices[0].logprobs.content;
    assert.equal(content.map((entry) => entry.token).join(""), chat.choices[0].message.content);
    assert.ok(content.every((entry) => entry.top_logprobs.length === 3));
  });

  test("stop", async () => {
    const answer = await client.completions.create({
      model: kModel, prompt: kPrompt, max_tokens: 32, temperature: 0, stop: ["07"] });
    assert.equal(answer.choices[0].text, "19");
    assert.equal(answer.choices[0].finish_reason, "stop");
  });

  test("a seed gives the same text again, another seed another", async () => {
    const ask = async (seed, extra = {}) => (await client.completions.create({
      model: kModel, prompt: "It was", max_tokens: 40, temperature: 1, seed, ...extra })).choices[0].text;
    const first = await ask(7);
    assert.equal(await ask(7), first);
    assert.equal(await ask(7, { speculation: { mode: "off" } }), first);
    assert.notEqual(await ask(8), first);
  });

  test("errors are the client's own kinds", async () => {
    const bad = await refusal(client.completions.create({
      model: kModel, prompt: "a", temperature: 9 }), OpenAI.BadRequestError);
    assert.equal(bad.status, 400);
    assert.equal(bad.param, "temperature");
    assert.equal(bad.code, "invalid_value");
    assert.equal(bad.type, "invalid_request_error");
    assert.ok(bad.requestID);
    const absent = await refusal(client.completions.create({
      model: kModel }), OpenAI.BadRequestError);
    assert.deepEqual([absent.param, absent.code], ["prompt", "missing_parameter"]);
    await refusal(client.completions.create({
      model: kModel, prompt: "a", speculation: { enabled: false } }), OpenAI.BadRequestError);
    const long = await refusal(client.completions.create({
      model: kModel, prompt: "a".repeat(5000) }), OpenAI.BadRequestError);
    assert.equal(long.code, "context_length_exceeded");
    const unknown = await refusal(client.chat.completions.create({
      model: "no-such-model", messages: kMessages }), OpenAI.NotFoundError);
    assert.equal(unknown.status, 404);
    assert.equal(unknown.code, "model_not_found");
    await refusal(client.models.retrieve("no-such-model"), OpenAI.NotFoundError);
    const streamed = await refusal(client.completions.create({
      model: kModel, prompt: "a", max_tokens: -1, stream: true }), OpenAI.BadRequestError);
    assert.equal(streamed.param, "max_tokens");
  });

  test("an aborted stream frees its sequence", async () => {
    const controller = new AbortController();
    const stream = await client.completions.create(
      { model: kModel, prompt: "It was", max_tokens: 1000, temperature: 1, seed: 3, stream: true },
      { signal: controller.signal });
    let seen = 0;
    for await (const chunk of stream) {
      seen += chunk.choices.length;
      if (seen === 3) {
        assert.equal(await gauge(server.url, "spel_num_requests_running"), 1);
        controller.abort();
      }
    }
    assert.ok(seen < 1000, "the stream went on after the abort");
    await eventually(async () => (await gauge(server.url, "spel_num_requests_running")) === 0,
      kGaugeMs, "nothing is running");
    const again = await client.completions.create({
      model: kModel, prompt: kPrompt, max_tokens: 4, temperature: 0 });
    assert.equal(again.choices[0].text, "1907");
  });
});

describe("in a page of another origin", () => {
  const kOrigin = "http://localhost:3000";
  let server;
  before(async () => {
    server = await startServer(SPEL_BINARY, SPEL_MODEL, ["--cors-origins", kOrigin]);
  });
  after(async () => assert.equal(await server?.stop(), 0));

  test("the preflight allows every field the client sends", async () => {
    const sent = new Set();
    const client = new OpenAI({
      baseURL: `${server.url}/v1`, apiKey: "unused", maxRetries: 0, dangerouslyAllowBrowser: true,
      fetch: (url, init) => {
        for (const [name] of new Headers(init.headers)) sent.add(name);
        return fetch(url, init);
      } });
    await client.completions.create({ model: kModel, prompt: "a", max_tokens: 1 });
    // What a browser never asks about, or sends by itself.
    const simple = new Set(["accept", "user-agent", "content-length"]);
    const asked = [...sent].filter((name) => !simple.has(name)).sort();
    assert.ok(asked.some((name) => name.startsWith("x-stainless-")), asked.join());
    const preflight = await fetch(`${server.url}/v1/completions`, {
      method: "OPTIONS",
      headers: {
        origin: kOrigin, "access-control-request-method": "POST",
        "access-control-request-headers": asked.join(",") } });
    assert.equal(preflight.status, 204);
    assert.equal(preflight.headers.get("access-control-allow-origin"), kOrigin);
    const allowed = new Set(
      preflight.headers.get("access-control-allow-headers").split(",").map((name) => name.trim()));
    assert.deepEqual(asked.filter((name) => !allowed.has(name)), []);
  });
});

describe("with API keys", () => {
  const folder = mkdtempSync(join(tmpdir(), "spel-client-"));
  let server;
  before(async () => {
    const file = join(folder, "keys");
    writeFileSync(file, "key-of-the-client-test\n", { mode: 0o600 });
    server = await startServer(SPEL_BINARY, SPEL_MODEL, ["--api-keys-file", file]);
  });
  after(async () => {
    assert.equal(await server?.stop(), 0);
    rmSync(folder, { recursive: true });
  });

  test("the wrong key is refused, the right one works", async () => {
    const request = { model: kModel, prompt: kPrompt, max_tokens: 4, temperature: 0 };
    const error = await refusal(
      clientOf(server.url, "wrong").completions.create(request), OpenAI.AuthenticationError);
    assert.equal(error.status, 401);
    assert.equal(error.code, "invalid_api_key");
    await refusal(clientOf(server.url, "wrong").models.list(), OpenAI.AuthenticationError);
    const answer = await clientOf(server.url, "key-of-the-client-test").completions.create(request);
    assert.equal(answer.choices[0].text, "1907");
  });
});

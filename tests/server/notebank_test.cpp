// The episodic memory over HTTP: every endpoint, what it answers and what it refuses.
#include "proto/notebank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "notebank_support.h"
#include "server/note_service.h"

namespace spel::server::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// --- Write ---------------------------------------------------------------------------------------

TEST(NoteBankWrite, ListsTheNotesAndWhatTheyCame) {
  const NoteServer server;
  const std::string text = text_with("KEY_37=4821");
  const Reply reply = server.post_json(
      "/v1/notebanks/facts/write",
      {{"text", text}, {"metadata", {{"from", "a test"}}}, {"notes_per_chunk", 3}});
  expect_schema("NoteWriteResponse", reply, 201);
  const json body = reply.parsed();
  EXPECT_EQ(body["bank"], "facts");
  EXPECT_EQ(body["tokens"], text.size());
  EXPECT_EQ(body["chunks"], (text.size() + 127) / 128);
  EXPECT_EQ(body["count"], body["notes"].size());
  EXPECT_GT(body["count"], 2 * text.size() / 128);
  EXPECT_GT(body["seconds"], 0.0);
  for (const json& note : body["notes"]) {
    // A note is a span of the text, where it says.
    EXPECT_EQ(note["text"], text.substr(note["start"], note["tokens"].size()));
    EXPECT_EQ(note["metadata"], (json{{"from", "a test"}}));
  }
  EXPECT_THAT(reply.body, HasSubstr("KEY_37=4821"));
}

TEST(NoteBankWrite, StreamsItsProgressAndEndsWithTheAnswer) {
  const NoteServer server;
  const std::string text = text_with("KEY_37=4821", 2000);
  const Reply reply =
      server.post_json("/v1/notebanks/facts/write", {{"text", text}, {"stream", true}});
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_THAT(reply.header("content-type"), HasSubstr("text/event-stream"));
  const std::vector<json> events = sse_events(reply.body);
  ASSERT_GT(events.size(), 3U);
  std::uint64_t before = 0;
  for (std::size_t i = 0; i + 2 < events.size(); ++i) {
    EXPECT_THAT(violations("NoteWriteProgress", events[i]), IsEmpty());
    const json& progress = events[i].at("progress");
    EXPECT_GT(progress.at("tokens"), before);
    EXPECT_EQ(progress.at("total"), text.size());
    // Whole or not at all: nothing is durable before the end of so short a text.
    EXPECT_EQ(progress.at("notes") > 0, progress.at("tokens") == text.size());
    before = progress.at("tokens");
  }
  const json& answer = events[events.size() - 2];
  EXPECT_THAT(violations("NoteWriteResponse", answer), IsEmpty());
  EXPECT_EQ(answer["count"], events[events.size() - 3]["progress"]["notes"]);
  EXPECT_EQ(events.back(), "[DONE]");
}

TEST(NoteBankWrite, ALongTextBecomesDurablePartByPart) {
  const NoteServer server;
  const std::size_t characters = NoteService::kAtomicTokens + 2000;
  const Reply reply = server.post_json(
      "/v1/notebanks/book/write", {{"text", text_with("KEY_1=1", characters)}, {"stream", true}});
  const std::vector<json> events = sse_events(reply.body);
  ASSERT_GT(events.size(), 10U);
  std::size_t first_durable = 0;
  while (events[first_durable].at("progress").at("notes") == 0) {
    ++first_durable;
  }
  EXPECT_EQ(events[first_durable]["progress"]["tokens"], NoteService::kAtomicTokens);
  const json& answer = events[events.size() - 2];
  EXPECT_GT(answer["count"], proto::kNotesListedMax);
  EXPECT_EQ(answer["notes"].size(), proto::kNotesListedMax);
  EXPECT_EQ(server.ask(get("/v1/notebanks/book")).parsed()["notes"], answer["count"]);
}

TEST(NoteBankWrite, RefusesWhatIsTooLong) {
  const NoteServer server;
  const std::string text(proto::kNoteTextBytesMax + 1, 'x');
  expect_error(server.write("facts", text), 400, "text", "16777216");
  Client client(server.port());
  client.send("POST /v1/notebanks/facts/write HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
              std::to_string(proto::kNoteBodyBytes + 1) + "\r\n\r\n");
  expect_error(client.read_reply(), 413, "", std::to_string(proto::kNoteBodyBytes));
  // Only this endpoint takes bodies of that size.
  Client other(server.port());
  other.send("POST /v1/notebanks/facts/address HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
             std::to_string(proto::kNoteBodyBytes) + "\r\n\r\n");
  EXPECT_EQ(other.read_reply().status, 413);
  EXPECT_EQ(server.ask(get("/v1/notebanks")).parsed()["data"].size(), 0U);
}

TEST(NoteBankWrite, RefusesWhatItDoesNotUnderstand) {
  const NoteServer server;
  const std::string path = "/v1/notebanks/facts/write";
  expect_error(server.post_json(path, json::object()), 400, "text", "required");
  expect_error(server.post_json(path, {{"text", ""}}), 400, "text", "empty");
  expect_error(server.post_json(path, {{"text", 7}}), 400, "text", "string");
  expect_error(server.post_json(path, {{"text", "a"}, {"notes_per_chunk", 0}}), 400,
               "notes_per_chunk", "1");
  expect_error(server.post_json(path, {{"text", "a"}, {"notes_per_chunk", 17}}), 400,
               "notes_per_chunk", "16");
  expect_error(server.post_json(path, {{"text", "a"}, {"metadata", "x"}}), 400, "metadata",
               "object");
  expect_error(
      server.post_json(path, {{"text", "a"}, {"metadata", {{"x", std::string(5000, 'y')}}}}), 400,
      "metadata", "4096");
  expect_error(server.post_json(path, {{"text", "a"}, {"stream", "yes"}}), 400, "stream", "true");
  expect_error(server.ask(post(path, "{")), 400, "", "JSON");
  // A character the model has no token for.
  expect_error(server.post_json(path, {{"text", "caf\u00e9"}}), 400, "text", "token");
}

// --- Address -------------------------------------------------------------------------------------

TEST(NoteBankAddress, FindsTheNoteTheQueryPointsAt) {
  const NoteServer server;
  ASSERT_EQ(server.write("facts", text_with("KEY_37=4821")).status, 201);
  const auto address = [&](const json& body) {
    const Reply reply = server.post_json("/v1/notebanks/facts/address", body);
    expect_schema("NoteAddressResponse", reply, 200);
    return reply.parsed();
  };
  // Keys of equal text are equal, whatever the weights are.
  const json found = address({{"query", "?KEY_37="}});
  ASSERT_EQ(found["notes"].size(), 2U);
  EXPECT_THAT(found["notes"][0]["text"].get<std::string>(), HasSubstr("KEY_37=4821"));
  EXPECT_GE(found["notes"][0]["score"], found["notes"][1]["score"]);
  EXPECT_EQ(address({{"query", "?KEY_37="}, {"top", 3}})["notes"].size(), 3U);
  EXPECT_EQ(address({{"query", "?KEY_37="}, {"top", 1}})["notes"][0]["id"],
            found["notes"][0]["id"]);
  for (const char* ranker : {"sum", "native", "votes", "text", "fused"}) {
    EXPECT_EQ(address({{"query", "?KEY_37="}, {"ranker", ranker}})["notes"].size(), 2U) << ranker;
  }
}

TEST(NoteBankAddress, RefusesWhatItDoesNotUnderstand) {
  const NoteServer server;
  ASSERT_EQ(server.write("facts", "a text").status, 201);
  const std::string path = "/v1/notebanks/facts/address";
  expect_error(server.post_json(path, json::object()), 400, "query", "required");
  expect_error(server.post_json(path, {{"query", ""}}), 400, "query", "empty");
  expect_error(server.post_json(path, {{"query", json::array({1})}}), 400, "query", "string");
  expect_error(server.post_json(path, {{"query", "a"}, {"top", 0}}), 400, "top", "1");
  expect_error(server.post_json(path, {{"query", "a"}, {"top", 65}}), 400, "top", "64");
  expect_error(server.post_json(path, {{"query", "a"}, {"top", "two"}}), 400, "top", "integer");
  expect_error(server.post_json(path, {{"query", "a"}, {"ranker", "best"}}), 400, "ranker", "sum");
  expect_error(server.post_json("/v1/notebanks/none/address", {{"query", "a"}}), 404, "", "none");
  expect_error(server.post_json("/v1/notebanks/no.such/address", {{"query", "a"}}), 404, "",
               "name");
}

TEST(NoteBankAddress, FindsOrdinarySentencesByWhatIsAskedForAndKeepsShortTextsWhole) {
  const NoteServer server;
  std::string list;
  for (int item = 1; item <= 60; ++item) {
    const std::string fact = "The price of item " + std::to_string(item) + " is " +
                             std::to_string(item * 37 % 1009) + " coins.";
    const json written = server.write("facts", fact).parsed();
    EXPECT_EQ(written["notes"][0]["text"], fact);
    list += fact + " ";
  }
  ASSERT_EQ(server.write("list", list).status, 201);
  for (const std::string bank : {"facts", "list"}) {
    for (const int item : {1, 7, 17, 37, 60}) {
      const std::string asked = "The price of item " + std::to_string(item) + " is ";
      const json found =
          server.post_json("/v1/notebanks/" + bank + "/address", {{"query", asked}, {"top", 1}})
              .parsed();
      EXPECT_THAT(found["notes"][0]["text"].get<std::string>(),
                  HasSubstr("item " + std::to_string(item) + " is " +
                            std::to_string(item * 37 % 1009) + " coins."))
          << bank;
    }
  }
}

// --- Replay --------------------------------------------------------------------------------------

/// What a replay must say: the notes' tokens read before the prompt's, the best one last.
std::string said_after(const NoteServer& server, const json& report) {
  std::vector<TokenId> tokens;
  for (const json& used : report["notes"]) {
    const json note =
        server
            .ask(get("/v1/notebanks/facts/notes/" + std::to_string(used["id"].get<std::int64_t>())))
            .parsed();
    const auto read = note["tokens"].get<std::vector<TokenId>>();
    tokens.insert(tokens.begin(), read.begin(), read.end());
  }
  EXPECT_EQ(report["tokens"], tokens.size());
  for (const char c : std::string("?KEY_37=")) {
    tokens.push_back(c);
  }
  json body = replay_body();
  body["prompt"] = tokens;
  return server.complete(body).parsed()["choices"][0]["text"];
}

TEST(NoteBankReplay, IsACompletionAfterTheNotes) {
  const NoteServer server;
  ASSERT_EQ(server.write("facts", text_with("KEY_37=4821")).status, 201);
  const Reply reply = server.post_json("/v1/notebanks/facts/replay", replay_body());
  expect_schema("CompletionResponse", reply, 200);
  const json body = reply.parsed();
  ASSERT_EQ(body["notebank"].size(), 1U);
  const json& report = body["notebank"][0];
  EXPECT_EQ(report["bank"], "facts");
  ASSERT_EQ(report["notes"].size(), 2U);
  EXPECT_EQ(body["usage"]["prompt_tokens"], report["tokens"].get<std::size_t>() + 8);
  EXPECT_EQ(body["choices"][0]["text"], said_after(server, report));

  // The same through the completion endpoint.
  json other = replay_body();
  other["notebank"] = {{"bank", "facts"}};
  const Reply completion = server.complete(other);
  expect_schema("CompletionResponse", completion, 200);
  EXPECT_EQ(completion.parsed()["choices"], body["choices"]);
  EXPECT_EQ(completion.parsed()["notebank"][0]["notes"], report["notes"]);
}

TEST(NoteBankReplay, TakesEveryFieldOfACompletion) {
  const NoteServer server;
  ASSERT_EQ(server.write("facts", text_with("KEY_37=4821")).status, 201);
  json body = {{"prompt", json::array({"?KEY_37=", "the old"})},
               {"max_tokens", 6},
               {"temperature", 0.8},
               {"top_p", 0.9},
               {"top_k", 40},
               {"min_p", 0.01},
               {"seed", 7},
               {"n", 2},
               {"logprobs", 2},
               {"frequency_penalty", 0.1},
               {"presence_penalty", 0.1},
               {"logit_bias", {{"65", -1}}},
               {"stop", json::array({"\n\n"})},
               {"speculation", {{"mode", "on"}, {"k", 2}, {"governor", "off"}}},
               {"return_token_ids", true},
               {"user", "someone"},
               {"top", 1},
               {"ranker", "votes"}};
  const Reply reply = server.post_json("/v1/notebanks/facts/replay", body);
  expect_schema("CompletionResponse", reply, 200);
  const json answer = reply.parsed();
  EXPECT_EQ(answer["choices"].size(), 4U);
  ASSERT_EQ(answer["notebank"].size(), 2U);
  for (const json& report : answer["notebank"]) {
    EXPECT_EQ(report["notes"].size(), 1U);
  }
  EXPECT_EQ(answer["choices"][0]["logprobs"]["tokens"].size(),
            answer["choices"][0]["token_ids"].size());
  // And with the notes named where a completion names them.
  body.erase("top");
  body.erase("ranker");
  body["notebank"] = {{"bank", "facts"}, {"top", 1}, {"ranker", "votes"}};
  const json again = server.post_json("/v1/notebanks/facts/replay", body).parsed();
  EXPECT_EQ(again["choices"], answer["choices"]);
}

TEST(NoteBankReplay, StreamsTheSameText) {
  const NoteServer server;
  ASSERT_EQ(server.write("facts", text_with("KEY_37=4821")).status, 201);
  const json whole = server.post_json("/v1/notebanks/facts/replay", replay_body()).parsed();
  json body = replay_body();
  body["stream"] = true;
  const Streamed streamed = parse_stream(server.post_json("/v1/notebanks/facts/replay", body).body);
  EXPECT_TRUE(streamed.done);
  EXPECT_EQ(streamed.text, whole["choices"][0]["text"].get<std::string>());
  ASSERT_FALSE(streamed.chunks.empty());
  const json& last = streamed.chunks.back();
  EXPECT_THAT(violations("CompletionChunk", last), IsEmpty());
  EXPECT_EQ(last["notebank"][0]["notes"], whole["notebank"][0]["notes"]);
}

TEST(NoteBankReplay, LeavesRoomForTheAnswer) {
  const NoteServer server;
  ASSERT_EQ(server.write("facts", text_with("KEY_37=4821", 3000)).status, 201);
  json body = replay_body();
  body["top"] = 64;
  body["ranker"] = "sum";                        // Its notes are of 48 tokens each …
  body["max_tokens"] = kNoteModelSeq - 8 - 100;  // … and there is room for two.
  const Reply reply = server.post_json("/v1/notebanks/facts/replay", body);
  expect_schema("CompletionResponse", reply, 200);
  EXPECT_EQ(reply.parsed()["notebank"][0]["notes"].size(), 2U);
  EXPECT_EQ(reply.parsed()["usage"]["completion_tokens"], body["max_tokens"]);
}

TEST(NoteBankReplay, RefusesWhatItDoesNotUnderstand) {
  const NoteServer server;
  ASSERT_EQ(server.write("facts", "a text").status, 201);
  const std::string path = "/v1/notebanks/facts/replay";
  const auto with = [](const char* name, const json& value) {
    json body = replay_body();
    body[name] = value;
    return body;
  };
  expect_error(server.post_json(path, {{"max_tokens", 1}}), 400, "prompt", "required");
  expect_error(server.post_json(path, with("top", 0)), 400, "notebank.top", "1");
  expect_error(server.post_json(path, with("ranker", "x")), 400, "notebank.ranker", "sum");
  expect_error(server.post_json(path, with("notebank", {{"bank", "other"}})), 400, "notebank.bank",
               "path");
  expect_error(server.post_json(path, with("notebank", "facts")), 400, "notebank", "object");
  expect_error(server.post_json(path, with("echo", true)), 400, "echo", "notebank");
  expect_error(server.post_json("/v1/notebanks/none/replay", replay_body()), 404, "", "none");
  expect_error(server.complete(with("notebank", {{"bank", "none"}})), 404, "", "none");
  expect_error(server.complete(with("notebank", {{"bank", "a.b"}})), 400, "notebank.bank", "name");
}

// --- Banks and notes -----------------------------------------------------------------------------

TEST(NoteBanks, AreListedReadAndDeleted) {
  const NoteServer server;
  expect_schema("NoteBankList", server.ask(get("/v1/notebanks")), 200);
  const json written = server.write("facts", text_with("KEY_37=4821")).parsed();
  ASSERT_EQ(server.write("other", "a text").status, 201);
  const Reply list = server.ask(get("/v1/notebanks"));
  expect_schema("NoteBankList", list, 200);
  ASSERT_EQ(list.parsed()["data"].size(), 2U);
  const Reply bank = server.ask(get("/v1/notebanks/facts"));
  expect_schema("NoteBank", bank, 200);
  EXPECT_EQ(bank.parsed(), list.parsed()["data"][0]);
  EXPECT_EQ(bank.parsed()["model"], kNoteModelHash);
  EXPECT_EQ(bank.parsed()["notes"], written["count"]);
  // A passage is its text and its tokens; the writer's notes have their vectors too.
  EXPECT_GT(bank.parsed()["bytes"], written["count"].get<std::uint64_t>() * 5 * 16);
  EXPECT_EQ(bank.parsed()["damaged"], 0);

  const json first = written["notes"][0];
  const std::string note = "/v1/notebanks/facts/notes/" + std::to_string(first["id"].get<int>());
  const Reply read = server.ask(get(note));
  expect_schema("Note", read, 200);
  EXPECT_EQ(read.parsed()["text"], first["text"]);
  EXPECT_EQ(read.parsed()["tokens"], first["tokens"]);
  expect_schema("Deleted", server.remove(note), 200);
  expect_error(server.ask(get(note)), 404, "", "no note");
  expect_error(server.remove(note), 404, "", "no note");
  EXPECT_EQ(server.ask(get("/v1/notebanks/facts")).parsed()["notes"],
            written["count"].get<int>() - 1);
  expect_schema("Deleted", server.remove("/v1/notebanks/facts"), 200);
  expect_error(server.remove("/v1/notebanks/facts"), 404, "", "facts");
  expect_error(server.ask(get("/v1/notebanks/facts")), 404, "", "facts");
  for (const char* id : {"0", "-1", "x", "1x", "99999999999999999999"}) {
    EXPECT_EQ(server.ask(get(std::string("/v1/notebanks/other/notes/") + id)).status, 404) << id;
  }
  for (const char* name : {"..", "a.b", "a%2Fb", "a%20b"}) {
    EXPECT_EQ(server.ask(get(std::string("/v1/notebanks/") + name)).status, 404) << name;
  }
  EXPECT_EQ(server.ask(get("/v1/notebanks/" + std::string(65, 'a'))).status, 404);
}

// --- Metrics -------------------------------------------------------------------------------------

TEST(NoteBankMetrics, CountWhatWasDone) {
  const NoteServer server;
  const json written = server.write("facts", text_with("KEY_37=4821")).parsed();
  (void)server.post_json("/v1/notebanks/facts/address", {{"query", "?KEY_37="}});
  (void)server.post_json("/v1/notebanks/facts/replay", replay_body());
  (void)server.write("facts", "");
  EXPECT_EQ(server.metric("spel_notebank_writes_total"), 1.0);
  EXPECT_EQ(server.metric("spel_notebank_addresses_total"), 2.0);
  EXPECT_EQ(server.metric("spel_notebank_replays_total"), 1.0);
  EXPECT_EQ(server.metric("spel_notebank_notes_written_total"), written["count"]);
  EXPECT_EQ(server.metric("spel_notebank_notes"), written["count"]);
  EXPECT_GT(server.metric("spel_notebank_write_seconds_total"), 0.0);
  EXPECT_GT(server.metric("spel_notebank_address_seconds_total"), 0.0);
  EXPECT_GE(server.metric("spel_capture_tokens_total"), written["tokens"]);
  (void)server.remove("/v1/notebanks/facts");
  EXPECT_EQ(server.metric("spel_notebank_notes"), 0.0);
  EXPECT_EQ(server.metric("spel_notebank_notes_written_total"), written["count"]);
}

// A model without recurrent layers has no keys to keep.
TEST(NoteBanks, OfAModelWithoutMemoryAreNotSupported) {
  const TestServer server(ascii_script("x"));
  expect_error(server.ask(get("/v1/notebanks")), 501, "", "memory");
  json body = replay_body();
  body["notebank"] = {{"bank", "facts"}};
  expect_error(server.complete(body), 501, "notebank", "memory");
}

}  // namespace
}  // namespace spel::server::testing

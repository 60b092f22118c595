// The small parts, each alone.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <set>
#include <sys/stat.h>
#include <utility>
#include <vector>

#include "config/base/error.h"
#include "engine/document/convert.h"
#include "engine/document/random_source.h"
#include "server/auth.h"
#include "server/cors.h"
#include "server/host_check.h"
#include "server/log.h"
#include "server/memory_reserve.h"
#include "server/message.h"
#include "server/model_loader.h"
#include "server/normalize_text.h"
#include "server/pipeline.h"
#include "server/recall.h"
#include "server/retry_after.h"
#include "server/router.h"
#include "tests/engine/model/model_fixtures.h"
#include "tests/scratch_folder.h"

namespace spel::server {
namespace {

using namespace std::string_literals;

TEST(ResponseFields, NothingThatEndsALineGetsIn) {
  Response response;
  EXPECT_THROW(response.add_header("X", "a\r\nSet-Cookie: b"), Error);
  EXPECT_THROW(response.add_header("X\n", "a"), Error);
  EXPECT_THROW(response.add_header("X", std::string("a\0b", 3)), Error);
  response.add_header("X", "plain");
  EXPECT_EQ(response.headers().size(), 1U);
}

TEST(LogLines, CannotBeForged) {
  const std::string text = format_log_line(
      false, LogLevel::kInfo, 0, "a\nb",
      {{"path", std::string_view("/x\r\n2026 info forged")}, {"n", std::int64_t{7}}});
  EXPECT_EQ(text,
            R"(1970-01-01T00:00:00.000Z info a\u000ab path="/x\u000d\u000a2026 info forged" n=7)");
  const std::string json = format_log_line(true, LogLevel::kError, 1'500, "q\"",
                                           {{"x", std::string_view("\x1b[31m\xff")}});
  EXPECT_EQ(json,
            "{\"time\":\"1970-01-01T00:00:01.500Z\",\"level\":\"error\",\"message\":\"q\\\"\","
            "\"x\":\"\\u001b[31m\xEF\xBF\xBD\"}");
}

TEST(MemoryReserve, HandsOutBlocksOfTheirOwnUntilItIsUsedUp) {
  std::vector<std::byte> arena(std::size_t{2} << 20);
  MemoryReserve reserve(arena);
  std::vector<std::pair<char*, std::size_t>> blocks;
  for (std::size_t bytes = 1;; bytes = bytes * 3 % MemoryReserve::kLargest + 1) {
    auto* block = static_cast<char*>(reserve.take(bytes));
    if (block == nullptr) {
      break;
    }
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignof(std::max_align_t), 0U);
    std::memset(block, static_cast<int>(blocks.size() % 251), bytes);
    blocks.emplace_back(block, bytes);
  }
  EXPECT_GT(reserve.used(), arena.size() / 2);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto [block, bytes] = blocks[i];
    const std::vector<char> expected(bytes, static_cast<char>(i % 251));
    ASSERT_EQ(std::memcmp(block, expected.data(), bytes), 0) << i;
    EXPECT_TRUE(reserve.give_back(block));
  }
  EXPECT_EQ(reserve.used(), 0U);
  // What was given back serves again, for a smaller request too.
  std::size_t again = 0;
  while (reserve.take(1) != nullptr) {
    ++again;
  }
  EXPECT_GE(again, blocks.size());
}

TEST(MemoryReserve, KnowsWhatIsNotItsOwn) {
  std::vector<std::byte> arena(std::size_t{1} << 20);
  MemoryReserve reserve(arena);
  int other = 0;
  EXPECT_FALSE(reserve.give_back(&other));
  EXPECT_FALSE(reserve.give_back(nullptr));
  EXPECT_EQ(reserve.take(MemoryReserve::kLargest + 1), nullptr);
  EXPECT_NE(reserve.take(MemoryReserve::kLargest), nullptr);
  EXPECT_NE(reserve.take(0), nullptr);
}

TEST(RetryAfter, IsTheTimeInWhichTheQueueEmpties) {
  // 64 wait, 8 at a time, 1.7 s each.
  EXPECT_EQ(retry_after_seconds({.waiting = 64, .sequences = 8, .service_seconds = 1.7}), 14U);
  EXPECT_EQ(retry_after_seconds({.waiting = 1, .sequences = 8, .service_seconds = 0.2}), 1U);
  EXPECT_EQ(retry_after_seconds({.waiting = 500, .sequences = 1, .service_seconds = 9}), 60U);
  // Before anything has been measured: as if all had the wish of the one refused, one at a time.
  EXPECT_EQ(retry_after_seconds(
                {.waiting = 10, .sequences = 8, .tokens_wanted = 100, .token_seconds = 0.006}),
            6U);
  EXPECT_EQ(retry_after_seconds({.waiting = 10, .sequences = 8}), 1U);
}

TEST(HostCheck, KnowsLoopbackTheBoundAddressAndTheList) {
  const HostCheck check("127.0.0.1", {"spel.internal"});
  for (const char* host : {"localhost", "LOCALHOST:8080", "127.0.0.1", "127.0.0.1:1", "[::1]",
                           "[::1]:8080", "localhost.", "spel.internal:8080"}) {
    EXPECT_TRUE(check.allows(host)) << host;
  }
  for (const char* host :
       {"evil.example", "localhost.evil.example", "192.168.1.5", "127.0.0.1.nip", "", "[::2]"}) {
    EXPECT_FALSE(check.allows(host)) << host;
  }
  const HostCheck everywhere("0.0.0.0", {});
  EXPECT_TRUE(everywhere.allows("192.168.1.5:8080"));
  EXPECT_TRUE(everywhere.allows("[fe80::1]"));
  EXPECT_FALSE(everywhere.allows("evil.example"));
}

TEST(KeySet, KeysAreComparedWholeAndBlanksAroundThemDoNotCount) {
  const KeySet keys("key-number-one\n\t key-number-two \r\n", "keys");
  EXPECT_TRUE(keys.allows("Bearer key-number-two"));
  EXPECT_TRUE(keys.allows("bearer key-number-one"));
  for (const char* field : {"", "Bearer", "Bearer ", "Bearer key-number", "Bearer key-number-one2",
                            "Basic key-number-one", "key-number-one"}) {
    EXPECT_FALSE(keys.allows(field)) << field;
  }
}

TEST(KeySet, ErrorsNameTheFileAndTheLineAndNeverTheKey) {
  const auto complaint = [](const std::string& text) {
    try {
      (void)KeySet(text, "/etc/spel/keys");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  for (const std::string& bad : {"# one\n\nsecret\n"s, "good-key-1\n\nsecret word\n"s,
                                 "a-good-key\n \n\xEF\xBB\xBFsecret-key\n"s}) {
    EXPECT_NE(complaint(bad).find("/etc/spel/keys, line 3: "), std::string::npos) << complaint(bad);
    EXPECT_EQ(complaint(bad).find("secret"), std::string::npos) << complaint(bad);
  }
  EXPECT_NE(complaint(" \n# none\n").find("/etc/spel/keys has no key"), std::string::npos);
}

/// A key file of its own, a clock that stands still, and what was reported.
class KeyFile : public ::testing::Test {
 protected:
  KeyFile() { write("first-key-123\n"); }

  [[nodiscard]] std::string path() const { return folder_.file("keys"); }
  /// Written beside it and renamed, as a careful editor does.
  void write(const std::string& text, mode_t mode = 0600) const {
    const std::string fresh = folder_.file("fresh");
    std::ofstream(fresh) << text;
    ASSERT_EQ(::chmod(fresh.c_str(), mode), 0);
    std::filesystem::rename(fresh, path());
  }
  [[nodiscard]] std::unique_ptr<ApiKeys> open() {
    return std::make_unique<ApiKeys>(
        path(),
        [this](LogLevel level, std::string_view message) {
          reports_.emplace_back(level, std::string(message));
        },
        [this] { return now_; });
  }

  spel::testing::ScratchFolder folder_;
  std::chrono::steady_clock::time_point now_{std::chrono::hours(1)};
  std::vector<std::pair<LogLevel, std::string>> reports_;
};

TEST_F(KeyFile, WithoutAFileEverythingIsAllowed) {
  ApiKeys keys({}, {});
  EXPECT_FALSE(keys.required());
  EXPECT_TRUE(keys.allows(""));
}

TEST_F(KeyFile, AChangedFileIsReadAgainOnceASecondHasPassed) {
  const auto keys = open();
  write("second-key-456\n");
  EXPECT_TRUE(keys->allows("Bearer first-key-123"));
  EXPECT_FALSE(keys->allows("Bearer second-key-456"));
  now_ += ApiKeys::kRecheck;
  EXPECT_TRUE(keys->allows("Bearer second-key-456"));
  EXPECT_FALSE(keys->allows("Bearer first-key-123"));
  ASSERT_EQ(reports_.size(), 1U);
  EXPECT_EQ(reports_[0].first, LogLevel::kInfo);
}

TEST_F(KeyFile, ANewFileThatIsNoGoodKeepsTheOldKeysAndIsReportedOnce) {
  const auto keys = open();
  const std::vector<std::function<void()>> spoil = {
      [&] { write("short\n"); }, [&] { write("other-key-789\n", 0602); },
      [&] { std::filesystem::remove(path()); },
      [&] { ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0); }};
  for (const auto& change : spoil) {
    change();
    reports_.clear();
    for (int i = 0; i < 3; ++i) {
      now_ += ApiKeys::kRecheck;
      EXPECT_TRUE(keys->allows("Bearer first-key-123"));
      EXPECT_FALSE(keys->allows("Bearer other-key-789"));
    }
    ASSERT_EQ(reports_.size(), 1U);
    EXPECT_EQ(reports_[0].first, LogLevel::kError);
    EXPECT_NE(reports_[0].second.find(path()), std::string::npos) << reports_[0].second;
    EXPECT_NE(reports_[0].second.find("stay in force"), std::string::npos) << reports_[0].second;
  }
  write("fourth-key-000\n");
  now_ += ApiKeys::kRecheck;
  EXPECT_TRUE(keys->allows("Bearer fourth-key-000"));
}

TEST_F(KeyFile, OneThatOthersMayWriteIsRefusedAndOneTheyMayReadIsWarnedAbout) {
  (void)open();
  EXPECT_TRUE(reports_.empty());
  write("first-key-123\n", 0644);
  (void)open();
  ASSERT_EQ(reports_.size(), 1U);
  EXPECT_EQ(reports_[0].first, LogLevel::kWarning);
  EXPECT_NE(reports_[0].second.find("chmod 600"), std::string::npos) << reports_[0].second;
  write("first-key-123\n", 0666);
  EXPECT_THROW((void)open(), Error);
}

/// The backend of a tiny model file, or the reason why there is none.
class ModelFile : public ::testing::Test {
 protected:
  [[nodiscard]] config::ServerConfig config() const {
    config::ServerConfig config;
    config.model = folder_.path() / "m.spelw";
    config.sequences = 1;
    config.target_threads = 1;
    return config;
  }
  void write(const engine::ModelConfig& model) const {
    engine::write_model(*engine::random_source(model, 1), std::nullopt, config().model,
                        engine::ModelForm::kSpelw);
  }

  engine::testing::ScratchFolder folder_;
};

TEST_F(ModelFile, OneWhoseVocabularyIsNotTheTokenizersIsNotServed) {
  for (const std::uint32_t vocab : {64U, 1000U}) {
    engine::ModelConfig model = engine::testing::tiny_config();
    model.vocab_size = vocab;
    write(model);
    const std::string message = engine::testing::error_of([&] { (void)load_backend(config()); });
    EXPECT_NE(message.find("vocab_size is " + std::to_string(vocab)), std::string::npos) << message;
    EXPECT_NE(message.find("128 tokens"), std::string::npos) << message;
    EXPECT_NE(message.find(config().model), std::string::npos) << message;
  }
}

TEST_F(ModelFile, TheWeightsTypeTheServerStatesIsTheOneInMemory) {
  const engine::ModelConfig model = engine::testing::tiny_ascii_config();
  write(model);
  config::ServerConfig settings = config();
  EXPECT_EQ(load_backend(settings)->weights_dtype, "bf16");
  settings.weights_dtype = "f32";
  EXPECT_EQ(load_backend(settings)->weights_dtype, "f32");
  // The lowest bit of the head's first value, which bf16 does not have.
  const std::size_t head_values = std::size_t{model.vocab_size} * model.d_model;
  std::vector<std::byte> bytes = engine::testing::read_bytes(settings.model);
  bytes[64 + sizeof(float) * (model.target_parameters() - head_values)] ^= std::byte{1};
  engine::testing::write_bytes(settings.model, bytes);
  EXPECT_EQ(load_backend(config())->weights_dtype, "bf16 and f32");
  EXPECT_EQ(load_backend(settings)->weights_dtype, "f32");
}

TEST(Router, MatchesWholeSegments) {
  Router router;
  const SyncHandler handler = [](const Request&) { return json_response("{}"); };
  router.add(Verb::get, "/a", {}, handler);
  router.add(Verb::post, "/a", {}, handler);
  router.add(Verb::get, "/a/{id}", {}, handler);
  router.add(Verb::get, "/a/{id}/b/{other}", {}, handler);
  std::vector<std::string> parameters;
  EXPECT_EQ(router.find("/a", parameters)->allow, "GET, HEAD, POST");
  ASSERT_NE(router.find("/a/x", parameters), nullptr);
  EXPECT_EQ(parameters, std::vector<std::string>({"x"}));
  ASSERT_NE(router.find("/a/x/b/y", parameters), nullptr);
  EXPECT_EQ(parameters, std::vector<std::string>({"x", "y"}));
  for (const char* path : {"/", "/b", "/a/", "/a/x/b", "/a/x/c/y", "/a/x/b/y/z", "*", ""}) {
    EXPECT_EQ(router.find(path, parameters), nullptr) << path;
  }
}

TEST(Router, TheLastParameterMayTakeTheRestOfThePath) {
  Router router;
  const SyncHandler handler = [](const Request&) { return json_response("{}"); };
  router.add(Verb::get, "/m", {}, handler);
  router.add(Verb::get, "/m/{id}", {.takes_rest = true}, handler);
  std::vector<std::string> parameters;
  for (const std::string id : {"a", "a/b", "a/b/c", "a%2Fb"}) {
    ASSERT_NE(router.find("/m/" + id, parameters), nullptr) << id;
    EXPECT_EQ(parameters, std::vector<std::string>({id}));
  }
  for (const char* path : {"/m/", "/n/a", "/"}) {
    EXPECT_EQ(router.find(path, parameters), nullptr) << path;
  }
}

TEST(Recall, PutsTheBestNoteNearestToThePromptAndLeavesOutWhatDoesNotFit) {
  const auto note = [](memory::NoteId id, std::vector<engine::TokenId> tokens) {
    memory::Note result;
    result.id = id;
    result.tokens = std::move(tokens);
    return result;
  };
  const std::vector notes{note(1, {1, 1}), note(2, {2, 2, 2, 2}), note(3, {3})};
  const std::vector<engine::TokenId> prompt{9, 9};
  proto::ReplayReport report;
  EXPECT_EQ(recall(notes, prompt, {.max_tokens = 4, .max_seq = 10}, report),
            (std::vector<engine::TokenId>{3, 1, 1, 9, 9}));
  EXPECT_EQ(report.tokens, 3U);
  ASSERT_EQ(report.notes.size(), 2U);
  EXPECT_EQ(report.notes[0].id, 1);
  EXPECT_EQ(report.notes[1].id, 3);
  proto::ReplayReport none;
  EXPECT_EQ(recall(notes, prompt, {.max_tokens = 9, .max_seq = 10}, none), prompt);
  EXPECT_TRUE(none.notes.empty());
}

TEST(ChoiceSeeds, TheFirstIsTheClientsAndAllDiffer) {
  EXPECT_EQ(choice_seed(42, 0, 0), 42U);
  // What the second choice of a lone prompt has always had.
  EXPECT_EQ(choice_seed(7, 0, 1), 0x63cbe1e459320dd7ULL);
  std::set<std::uint64_t> seen;
  for (std::size_t prompt = 0; prompt < 64; ++prompt) {
    for (std::size_t i = 0; i < 8; ++i) {
      seen.insert(choice_seed(42, prompt, i));
      seen.insert(choice_seed(43, prompt, i));
    }
  }
  EXPECT_EQ(seen.size(), 2U * 64U * 8U);
}

TEST(NormalizedText, QuotesDashesAndAccentsBecomeAscii) {
  const std::pair<std::string, std::string> cases[] = {
      {"\u2018Don\u2019t\u2019, \u201Cshe\u201D said \u2014 \u2013 \u2026",
       "'Don't', \"she\" said -- - ..."},
      {"caf\u00E9 na\u00EFve \u00C5ngstr\u00F6m Stra\u00DFe \u0141\u00F3d\u017A \u0153uvre",
       "cafe naive Angstrom Strasse Lodz oeuvre"},
      {"cafe\u0301", "cafe"},
      {"a\u00A0b\u2009c\u200Bd\uFEFF", "a b cd"},
      {"\uFB01ne", "fine"}};
  for (const auto& [from, to] : cases) {
    std::string text = from;
    EXPECT_GT(normalize_text(text), 0U);
    EXPECT_EQ(text, to);
    EXPECT_EQ(normalize_text(text), 0U) << "twice is once";
  }
}

TEST(NormalizedText, WhatHasNoLikenessStays) {
  for (const std::string text :
       {"plain ASCII\n\t~", "\u4F60\u597D", "\U0001F642", "\u0416", "\xFF\xC3", "\xE2\x80"}) {
    std::string same = text;
    EXPECT_EQ(normalize_text(same), 0U) << text;
    EXPECT_EQ(same, text);
  }
  std::string some = "\u2019\u4F60\u2019";
  EXPECT_EQ(normalize_text(some), 2U);
  EXPECT_EQ(some, "'\u4F60'");
}

TEST(NormalizedText, EveryReplacementIsAscii) {
  std::size_t known = 0;
  for (char32_t character = 0; character < 0x110000; ++character) {
    if (const auto ascii = ascii_for(character)) {
      ++known;
      EXPECT_GE(character, 0x80U);
      EXPECT_TRUE(std::all_of(ascii->begin(), ascii->end(),
                              [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
    }
  }
  EXPECT_GT(known, 300U);
}

/// The value of a field of `response`, "" without one.
std::string field_of(const Response& response, const std::string& wanted) {
  for (const auto& [name, value] : response.headers()) {
    if (name == wanted) {
      return value;
    }
  }
  return {};
}

TEST(Cors, APreflightAllowsTheFieldsThatItAsksFor) {
  const Cors cors({"https://app.example"});
  Request request;
  request.method = Verb::options;
  request.origin = "https://app.example";
  request.requested_method = "POST";
  const auto allowed = [&](const std::string& asked) {
    request.requested_fields = asked;
    return field_of(cors.preflight(request, "POST").value(), "Access-Control-Allow-Headers");
  };
  const std::string openai =
      "authorization,content-type,x-stainless-arch,x-stainless-lang,x-stainless-os,"
      "x-stainless-package-version,x-stainless-retry-count,x-stainless-runtime,"
      "x-stainless-runtime-version,x-stainless-timeout";
  EXPECT_EQ(allowed(openai), openai);
  EXPECT_EQ(allowed("x-a, x-b"), "x-a, x-b");
  for (const std::string odd : {"", "x-a\"", "x-a:b", "x\xC3\xA9", "<script>"}) {
    EXPECT_EQ(allowed(odd), "Authorization, Content-Type, X-Request-Id") << odd;
  }
}

TEST(Cors, AStarAllowsEveryPageAndNoCredentials) {
  const Cors cors({"*"});
  Request request;
  request.host = "localhost:8080";
  request.method = Verb::post;
  for (const char* origin : {"https://any.example", "null", "chrome-extension://abc"}) {
    request.origin = origin;
    EXPECT_TRUE(cors.allows(request)) << origin;
    Response response;
    cors.decorate(request, response);
    EXPECT_EQ(field_of(response, "Access-Control-Allow-Origin"), "*");
    EXPECT_EQ(field_of(response, "Access-Control-Allow-Credentials"), "");
  }
}

TEST(HostCheck, AStarAcceptsEveryName) {
  const HostCheck check("127.0.0.1", {"*"});
  EXPECT_TRUE(check.allows("anything.example:8080"));
}

TEST(Cors, ForeignPagesMayReadNothingAndChangeNothing) {
  const Cors cors({"https://app.example"});
  Request request;
  request.host = "localhost:8080";
  request.method = Verb::post;
  EXPECT_TRUE(cors.allows(request)) << "no Origin: not a page";
  request.origin = "http://localhost:8080";
  EXPECT_TRUE(cors.allows(request)) << "the server's own page";
  request.origin = "https://app.example";
  EXPECT_TRUE(cors.allows(request));
  for (const char* origin :
       {"https://evil.example", "null", "https://app.example.evil", "http://app.example"}) {
    request.origin = origin;
    EXPECT_FALSE(cors.allows(request)) << origin;
    Response response;
    cors.decorate(request, response);
    for (const auto& [name, value] : response.headers()) {
      EXPECT_EQ(name, "Vary");
    }
  }
}

}  // namespace
}  // namespace spel::server

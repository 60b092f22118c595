// Byte-level byte-pair encoding gives what Hugging Face's library gives.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "config/base/error.h"
#include "engine/text/added_tokens.h"
#include "engine/text/byte_pairs.h"
#include "engine/text/split_pattern.h"
#include "engine/text/tokenizer_file.h"

namespace spel::engine {
namespace {

using nlohmann::json;

const std::filesystem::path kSmall = SPEL_OWN_TOKENIZER;

std::string read_file(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), &::pclose);
  std::string out;
  std::array<char, 1 << 16> bytes{};
  for (std::size_t got = 0; (got = std::fread(bytes.data(), 1, bytes.size(), pipe.get())) > 0;) {
    out.append(bytes.data(), got);
  }
  return out;
}

std::unique_ptr<Tokenizer> small_tokenizer() {
  return read_tokenizer_json(read_file(kSmall / "tokenizer.json"), "tokenizer.json", {});
}

std::string decoded(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::string text;
  for (const TokenId id : ids) {
    text += tokenizer.bytes(id);
  }
  return text;
}

/// How many of a file's lines it agrees with.
std::size_t check_vectors(const Tokenizer& tokenizer, const std::filesystem::path& path) {
  std::ifstream lines(path);
  std::size_t agreed = 0;
  for (std::string line; std::getline(lines, line);) {
    const json vector = json::parse(line);
    const auto text = vector["text"].get<std::string>();
    const auto ids = vector["ids"].get<std::vector<TokenId>>();
    const auto found = tokenizer.encode(text);
    EXPECT_EQ(found, ids) << text;
    EXPECT_EQ(decoded(tokenizer, ids), vector["decoded"].get<std::string>());
    agreed += found == ids ? 1 : 0;
  }
  return agreed;
}

TEST(Bpe, EncodesAndDecodesAsTheLibraryThatMadeTheFileDoes) {
  EXPECT_EQ(check_vectors(*small_tokenizer(), kSmall / "vectors.jsonl"), 21U);
}

TEST(Bpe, EncodesTheStringsOfARealVocabularyAsItsLibraryDoes) {
  const char* named = std::getenv("SPEL_HYBRIDS");  // NOLINT(concurrency-mt-unsafe)
  const std::filesystem::path root =
      std::filesystem::path(named != nullptr ? named : SPEL_HYBRIDS_DEFAULT) / "tokenizer";
  const std::filesystem::path packed = root / "qwen3.5.tokenizer.json.xz";
  if (!std::filesystem::exists(packed)) {
    GTEST_SKIP() << "no real vocabulary in " << root.string() << " (SPEL_HYBRIDS names a place)";
  }
  const std::string text = output_of("xz -dc '" + packed.string() + "'");
  if (text.empty()) {
    GTEST_SKIP() << "no xz to unpack " << packed.string();
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto tokenizer = read_tokenizer_json(text, "tokenizer.json", {});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::cout << "read in " << seconds.count() << " s\n";
  EXPECT_EQ(check_vectors(*tokenizer, root / "qwen3.5.vectors.jsonl"), 324U);
  EXPECT_EQ(tokenizer->token_of("<|im_end|>"), TokenId{248046});
  EXPECT_TRUE(tokenizer->is_special(248046));
  EXPECT_FALSE(tokenizer->is_special(*tokenizer->token_of("<think>")));
}

TEST(Bpe, EncodesTheStringsOfAnotherRealVocabularyAsItsLibraryDoes) {
  const char* named = std::getenv("SPEL_QWEN3_TOKENIZER");  // NOLINT(concurrency-mt-unsafe)
  if (named == nullptr) {
    GTEST_SKIP() << "SPEL_QWEN3_TOKENIZER names no tokenizer.json of Qwen3";
  }
  const char* root = std::getenv("SPEL_HYBRIDS");  // NOLINT(concurrency-mt-unsafe)
  const std::filesystem::path vectors =
      std::filesystem::path(root != nullptr ? root : SPEL_HYBRIDS_DEFAULT) / "tokenizer" /
      "qwen3.vectors.jsonl";
  if (!std::filesystem::exists(vectors)) {
    GTEST_SKIP() << "no " << vectors.string() << " (SPEL_HYBRIDS names a place)";
  }
  const auto tokenizer = read_tokenizer_json(read_file(named), "tokenizer.json", {});
  EXPECT_EQ(check_vectors(*tokenizer, vectors), 324U);
}

TEST(Bpe, AddedTokensAreTextWhereTheyAreNotLookedFor) {
  const auto tokenizer = small_tokenizer();
  const std::string text = "a<|im_end|>b<think>";
  const auto end = *tokenizer->token_of("<|im_end|>");
  const auto think = *tokenizer->token_of("<think>");
  const auto count = [](const std::vector<TokenId>& ids, TokenId id) {
    return std::ranges::count(ids, id);
  };
  EXPECT_EQ(count(tokenizer->encode(text), end), 1);
  const auto plain = tokenizer->encode(text, {.parse_added = false});
  EXPECT_EQ(count(plain, end) + count(plain, think), 0);
  EXPECT_EQ(decoded(*tokenizer, plain), text);
}

TEST(Bpe, NoAddedTokenHasAByteOfAForeignRange) {
  const auto tokenizer = small_tokenizer();
  const std::string text = "<|im_end|><|im_end|><|im_end|>";
  const auto end = *tokenizer->token_of("<|im_end|>");
  const std::size_t size = text.size() / 3;
  for (std::size_t begin = 0; begin < text.size(); ++begin) {
    for (std::size_t stop = begin + 1; stop <= text.size(); ++stop) {
      const std::array ranges = {ByteRange{begin, stop}};
      const auto ids = tokenizer->encode(text, {.foreign = ranges});
      std::ptrdiff_t expected = 0;
      for (std::size_t token = 0; token < 3; ++token) {
        expected += stop <= token * size || begin >= (token + 1) * size ? 1 : 0;
      }
      EXPECT_EQ(std::ranges::count(ids, end), expected) << begin << " to " << stop;
      EXPECT_EQ(decoded(*tokenizer, ids), text);
    }
  }
}

TEST(Bpe, AWordOfAMebibyteIsEncodedInLittleMoreThanItsLength) {
  const auto tokenizer = small_tokenizer();
  std::string word;
  while (word.size() < 1U << 20) {
    word += "thetheanderstheserver";
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto ids = tokenizer->encode(word);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(decoded(*tokenizer, ids), word);
  EXPECT_LT(ids.size(), word.size());
  // A quadratic one takes hours.
  EXPECT_LT(seconds.count(), 30.0);
}

TEST(Bpe, MarksOutOfOrderAreComposedInLittleMoreThanTheirNumber) {
  const auto tokenizer = small_tokenizer();
  constexpr std::size_t kMarks = 200'000;
  std::string given = "a";
  std::string ordered = "\u1ea1";  // a with the first of the dots below it.
  for (std::size_t i = 0; i < kMarks; ++i) {
    given += "\u0301";
  }
  for (std::size_t i = 0; i < kMarks; ++i) {
    given += "\u0323";
    ordered += i > 0 ? "\u0323" : "";
  }
  for (std::size_t i = 0; i < kMarks; ++i) {
    ordered += "\u0301";
  }
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(decoded(*tokenizer, tokenizer->encode(given)), ordered);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  // A quadratic one takes many minutes.
  EXPECT_LT(seconds.count(), 30.0);
}

TEST(Bpe, TextThatIsNotUtf8HasNoTokens) {
  try {
    (void)small_tokenizer()->encode("ab\xff");
    FAIL() << "it was encoded";
  } catch (const NoTokenError& error) {
    EXPECT_EQ(error.offset(), 2U);
  }
}

TEST(Bpe, AnIdThatIsNoTokenHasNoBytes) {
  const auto tokenizer = small_tokenizer();
  EXPECT_TRUE(tokenizer->bytes(-1).empty());
  EXPECT_TRUE(tokenizer->bytes(static_cast<TokenId>(tokenizer->vocab_size())).empty());
  EXPECT_FALSE(tokenizer->has_token(-1));
  EXPECT_EQ(tokenizer->token_of("no such token"), std::nullopt);
}

/// The small tokenizer after `edit`.
template <typename Edit>
std::unique_ptr<Tokenizer> edited(const Edit& edit) {
  json file = json::parse(read_file(kSmall / "tokenizer.json"));
  edit(file);
  return read_tokenizer_json(file.dump(), "tokenizer.json", {});
}

TEST(Bpe, AWholeWordNeverBecomesAnAddedToken) {
  const auto tokenizer = edited([](json& f) {
    f["model"]["ignore_merges"] = true;
    f["added_tokens"][3]["content"] = "think";
  });
  const std::string text = "think";
  const TokenId think = *tokenizer->token_of(text);
  EXPECT_EQ(tokenizer->encode(text), std::vector{think});
  const std::array whole = {ByteRange{0, text.size()}};
  for (const auto& ids : {tokenizer->encode(text, {.parse_added = false}),
                          tokenizer->encode(text, {.foreign = whole})}) {
    EXPECT_EQ(std::ranges::count(ids, think), 0);
    EXPECT_EQ(decoded(*tokenizer, ids), text);
  }
}

TEST(AddedTokens, TheLongestOfThoseThatBeginTogetherIsFound) {
  AddedTokens tokens;
  TokenId next = 0;
  for (const char* content : {"<a>", "<a><b>", "<", "<a><b", "\xc3\xa9", "z"}) {
    tokens.add(content, next++);
  }
  const auto found = [&](std::string_view text, std::span<const ByteRange> foreign = {}) {
    const auto match = tokens.find(text, 0, foreign);
    return match ? std::array{static_cast<int>(match->begin), static_cast<int>(match->end),
                              static_cast<int>(match->token)}
                 : std::array{-1, -1, -1};
  };
  EXPECT_EQ(found("x<a><b>"), (std::array{1, 7, 1}));
  EXPECT_EQ(found("x<a><b"), (std::array{1, 6, 3}));
  EXPECT_EQ(found("x<a><"), (std::array{1, 4, 0}));
  EXPECT_EQ(found("<ab"), (std::array{0, 1, 2}));
  EXPECT_EQ(found("a\xc3\xa9"), (std::array{1, 3, 4}));
  EXPECT_EQ(found("nothing"), (std::array{-1, -1, -1}));
  const std::array last = {ByteRange{6, 7}};
  EXPECT_EQ(found("x<a><b>", last), (std::array{1, 6, 3}));
}

TEST(AddedTokens, ManyCostATextNoMoreThanFew) {
  AddedTokens tokens;
  constexpr int kTokens = 20'000;
  for (int i = 0; i < kTokens; ++i) {
    tokens.add("<" + std::to_string(i) + ">", i);
  }
  const std::string text(std::size_t{1} << 20, '<');
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(tokens.find(text, 0, {}));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  // One after another takes a minute.
  EXPECT_LT(seconds.count(), 10.0);
}

TEST(SplitPattern, BlanksAreThoseOfUnicode) {
  const auto pieces = [](const std::string& pattern, std::string_view text) {
    std::vector<std::string> found;
    SplitPattern(pattern, "here").split(text, [&](std::string_view piece) {
      found.emplace_back(piece);
    });
    return found;
  };
  using Pieces = std::vector<std::string>;
  // U+180E, the Mongolian vowel separator, has not been one since Unicode 6.3.
  const std::string text = "a\u180e\u2003\u0085b";
  const Pieces expected = {"a\u180e", "\u2003\u0085", "b"};
  EXPECT_EQ(pieces(R"(\s+)", text), expected);
  EXPECT_EQ(pieces(R"(\S+)", text), expected);
  EXPECT_EQ(pieces(R"([^\s]+)", text), expected);
  EXPECT_EQ(pieces(R"([\S]+)", text), expected);
  EXPECT_EQ(pieces(R"(\\s)", "a\\s b"), (Pieces{"a", "\\s", " b"}));
}

TEST(Bpe, APatternThatIsALiteralMatchesItself) {
  // Merges stop at it: "the" is one token, and none where its middle is a piece of its own.
  const auto at = [](const std::string& literal) {
    return edited([&](json& f) {
             f["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {{"String", literal}};
           })
        ->encode("the")
        .size();
  };
  EXPECT_EQ(at("h"), 3U);
  EXPECT_EQ(at("."), 1U);
  EXPECT_EQ(at("\\w\\E"), 1U);
}

/// What is said of the small file after `edit`.
template <typename Edit>
std::string refusal(const Edit& edit) {
  json file = json::parse(read_file(kSmall / "tokenizer.json"));
  edit(file);
  try {
    (void)read_tokenizer_json(file.dump(), "tokenizer.json", {});
  } catch (const Error& error) {
    return error.what();
  }
  return "read";
}

TEST(TokenizerFile, WhatIsNotImplementedIsRefusedByName) {
  const auto says = [](const std::string& text, const char* word) {
    EXPECT_NE(text.find(word), std::string::npos) << word << " in: " << text;
  };
  says(refusal([](json& f) { f["model"]["type"] = "Unigram"; }), "model.type is \"Unigram\"");
  says(refusal([](json& f) { f["model"]["byte_fallback"] = true; }), "byte_fallback");
  says(refusal([](json& f) { f["model"]["end_of_word_suffix"] = "</w>"; }), "end_of_word_suffix");
  says(refusal([](json& f) { f["normalizer"] = {{"type", "NFKC"}}; }),
       "normalizer.type is \"NFKC\"");
  says(refusal([](json& f) { f["pre_tokenizer"] = {{"type", "Whitespace"}}; }), "Whitespace");
  says(refusal([](json& f) { f["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Removed"; }),
       "Isolated");
  says(refusal([](json& f) { f["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "("; }),
       "cannot be compiled");
  says(refusal([](json& f) { f["pre_tokenizer"]["pretokenizers"][1]["add_prefix_space"] = true; }),
       "add_prefix_space");
  says(refusal([](json& f) { f["decoder"] = {{"type", "WordPiece"}}; }), "WordPiece");
  says(refusal([](json& f) { f["post_processor"] = {{"type", "BertProcessing"}}; }),
       "BertProcessing");
  says(refusal([](json& f) { f["added_tokens"][0]["lstrip"] = true; }), "lstrip");
  says(refusal([](json& f) { f["added_tokens"][0]["normalized"] = true; }), "normalising");
}

TEST(TokenizerFile, WhatIsBrokenIsRefusedWithItsPlace) {
  const auto says = [](const std::string& text, const char* word) {
    EXPECT_NE(text.find(word), std::string::npos) << word << " in: " << text;
  };
  says(refusal([](json& f) { f.erase("model"); }), "model is missing");
  says(refusal([](json& f) { f["model"].erase("vocab"); }), "model.vocab is missing");
  says(refusal([](json& f) { f["model"]["vocab"]["!"] = -1; }), "model.vocab");
  says(refusal([](json& f) { f["model"]["vocab"]["!"] = 1'000'000'000; }), "model.vocab");
  says(refusal([](json& f) { f["model"]["vocab"]["\""] = f["model"]["vocab"]["!"]; }),
       "is given twice");
  says(refusal([](json& f) { f["model"]["vocab"].erase("!"); }), "no token for the byte 33");
  says(refusal([](json& f) { f["model"]["vocab"]["a b"] = 700; }), "letters of bytes");
  says(refusal([](json& f) { f["model"]["merges"][3] = "nowhere found"; }), "merges[3]");
  says(refusal([](json& f) { f["model"]["merges"][3] = 7; }), "merges");
  says(refusal([](json& f) { f["added_tokens"][0]["content"] = ""; }), "content");
  says(refusal([](json& f) { f["added_tokens"][0]["id"] = 3; }), "is given twice");
  says(refusal([](json& f) { f["added_tokens"][0]["id"] = std::int64_t{1} << 32; }), ".id");
  says(refusal([](json& f) { f["model"]["vocab"] = json::array(); }), "model.vocab");
  says(refusal([](json& f) { f["model"]["merges"] = "a b"; }), "model.merges");
  says(refusal([](json& f) { f["model"]["ignore_merges"] = "yes"; }), "ignore_merges");
  says(refusal([](json& f) { f["added_tokens"] = json::object(); }), "added_tokens");
}

TEST(TokenizerFile, OneThatEndsEarlyIsRefused) {
  const std::string whole = read_file(kSmall / "tokenizer.json");
  for (std::size_t size = 0; size + 1 < whole.size(); size += 97) {
    EXPECT_THROW((void)read_tokenizer_json(whole.substr(0, size), "tokenizer.json", {}), Error);
  }
}

TEST(TokenizerFile, OneThatIsTooLongIsRefusedUnread) {
  const std::string blanks(kTokenizerJsonBytesMax + 1, ' ');
  EXPECT_THROW((void)read_tokenizer_json(blanks, "tokenizer.json", {}), Error);
}

TEST(TokenizerFile, APatternThatBacktracksWithoutEndIsGivenUp) {
  json file = json::parse(read_file(kSmall / "tokenizer.json"));
  file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "(a+)+$";
  const auto tokenizer = read_tokenizer_json(file.dump(), "tokenizer.json", {});
  EXPECT_THROW((void)tokenizer->encode(std::string(64, 'a') + "b"), Error);
}

TEST(TokenizerFile, TheTokensThatBeginAndEndATextAreTheConfigurations) {
  const auto config = read_tokenizer_config(
      R"({"eos_token": {"content": "<|im_end|>", "lstrip": false}, "bos_token": "<|im_start|>",
          "add_bos_token": true, "chat_template": [{"name": "tool_use", "template": "x"},
          {"name": "default", "template": "{{ y }}"}], "other": [1]})",
      "tokenizer_config.json");
  EXPECT_EQ(config.chat_template, "{{ y }}");
  const auto tokenizer =
      read_tokenizer_json(read_file(kSmall / "tokenizer.json"), "tokenizer.json", config);
  EXPECT_EQ(tokenizer->eos(), tokenizer->token_of("<|im_end|>"));
  EXPECT_EQ(tokenizer->bos(), tokenizer->token_of("<|im_start|>"));
  EXPECT_THROW((void)read_tokenizer_config(R"({"eos_token": 3})", "c"), Error);
  EXPECT_THROW(
      (void)read_tokenizer_json(
          read_file(kSmall / "tokenizer.json"), "t",
          {.bos_token = {}, .eos_token = "absent", .add_bos_token = false, .chat_template = {}}),
      Error);
}

}  // namespace
}  // namespace spel::engine

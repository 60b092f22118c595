#include "proto/text_assembler.h"

#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

namespace spel::proto {
namespace {

const std::string kReplacement = "\xEF\xBF\xBD";

struct Assembled {
  std::string text;
  std::size_t tokens = 0;
};

Assembled assemble(const std::vector<std::string>& tokens, std::size_t text_bytes) {
  TextAssembler assembler;
  Assembled result;
  const auto take = [&](const TextAssembler::Piece& piece) {
    EXPECT_TRUE(is_valid_utf8(piece.text));
    result.text += piece.text;
    result.tokens += piece.tokens;
  };
  for (const auto& token : tokens) {
    take(assembler.push(token, 0));
  }
  take(assembler.finish(text_bytes));
  return result;
}

// ggml-org/llama.cpp#4036
TEST(TextAssembler, HoldsACharacterUntilItIsComplete) {
  TextAssembler assembler;
  EXPECT_EQ(assembler.push("\xE9", 0).text, "");
  EXPECT_EQ(assembler.push("\x9C", 0).text, "");
  const auto piece = assembler.push("\x93", 0);
  EXPECT_EQ(piece.text, "\xE9\x9C\x93");
  EXPECT_EQ(piece.tokens, 3U);
  EXPECT_EQ(assembler.finish(3).text, "");
}

// ggml-org/llama.cpp#4036
TEST(TextAssembler, AnEmojiMayBeSplitAnywhere) {
  const std::string emoji = "\xF0\x9F\x98\x80";
  for (std::size_t cut = 1; cut < emoji.size(); ++cut) {
    EXPECT_EQ(assemble({"a", emoji.substr(0, cut), emoji.substr(cut), "b"}, 6).text,
              "a" + emoji + "b");
  }
}

// ggml-org/llama.cpp#4036, ggml-org/llama.cpp#9195
TEST(TextAssembler, ALeftoverAtTheEndIsOneReplacementCharacter) {
  EXPECT_EQ(assemble({"a\xF0\x9F\x98"}, 4).text, "a" + kReplacement);
  EXPECT_EQ(assemble({"a", "\xE9", "\x9C"}, 3).text, "a" + kReplacement);
}

TEST(TextAssembler, InvalidBytesBecomeReplacementCharacters) {
  // A lone continuation, an overlong form, a surrogate, beyond U+10FFFF, a cut character.
  EXPECT_EQ(to_valid_utf8("\x80"), kReplacement);
  EXPECT_EQ(to_valid_utf8("\xC0\x80"), kReplacement + kReplacement);
  EXPECT_EQ(to_valid_utf8("\xED\xA0\x80"), kReplacement + kReplacement + kReplacement);
  EXPECT_EQ(to_valid_utf8("\xF4\x90\x80\x80"),
            kReplacement + kReplacement + kReplacement + kReplacement);
  EXPECT_EQ(to_valid_utf8("\xE9\x9C"
                          "A"),
            kReplacement + "A");
  EXPECT_EQ(to_valid_utf8("\xC3\xC3\xA9"), kReplacement + "\xC3\xA9");
  EXPECT_EQ(to_valid_utf8(""), "");
}

TEST(TextAssembler, EveryCodePointIsKept) {
  const auto encode = [](std::uint32_t code) {
    std::string text;
    const auto byte = [&](std::uint32_t value) { text += static_cast<char>(value); };
    if (code < 0x80) {
      byte(code);
    } else if (code < 0x800) {
      byte(0xC0U | code >> 6U);
      byte(0x80U | (code & 0x3FU));
    } else if (code < 0x10000) {
      byte(0xE0U | code >> 12U);
      byte(0x80U | (code >> 6U & 0x3FU));
      byte(0x80U | (code & 0x3FU));
    } else {
      byte(0xF0U | code >> 18U);
      byte(0x80U | (code >> 12U & 0x3FU));
      byte(0x80U | (code >> 6U & 0x3FU));
      byte(0x80U | (code & 0x3FU));
    }
    return text;
  };
  for (std::uint32_t code = 0; code <= 0x10FFFF; ++code) {
    const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    ASSERT_EQ(is_valid_utf8(encode(code)), !surrogate) << code;
  }
  EXPECT_FALSE(is_valid_utf8(encode(0x110000)));
}

// ggml-org/llama.cpp#9867, ggml-org/llama.cpp#11538, vllm-project/vllm#13087
TEST(TextAssembler, ShowsNothingThatIsHeldAndReleasesItLater) {
  TextAssembler assembler;
  EXPECT_EQ(assembler.push("x", 0).text, "x");
  // "?\n" as one token; "\n" may begin a stop string.
  EXPECT_EQ(assembler.push("?\n", 1).text, "?");
  EXPECT_EQ(assembler.push("y", 0).text, "\ny");
  EXPECT_EQ(assembler.push("E", 1).text, "");
  EXPECT_EQ(assembler.push("N", 2).text, "");
  const auto end = assembler.finish(4);
  EXPECT_EQ(end.text, "");
}

// huggingface/text-generation-inference#1039, #1724
TEST(TextAssembler, AStopStringInsideATokenCutsInsideIt) {
  TextAssembler assembler;
  EXPECT_EQ(assembler.push("1 2 ", 0).text, "1 2 ");
  EXPECT_EQ(assembler.push("aPar", 3).text, "a");
  EXPECT_EQ(assembler.push("is", 5).text, "");
  const auto end = assembler.finish(5);
  EXPECT_EQ(end.text, "");
  EXPECT_EQ(end.tokens, 0U);  // "aPar" went out with its "a"; "is" is not part of the text.
}

// vllm-project/vllm#47616
TEST(TextAssembler, TokensGoWithTheirFirstByte) {
  EXPECT_EQ(assemble({"ab", "cd", "ef"}, 6).tokens, 3U);
  TextAssembler assembler;
  EXPECT_EQ(assembler.push("ab", 2).tokens, 0U);
  EXPECT_EQ(assembler.push("cd", 2).tokens, 1U);
  EXPECT_EQ(assembler.push("ef", 4).tokens, 0U);
  EXPECT_EQ(assembler.finish(3).tokens, 1U);
}

TEST(TextAssembler, AnEndTokenWithoutBytesCountsUnlessTheTextWasCut) {
  EXPECT_EQ(assemble({"a", ""}, 1).tokens, 2U);
  TextAssembler assembler;
  EXPECT_EQ(assembler.push("a", 0).tokens + assembler.push("b", 1).tokens, 1U);
  EXPECT_EQ(assembler.push("", 1).tokens + assembler.finish(1).tokens, 0U);
  EXPECT_EQ(assemble({"", ""}, 0).tokens, 2U);
}

TEST(TextAssembler, OffsetsAreCodePointsOfTheShownText) {
  TextAssembler assembler;
  std::vector<std::size_t> offsets;
  for (const char* token : {"h\xC3\xA9", "\xE9", "\x9C\x93", "\xFF", "z"}) {
    static_cast<void>(assembler.push(token, 0));
    offsets.push_back(assembler.last_token_offset());
  }
  EXPECT_EQ(offsets, (std::vector<std::size_t>{0, 2, 2, 3, 4}));
}

TEST(TextAssembler, NonsenseFromTheCallerIsClamped) {
  TextAssembler assembler;
  EXPECT_EQ(assembler.push("ab", 99).text, "");
  EXPECT_EQ(assembler.push("c", 0).text, "abc");
  EXPECT_EQ(assembler.push("d", 3).text, "");
  EXPECT_EQ(assembler.finish(99).text, "d");
}

TEST(TextAssembler, JoinedPiecesAreTheWholeTextHoweverItIsCutAndHeld) {
  std::mt19937 random(20260917);
  const std::string pool[] = {"a",    "\n",   "\xC3\xA9", "\xE9\x9C\x93", "\xF0\x9F\x98\x80",
                              "\x80", "\xFF", "\xE9",     "\xF0\x9F",     "\xED\xA0",
                              "\xC0"};
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes;
    const auto parts = random() % 12;
    for (unsigned part = 0; part < parts; ++part) {
      bytes += pool[random() % std::size(pool)];
    }
    const std::size_t text_bytes = bytes.empty() ? 0 : random() % (bytes.size() + 1);
    TextAssembler assembler;
    std::string joined;
    std::size_t released = 0;
    std::size_t expected_tokens = 0;
    std::size_t pushed = 0;
    while (pushed < bytes.size()) {
      const std::size_t length = std::min<std::size_t>(random() % 4, bytes.size() - pushed);
      const bool counts = text_bytes == bytes.size() || pushed < text_bytes;
      expected_tokens += counts ? 1U : 0U;
      const std::string token = bytes.substr(pushed, length);
      pushed += length;
      // Whatever lies beyond the final cut was always held.
      const std::size_t held_min = pushed > text_bytes ? pushed - text_bytes : 0;
      const std::size_t held = std::min(pushed, held_min + random() % 3);
      const auto piece = assembler.push(token, held);
      ASSERT_TRUE(is_valid_utf8(piece.text));
      joined += piece.text;
      released += piece.tokens;
    }
    const auto piece = assembler.finish(text_bytes);
    joined += piece.text;
    released += piece.tokens;
    ASSERT_EQ(joined, to_valid_utf8(std::string_view(bytes).substr(0, text_bytes)));
    ASSERT_EQ(released, expected_tokens);
  }
}

}  // namespace
}  // namespace spel::proto

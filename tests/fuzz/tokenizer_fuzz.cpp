// Files of a tokenizer, and texts given to one: whatever the bytes, a file is read or refused with
// an Error, a text comes back from its tokens, and no added token has a byte of a foreign range.
// The first byte picks.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/base/error.h"
#include "config/base/utf8.h"
#include "config/json/value.h"
#include "engine/text/tokenizer_config.h"
#include "engine/text/tokenizer_file.h"
#include "tests/fuzz/require.h"

namespace {

using spel::ByteRange;
using spel::JsonValue;
using spel::engine::TokenId;
using spel::engine::Tokenizer;
using spel::fuzz::require;

/// The letters of all bytes as ids 0 … 255, one merge, two added tokens, no normalising.
std::unique_ptr<Tokenizer> byte_tokenizer() {
  JsonValue vocabulary = JsonValue::object();
  unsigned next = 256;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    const unsigned letter = printable ? byte : next++;
    std::string name;
    if (letter < 0x80) {
      name = static_cast<char>(letter);
    } else {
      name = {static_cast<char>(0xC0 | letter >> 6), static_cast<char>(0x80 | (letter & 0x3F))};
    }
    vocabulary.add_member(std::move(name), byte);
  }
  vocabulary.add_member("aa", 256);
  JsonValue model = JsonValue::object();
  model["type"] = "BPE";
  model["vocab"] = std::move(vocabulary);
  model["merges"] = std::vector<std::string>{"a a"};
  JsonValue file = JsonValue::object();
  file["model"] = std::move(model);
  file["pre_tokenizer"]["type"] = "ByteLevel";
  for (const auto& [id, content] : {std::pair(257, "<e>"), std::pair(258, "<e>a")}) {
    JsonValue added = JsonValue::object();
    added["id"] = id;
    added["content"] = content;
    file["added_tokens"].push_back(std::move(added));
  }
  return spel::engine::read_tokenizer_json(spel::dump_json(file), "tokenizer.json", {});
}

void check_text(std::string_view data) {
  static const std::unique_ptr<Tokenizer> tokenizer = byte_tokenizer();
  if (data.size() < 2) {
    return;
  }
  const std::string_view text = data.substr(2);
  const std::size_t begin = std::min<std::size_t>(static_cast<unsigned char>(data[0]), text.size());
  const std::size_t size = static_cast<unsigned char>(data[1]);
  const std::array foreign = {ByteRange{begin, std::min(begin + size, text.size())}};
  std::vector<TokenId> ids;
  try {
    ids = tokenizer->encode(text, {.foreign = foreign});
  } catch (const spel::engine::NoTokenError& error) {
    const auto character = spel::first_utf8_character(text.substr(error.offset()));
    require(character.kind != spel::Utf8Character::Kind::kValid, "the character is not valid");
    return;
  }
  std::size_t at = 0;
  for (const TokenId id : ids) {
    const std::string_view bytes = tokenizer->bytes(id);
    require(text.substr(at).starts_with(bytes), "the tokens are the text");
    require(id < 257 || at >= foreign[0].end || at + bytes.size() <= foreign[0].begin,
            "an added token is none of the foreign bytes");
    at += bytes.size();
  }
  require(at == text.size(), "the tokens are all of the text");
}

void check_file(std::string_view data) {
  const auto tokenizer = spel::engine::read_tokenizer_json(data, "tokenizer.json", {});
  try {
    for (const TokenId id : tokenizer->encode("a  Word's 12 e\u0301 <think>\n")) {
      require(tokenizer->has_token(id), "what it gives are tokens");
    }
  } catch (const spel::Error& error) {
    require(error.code() == spel::ErrorCode::kInvalidArgument, "a pattern may give up");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    switch (data[0] % 3) {
      case 0:
        check_file(rest);
        break;
      case 1:
        (void)spel::engine::read_tokenizer_config(rest, "tokenizer_config.json");
        break;
      default:
        check_text(rest);
        break;
    }
  } catch (const spel::Error&) {
    return 0;  // Refused with words.
  }
  return 0;
}

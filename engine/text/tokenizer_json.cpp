#include "engine/text/tokenizer_json.h"

namespace spel::engine {
namespace {

/// Not by a library, whose choice of escapes is its own: SHA256SUMS lists the bytes of this file.
std::string quoted(int code) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  if (code < 0x20 || code == 0x7F) {
    out += "\\u00";
    out += kHex[code / 16];
    out += kHex[code % 16];
  } else {
    out += code == '"' || code == '\\' ? "\\" : "";
    out += static_cast<char>(code);
  }
  return out + "\"";
}

}  // namespace

std::string ascii_tokenizer_json() {
  // A word for each character, found by cutting the text into characters. There is no unknown
  // token: what is not in the vocabulary is an error and not silently something else.
  std::string out = R"({
  "version": "1.0",
  "truncation": null,
  "padding": null,
  "added_tokens": [],
  "normalizer": null,
  "pre_tokenizer": {
    "type": "Split",
    "pattern": {"Regex": "[\\s\\S]"},
    "behavior": "Isolated",
    "invert": false
  },
  "post_processor": null,
  "decoder": {"type": "Fuse"},
  "model": {
    "type": "WordLevel",
    "unk_token": "",
    "vocab": {
)";
  constexpr int kCodes = 128;
  for (int code = 0; code < kCodes; ++code) {
    out +=
        "      " + quoted(code) + ": " + std::to_string(code) + (code + 1 < kCodes ? ",\n" : "\n");
  }
  out += "    }\n  }\n}\n";
  return out;
}

std::string ascii_tokenizer_config_json(std::size_t max_seq) {
  return R"({
  "tokenizer_class": "PreTrainedTokenizerFast",
  "model_max_length": )" +
         std::to_string(max_seq) + R"(,
  "clean_up_tokenization_spaces": false
}
)";
}

}  // namespace spel::engine

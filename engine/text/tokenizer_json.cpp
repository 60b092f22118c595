#include "engine/text/tokenizer_json.h"

#include "engine/files/json_reader.h"

namespace spel::engine {

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
    const char character = static_cast<char>(code);
    out += "      " + json_quoted({&character, 1}) + ": " + std::to_string(code) +
           (code + 1 < kCodes ? ",\n" : "\n");
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

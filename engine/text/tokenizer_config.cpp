#include "engine/text/tokenizer_config.h"

#include "config/base/error.h"
#include "config/json/file_values.h"

namespace spel::engine {
namespace {

/// "TEXT", or {"content": "TEXT", …}.
std::string token_text(const JsonValue& value, const std::string& where) {
  const JsonValue* content = value.is_object() ? value.find("content") : &value;
  if (content == nullptr) {
    refuse_value(value, where, "a string, or an object with \"content\"");
  }
  return text_of(*content, where);
}

/// "TEXT", or [{"name": "default", "template": "TEXT"}, …].
std::optional<std::string> template_text(const JsonValue& value, const std::string& where) {
  if (value.is_string()) {
    return value.text();
  }
  constexpr std::size_t kTemplatesMax = 64;
  for (const JsonValue& one : elements_of(value, where, kTemplatesMax)) {
    const JsonValue* name = one.find("name");
    const JsonValue* text = one.find("template");
    if (name == nullptr || text == nullptr) {
      refuse_value(one, where, "objects with \"name\" and \"template\"");
    }
    if (text_of(*name, where + ".name") == "default") {
      return text_of(*text, where + ".template");
    }
  }
  return std::nullopt;
}

}  // namespace

TokenizerConfig read_tokenizer_config(std::string_view text, const std::string& source) {
  const JsonObject json =
      read_file_object(text, source, {.bytes = kTokenizerConfigBytesMax, .members = 1U << 16});
  const auto read = [&](std::string_view key, const auto& take) {
    if (json.contains(key)) {
      const JsonValue value = file_member(json, key, source);
      if (!value.is_null()) {
        take(value, source + ": " + std::string(key));
      }
    }
  };
  using Value = const JsonValue&;
  using Where = const std::string&;
  TokenizerConfig config;
  read("bos_token", [&](Value v, Where where) { config.bos_token = token_text(v, where); });
  read("eos_token", [&](Value v, Where where) { config.eos_token = token_text(v, where); });
  read("add_bos_token",
       [&](Value v, Where where) { config.add_bos_token = true_or_false(v, where); });
  read("chat_template",
       [&](Value v, Where where) { config.chat_template = template_text(v, where); });
  return config;
}

}  // namespace spel::engine

#include "engine/arch/spel_hybrid_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "config/base/error.h"
#include "config/base/limits.h"
#include "config/json/file_values.h"
#include "engine/arch/directory_names.h"

namespace spel::engine {
namespace {

constexpr std::size_t kNameBytesMax = 256;

/// The value of a string key that only a few words are allowed for.
std::string choice(const JsonValue& value, const std::string& where,
                   std::initializer_list<std::string_view> allowed) {
  const std::string& found = text_of(value, where);
  if (std::find(allowed.begin(), allowed.end(), found) == allowed.end()) {
    std::string words;
    for (const std::string_view word : allowed) {
      words += (words.empty() ? "" : " or ") + shown_text(word);
    }
    refuse_value(value, where, words + " (this build implements no other)");
  }
  return found;
}

std::string name_of(const JsonValue& value, const std::string& where) {
  const std::string& found = text_of(value, where);
  if (found.empty() || found.size() > kNameBytesMax) {
    refuse_value(value, where, "1 to " + std::to_string(kNameBytesMax) + " bytes");
  }
  return found;
}

std::int32_t optional_token(const JsonValue& value, const std::string& where) {
  return value.is_null()
             ? -1
             : static_cast<std::int32_t>(whole_number(value, where, limits::kVocabMax - 1));
}

void read_draft(const JsonValue& value, const std::string& where, ModelConfig& config) {
  for (const JsonValue::Member& member : members_of(value, where)) {
    const std::string place = where + "." + member.key;
    if (member.key == "layers") {
      config.draft_layers.clear();
      for (const JsonValue& layer : elements_of(member.value, place, limits::kLayersMax)) {
        config.draft_layers.push_back(
            static_cast<std::uint32_t>(whole_number(layer, place, limits::kLayersMax)));
      }
    } else if (member.key == "attn") {
      choice(member.value, place, {"q8"});
    } else if (member.key == "mlp") {
      choice(member.value, place, {"ternary"});
    }
  }
}

struct Dimension {
  std::string_view key;
  std::uint32_t ModelConfig::* field;
  bool required;
};
constexpr std::array<Dimension, 9> kDimensions = {
    {{"d_model", &ModelConfig::d_model, true},
     {"n_layers", &ModelConfig::n_layers, true},
     {"n_heads", &ModelConfig::n_heads, true},
     {"head_dim", &ModelConfig::head_dim, true},
     {"d_ff", &ModelConfig::d_ff, true},
     {"vocab_size", &ModelConfig::vocab_size, true},
     {"max_seq", &ModelConfig::max_seq, false},
     {"attn_period", &ModelConfig::attn_period, false},
     {"conv_taps", &ModelConfig::conv_taps, false}}};

/// A double narrowed to float, refusing what a float cannot hold.
float float_number(const JsonValue& value, const std::string& where) {
  const double number = real_number(value, where);
  if (number > std::numeric_limits<float>::max() || number < std::numeric_limits<float>::lowest()) {
    refuse_value(value, where, "a number a float can hold");
  }
  return static_cast<float>(number);
}

/// All keys but the dimensions.
void read_settings(const JsonObject& json, const std::string& source, ModelConfig& config) {
  using Value = const JsonValue&;
  using Where = const std::string&;
  const auto read = [&](std::string_view key, const auto& take) {
    if (json.contains(key)) {
      take(file_member(json, key, source), source + ": " + std::string(key));
    }
  };
  read("model_type", [](Value value, Where where) { choice(value, where, {kSpelHybrid}); });
  read("name", [&](Value value, Where where) { config.name = name_of(value, where); });
  read("attn_logit_scale",
       [&](Value value, Where where) { config.attn_logit_scale = float_number(value, where); });
  read("rope_theta",
       [&](Value value, Where where) { config.rope_theta = real_number(value, where); });
  read("rms_norm_eps",
       [&](Value value, Where where) { config.rms_norm_eps = float_number(value, where); });
  read("l2_norm_eps",
       [&](Value value, Where where) { config.l2_norm_eps = float_number(value, where); });
  read("conv_activation", [&](Value value, Where where) {
    const bool silu = choice(value, where, {"none", "silu"}) == "silu";
    config.conv_activation = silu ? ConvActivation::kSilu : ConvActivation::kNone;
  });
  read("gates", [](Value value, Where where) { choice(value, where, {"static"}); });
  read("read_order", [&](Value value, Where where) {
    const bool after = choice(value, where, {"before_decay", "after_decay"}) == "after_decay";
    config.read_order = after ? ReadOrder::kAfterDecay : ReadOrder::kBeforeDecay;
  });
  read("tie_word_embeddings",
       [&](Value value, Where where) { config.tie_word_embeddings = true_or_false(value, where); });
  read("tokenizer", [&](Value value, Where where) { config.tokenizer = name_of(value, where); });
  read("bos_token_id",
       [&](Value value, Where where) { config.bos_token_id = optional_token(value, where); });
  read("eos_token_id",
       [&](Value value, Where where) { config.eos_token_id = optional_token(value, where); });
  // What the file's author used; each tensor states its own type.
  read("weights_dtype", [](Value value, Where where) { choice(value, where, {"bf16", "f32"}); });
  read("draft", [&](Value value, Where where) { read_draft(value, where, config); });
}

std::string json_text_of(std::string_view text) {
  std::string out;
  write_json_string(text, out);
  return out;
}

/// The shortest text that reads back as the same number.
template <typename Real>
std::string number(Real value) {
  std::array<char, 64> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return error == std::errc() ? std::string(buffer.data(), end) : std::to_string(value);
}

std::string token(std::int32_t id) { return id < 0 ? "null" : std::to_string(id); }

}  // namespace

ModelConfig parse_config_json(std::string_view text, const std::string& source) {
  if (text.size() > kConfigJsonBytesMax) {
    throw Error(ErrorCode::kCorrupt, source + ": expected at most " +
                                         std::to_string(kConfigJsonBytesMax) + " bytes, found " +
                                         std::to_string(text.size()));
  }
  ModelConfig config;
  const JsonObject json = read_file_object(text, source, {.bytes = kConfigJsonBytesMax});
  read_settings(json, source, config);
  for (const Dimension& dimension : kDimensions) {
    const std::string where = source + ": " + std::string(dimension.key);
    if (json.contains(dimension.key)) {
      config.*dimension.field =
          static_cast<std::uint32_t>(whole_number(file_member(json, dimension.key, source), where,
                                                  std::numeric_limits<std::uint32_t>::max()));
    } else if (dimension.required) {
      throw Error(ErrorCode::kCorrupt, where + " is missing; expected a number");
    }
  }
  try {
    config.validate();
  } catch (const Error& error) {
    throw Error(error.code(), source + ": " + error.what());
  }
  return config;
}

ModelSpec spel_hybrid_spec_of(std::string_view text, const std::string& source) {
  return spel_hybrid_spec(parse_config_json(text, source));
}

std::string write_config_json(const ModelConfig& config, std::string_view weights_dtype) {
  std::string out = "{\n";
  const auto line = [&out](std::string_view key, const std::string& value) {
    out += "  " + json_text_of(key) + ": " + value + ",\n";
  };
  line("model_type", json_text_of(kSpelHybrid));
  line("name", json_text_of(config.name));
  for (const Dimension& dimension : kDimensions) {
    line(dimension.key, std::to_string(config.*dimension.field));
  }
  line("attn_logit_scale", number(config.attn_logit_scale));
  line("rope_theta", number(config.rope_theta));
  line("rms_norm_eps", number(config.rms_norm_eps));
  line("l2_norm_eps", number(config.l2_norm_eps));
  line("conv_activation",
       json_text_of(config.conv_activation == ConvActivation::kSilu ? "silu" : "none"));
  line("gates", json_text_of("static"));
  line("read_order",
       json_text_of(config.read_order == ReadOrder::kAfterDecay ? "after_decay" : "before_decay"));
  line("tie_word_embeddings", config.tie_word_embeddings ? "true" : "false");
  line("tokenizer", json_text_of(config.tokenizer));
  line("bos_token_id", token(config.bos_token_id));
  line("eos_token_id", token(config.eos_token_id));
  line("weights_dtype", json_text_of(weights_dtype));
  std::string layers;
  for (const std::uint32_t layer : config.draft_layers) {
    layers += (layers.empty() ? "" : ", ") + std::to_string(layer);
  }
  out += "  \"draft\": {\"layers\": [" + layers + R"(], "attn": "q8", "mlp": "ternary"})" + "\n}\n";
  return out;
}

}  // namespace spel::engine

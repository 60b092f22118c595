#include "engine/document/config_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <set>

#include "config/base/error.h"
#include "config/base/limits.h"
#include "engine/files/json_reader.h"

namespace spel::engine {
namespace {

constexpr std::size_t kNameBytesMax = 256;

/// The value of a string key that only a few words are allowed for.
std::string read_choice(JsonReader& json, const std::string& key,
                        std::initializer_list<std::string_view> allowed) {
  std::string found = json.read_string();
  if (std::find(allowed.begin(), allowed.end(), found) == allowed.end()) {
    std::string words;
    for (const std::string_view word : allowed) {
      words += (words.empty() ? "" : " or ") + json_quoted(word);
    }
    json.fail("before this " + key + " to be " + words + ", not " + json_quoted(found) +
              " (this build implements no other)");
  }
  return found;
}

std::string read_name(JsonReader& json, const std::string& key) {
  std::string found = json.read_string();
  if (found.empty() || found.size() > kNameBytesMax) {
    json.fail("before this a " + key + " of 1 to " + std::to_string(kNameBytesMax) + " bytes");
  }
  return found;
}

std::int32_t read_optional_token(JsonReader& json) {
  if (json.peek() == JsonReader::Kind::kNull) {
    json.read_null();
    return -1;
  }
  return static_cast<std::int32_t>(json.read_unsigned(limits::kVocabMax - 1));
}

std::vector<std::uint32_t> read_layers(JsonReader& json) {
  std::vector<std::uint32_t> layers;
  json.enter_array();
  while (json.next_element()) {
    if (layers.size() == limits::kLayersMax) {
      json.fail("at most " + std::to_string(limits::kLayersMax) + " draft layers");
    }
    layers.push_back(static_cast<std::uint32_t>(json.read_unsigned(limits::kLayersMax)));
  }
  return layers;
}

void read_draft(JsonReader& json, ModelConfig& config) {
  std::string key;
  json.enter_object();
  while (json.next_key(key)) {
    if (key == "layers") {
      config.draft_layers = read_layers(json);
    } else if (key == "attn") {
      read_choice(json, "draft.attn", {"q8"});
    } else if (key == "mlp") {
      read_choice(json, "draft.mlp", {"ternary"});
    } else {
      json.skip_value();
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

const Dimension* find_dimension(std::string_view key) {
  const auto* at = std::find_if(kDimensions.begin(), kDimensions.end(),
                                [key](const Dimension& entry) { return entry.key == key; });
  return at == kDimensions.end() ? nullptr : at;
}

/// A double narrowed to float, refusing what a float cannot hold.
float read_float(JsonReader& json) {
  const double value = json.read_double();
  if (value > std::numeric_limits<float>::max() || value < std::numeric_limits<float>::lowest()) {
    json.fail("a number a float can hold before this");
  }
  return static_cast<float>(value);
}

void read_field(JsonReader& json, const std::string& key, ModelConfig& config) {
  if (const Dimension* dimension = find_dimension(key)) {
    config.*dimension->field =
        static_cast<std::uint32_t>(json.read_unsigned(std::numeric_limits<std::uint32_t>::max()));
  } else if (key == "model_type") {
    read_choice(json, key, {"spel_hybrid"});
  } else if (key == "name") {
    config.name = read_name(json, key);
  } else if (key == "attn_logit_scale") {
    config.attn_logit_scale = read_float(json);
  } else if (key == "rope_theta") {
    config.rope_theta = json.read_double();
  } else if (key == "rms_norm_eps") {
    config.rms_norm_eps = read_float(json);
  } else if (key == "l2_norm_eps") {
    config.l2_norm_eps = read_float(json);
  } else if (key == "conv_activation") {
    config.conv_activation = read_choice(json, key, {"none", "silu"}) == "silu"
                                 ? ConvActivation::kSilu
                                 : ConvActivation::kNone;
  } else if (key == "gates") {
    read_choice(json, key, {"static"});
  } else if (key == "read_order") {
    config.read_order = read_choice(json, key, {"before_decay", "after_decay"}) == "after_decay"
                            ? ReadOrder::kAfterDecay
                            : ReadOrder::kBeforeDecay;
  } else if (key == "tie_word_embeddings") {
    config.tie_word_embeddings = json.read_bool();
  } else if (key == "tokenizer") {
    config.tokenizer = read_name(json, key);
  } else if (key == "bos_token_id") {
    config.bos_token_id = read_optional_token(json);
  } else if (key == "eos_token_id") {
    config.eos_token_id = read_optional_token(json);
  } else if (key == "weights_dtype") {
    // What the file's author used; each tensor states its own type.
    read_choice(json, key, {"bf16", "f32"});
  } else if (key == "draft") {
    read_draft(json, config);
  } else {
    json.skip_value();
  }
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
  std::set<std::string> seen;
  std::string key;
  JsonReader json(text, source);
  json.enter_object();
  while (json.next_key(key)) {
    try {
      read_field(json, key, config);
    } catch (const Error& error) {
      throw Error(error.code(), std::string(error.what()) + " (key " + json_quoted(key) + ")");
    }
    seen.insert(key);
  }
  json.finish();
  for (const Dimension& dimension : kDimensions) {
    if (dimension.required && !seen.contains(std::string(dimension.key))) {
      throw Error(ErrorCode::kCorrupt,
                  source + ": " + std::string(dimension.key) + " is missing; expected a number");
    }
  }
  try {
    config.validate();
  } catch (const Error& error) {
    throw Error(error.code(), source + ": " + error.what());
  }
  return config;
}

std::string write_config_json(const ModelConfig& config, std::string_view weights_dtype) {
  std::string out = "{\n";
  const auto line = [&out](std::string_view key, const std::string& value) {
    out += "  " + json_quoted(key) + ": " + value + ",\n";
  };
  line("model_type", json_quoted("spel_hybrid"));
  line("name", json_quoted(config.name));
  for (const Dimension& dimension : kDimensions) {
    line(dimension.key, std::to_string(config.*dimension.field));
  }
  line("attn_logit_scale", number(config.attn_logit_scale));
  line("rope_theta", number(config.rope_theta));
  line("rms_norm_eps", number(config.rms_norm_eps));
  line("l2_norm_eps", number(config.l2_norm_eps));
  line("conv_activation",
       json_quoted(config.conv_activation == ConvActivation::kSilu ? "silu" : "none"));
  line("gates", json_quoted("static"));
  line("read_order",
       json_quoted(config.read_order == ReadOrder::kAfterDecay ? "after_decay" : "before_decay"));
  line("tie_word_embeddings", config.tie_word_embeddings ? "true" : "false");
  line("tokenizer", json_quoted(config.tokenizer));
  line("bos_token_id", token(config.bos_token_id));
  line("eos_token_id", token(config.eos_token_id));
  line("weights_dtype", json_quoted(weights_dtype));
  std::string layers;
  for (const std::uint32_t layer : config.draft_layers) {
    layers += (layers.empty() ? "" : ", ") + std::to_string(layer);
  }
  out += "  \"draft\": {\"layers\": [" + layers + R"(], "attn": "q8", "mlp": "ternary"})" + "\n}\n";
  return out;
}

}  // namespace spel::engine

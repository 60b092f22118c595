#include "engine/arch/hf_config.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "config/base/error.h"
#include "config/base/limits.h"
#include "config/json/file_values.h"
#include "engine/arch/directory_names.h"

namespace spel::engine {
namespace {

constexpr const char* kTextConfig = "text_config";
constexpr double kThetaMax = 1e12;

double in_range(const JsonValue& value, const std::string& where, double low, double high) {
  const double number = real_number(value, where);
  if (!(number >= low && number <= high)) {
    refuse_value(value, where,
                 "a number from " + std::to_string(low) + " to " + std::to_string(high));
  }
  return number;
}

}  // namespace

HfConfig::HfConfig(std::string_view text, std::string source)
    : source_(std::move(source)),
      top_(read_file_object(text, source_, {.bytes = kConfigJsonBytesMax})) {
  if (top_.contains(kTextConfig)) {
    text_ = file_member(top_, kTextConfig, source_);
    (void)members_of(*text_, source_ + ": " + kTextConfig);
  }
}

std::string HfConfig::where(std::string_view key) const {
  return source_ + ": " + (text_ ? std::string(kTextConfig) + "." : "") + std::string(key);
}

std::optional<JsonValue> HfConfig::value(std::string_view key) const {
  std::optional<JsonValue> found;
  if (text_) {
    if (const JsonValue* member = text_->find(key)) {
      found = *member;
    }
  } else if (top_.contains(key)) {
    found = file_member(top_, key, source_);
  }
  return found && !found->is_null() ? found : std::nullopt;
}

JsonValue HfConfig::required(std::string_view key) const {
  std::optional<JsonValue> found = value(key);
  if (!found) {
    throw Error(ErrorCode::kCorrupt, where(key) + " is missing; the layers cannot be built");
  }
  return *std::move(found);
}

void HfConfig::refuse(std::string_view key, const std::string& found,
                      const std::string& expected) const {
  throw Error(ErrorCode::kCorrupt, where(key) + " is " + found + "; expected " + expected);
}

std::size_t HfConfig::size(std::string_view key, std::size_t max) const {
  const auto number = static_cast<std::size_t>(whole_number(required(key), where(key), max));
  if (number == 0) {
    refuse(key, "0", "1 to " + std::to_string(max));
  }
  return number;
}

std::size_t HfConfig::size_or(std::string_view key, std::size_t max, std::size_t fallback) const {
  return has(key) ? size(key, max) : fallback;
}

double HfConfig::real(std::string_view key, double low, double high) const {
  return in_range(required(key), where(key), low, high);
}

double HfConfig::real_or(std::string_view key, double low, double high, double fallback) const {
  return has(key) ? real(key, low, high) : fallback;
}

bool HfConfig::flag_or(std::string_view key, bool fallback) const {
  const auto found = value(key);
  return found ? true_or_false(*found, where(key)) : fallback;
}

std::vector<std::int32_t> HfConfig::ids(std::string_view key, std::size_t vocab) const {
  const auto found = value(key);
  if (!found) {
    return {};
  }
  std::vector<std::int32_t> all;
  const auto add = [&](const JsonValue& id) {
    all.push_back(static_cast<std::int32_t>(whole_number(id, where(key), vocab - 1)));
  };
  if (!found->is_array()) {
    add(*found);
    return all;
  }
  for (const JsonValue& id : elements_of(*found, where(key), limits::kStopTokensMax)) {
    add(id);
  }
  return all;
}

bool HfConfig::tied() const {
  constexpr const char* kKey = "tie_word_embeddings";
  if (text_ && top_.contains(kKey)) {
    return true_or_false(file_member(top_, kKey, source_), source_ + ": " + kKey);
  }
  return flag_or(kKey, false);
}

void HfConfig::require_text(std::string_view key, std::string_view only) const {
  const auto found = value(key);
  if (found && text_of(*found, where(key)) != only) {
    refuse_value(*found, where(key), shown_text(only) + " (this build implements no other)");
  }
}

void HfConfig::require_flag(std::string_view key, bool only) const {
  if (flag_or(key, only) != only) {
    refuse(key, only ? "false" : "true",
           std::string(only ? "true" : "false") + " (this build implements no other)");
  }
}

std::vector<bool> HfConfig::attention_layers() const {
  const std::size_t layers = size("num_hidden_layers", limits::kLayersMax);
  std::vector<bool> attention(layers);
  const auto types = value("layer_types");
  if (!types) {
    const std::size_t interval = size_or("full_attention_interval", limits::kLayersMax, 4);
    for (std::size_t i = 0; i < layers; ++i) {
      attention[i] = i % interval == interval - 1;
    }
    return attention;
  }
  const auto all = elements_of(*types, where("layer_types"), limits::kLayersMax);
  if (all.size() != layers) {
    refuse("layer_types", std::to_string(all.size()) + " entries",
           "num_hidden_layers (" + std::to_string(layers) + ") of them");
  }
  for (std::size_t i = 0; i < layers; ++i) {
    const std::string place = where("layer_types") + "[" + std::to_string(i) + "]";
    const std::string& type = text_of(all[i], place);
    if (type != "full_attention" && type != "linear_attention") {
      refuse_value(all[i], place, R"("linear_attention" or "full_attention")");
    }
    attention[i] = type == "full_attention";
  }
  return attention;
}

std::optional<RopeSpec> HfConfig::rope(std::size_t head_dim) const {
  const auto nested = value("rope_parameters");
  const std::string place = where("rope_parameters") + ".";
  const auto read = [&](std::string_view key) -> std::optional<JsonValue> {
    if (!nested) {
      return value(key);
    }
    const JsonValue* member = nested->find(key);
    return member != nullptr && !member->is_null() ? std::optional(*member) : std::nullopt;
  };
  if (has("rope_scaling")) {
    refuse("rope_scaling", "set", "null: this build knows no scaled rotary embedding");
  }
  for (const std::string_view key : {"rope_type", "type"}) {
    const auto type = nested ? read(key) : std::nullopt;
    if (type && text_of(*type, place + std::string(key)) != "default") {
      refuse_value(*type, place + std::string(key), "\"default\" (this build implements no other)");
    }
  }
  const auto theta = read("rope_theta");
  if (!theta) {
    return std::nullopt;
  }
  const auto factor = read("partial_rotary_factor");
  const double part = factor ? in_range(*factor, place + "partial_rotary_factor", 0.0, 1.0) : 1.0;
  const auto dims = static_cast<std::size_t>(static_cast<double>(head_dim) * part);
  if (dims == 0 || dims % 2 != 0) {
    refuse("partial_rotary_factor", std::to_string(part),
           "an even number of values of a head of " + std::to_string(head_dim));
  }
  return RopeSpec{.pairs = RopePairs::kHalves,
                  .dims = dims,
                  .theta = in_range(*theta, place + "rope_theta", 1.0, kThetaMax)};
}

}  // namespace spel::engine

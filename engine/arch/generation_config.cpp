#include "engine/arch/generation_config.h"

#include <algorithm>
#include <limits>

#include "config/base/limits.h"
#include "config/json/file_values.h"

namespace spel::engine {
namespace {

constexpr std::size_t kEosMax = 64;
constexpr JsonLimits kLimits = {
    .bytes = kGenerationConfigBytesMax, .depth = 8, .values = 4096, .members = 256, .parts = 1024};

/// Closed above; below too unless `above_min`.
struct Range {
  double min = 0.0;
  double max = 0.0;
  bool above_min = false;
};

/// The member as a float in `range`; nothing where it is absent or null.
std::optional<float> ratio(const JsonObject& object, const std::string& key,
                           const std::string& source, const Range& range) {
  const std::optional<JsonValue> value = object.build(key);
  if (!value || value->is_null()) {
    return std::nullopt;
  }
  const std::string where = source + ": " + key;
  const double number = real_number(*value, where);
  if (number < range.min || number > range.max || (range.above_min && number == range.min)) {
    refuse_value(*value, where,
                 std::string("a number ") + (range.above_min ? "above " : "from ") +
                     dump_json(range.min) + " to " + dump_json(range.max));
  }
  // Above 0 as a double and not as a float would be 0.
  return range.above_min ? std::max(static_cast<float>(number), std::numeric_limits<float>::min())
                         : static_cast<float>(number);
}

std::optional<std::size_t> top_k(const JsonObject& object, const std::string& source) {
  const std::optional<JsonValue> value = object.build("top_k");
  if (!value || value->is_null()) {
    return std::nullopt;
  }
  if (*value == JsonValue(-1)) {
    return 0;  // vLLM's "off".
  }
  return whole_number(*value, source + ": top_k", std::numeric_limits<std::int32_t>::max());
}

void add_eos(const JsonValue& value, const std::string& where, std::vector<TokenId>& eos) {
  const auto id = static_cast<TokenId>(whole_number(value, where, limits::kVocabMax - 1));
  if (std::find(eos.begin(), eos.end(), id) == eos.end()) {
    eos.push_back(id);
  }
}

}  // namespace

GenerationConfig read_generation_config(std::string_view text, const std::string& source) {
  const JsonObject object = read_file_object(text, source, kLimits);
  GenerationConfig config;
  GenerationDefaults& defaults = config.defaults;
  defaults.temperature = ratio(object, "temperature", source, {.max = 2.0});
  defaults.top_p = ratio(object, "top_p", source, {.max = 1.0, .above_min = true});
  defaults.min_p = ratio(object, "min_p", source, {.max = 1.0});
  defaults.repetition_penalty =
      ratio(object, "repetition_penalty", source, {.max = 2.0, .above_min = true});
  defaults.top_k = top_k(object, source);
  if (const auto eos = object.build("eos_token_id"); eos && !eos->is_null()) {
    const std::string where = source + ": eos_token_id";
    if (eos->is_array()) {
      for (const JsonValue& id : elements_of(*eos, where, kEosMax)) {
        add_eos(id, where, config.eos);
      }
    } else {
      add_eos(*eos, where, config.eos);
    }
  }
  return config;
}

}  // namespace spel::engine

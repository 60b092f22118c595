#include "config/shape.h"

#include <algorithm>
#include <array>
#include <optional>

#include "config/base/error.h"
#include "config/base/limits.h"
#include "config/options.h"
#include "config/text_values.h"

namespace spel::config {

namespace {

constexpr std::string_view kDraftMap = "draft_map";

struct ShapeKey {
  std::string_view key;
  const char* variable;
  std::uint32_t max;
};

constexpr std::array kShapeKeys = {
    ShapeKey{"d_model", "SPEL_D_MODEL", limits::kModelDimMax},
    ShapeKey{"n_layers", "SPEL_N_LAYERS", limits::kLayersMax},
    ShapeKey{"n_heads", "SPEL_N_HEADS", limits::kHeadsMax},
    ShapeKey{"head_dim", "SPEL_HEAD_DIM", limits::kModelDimMax},
    ShapeKey{"d_ff", "SPEL_D_FF", limits::kModelDimMax},
    ShapeKey{"vocab", "SPEL_VOCAB", limits::kVocabMax},
    ShapeKey{"max_seq", "SPEL_MAX_SEQ", limits::kMaxSeqMax},
    ShapeKey{"attn_period", "SPEL_ATTN_PERIOD", limits::kLayersMax},
};

[[noreturn]] void fail(std::string_view key, std::string_view value, std::string_view origin,
                       const std::string& allowed) {
  throw Error(ErrorCode::kInvalidArgument, std::string(key) + ": \"" + std::string(value) +
                                               "\" (from " + std::string(origin) +
                                               ") is not allowed; expected " + allowed);
}

std::uint64_t require_count(std::string_view key, std::string_view text, std::string_view origin,
                            std::uint64_t min, std::uint64_t max) {
  const auto value = parse_count(text);
  if (!value || *value < min || *value > max) {
    fail(key, text, origin,
         "an integer from " + std::to_string(min) + " to " + std::to_string(max));
  }
  return *value;
}

void set_shape(ShapeOverrides& shape, const ShapeKey& key, std::string_view text,
               std::string_view origin) {
  shape.values[std::string(key.key)] =
      static_cast<std::uint32_t>(require_count(key.key, text, origin, 1, key.max));
}

void set_draft_map(ShapeOverrides& shape, std::string_view text, char separator,
                   std::string_view origin) {
  std::vector<std::uint32_t> layers;
  for (const auto& part : split(text, separator)) {
    const auto layer = parse_count(part);
    if (!layer || *layer >= limits::kLayersMax || (!layers.empty() && *layer <= layers.back())) {
      layers.clear();
      break;
    }
    layers.push_back(static_cast<std::uint32_t>(*layer));
  }
  if (layers.empty()) {
    fail(kDraftMap, text, origin,
         std::string("ascending layer numbers, separated by \"") + separator + "\"");
  }
  shape.draft_map = std::move(layers);
}

void apply_list(ShapeOverrides& shape, std::string_view list, std::string_view origin) {
  for (const auto& pair : split(list, ',')) {
    const auto equals = pair.find('=');
    const std::string_view key = std::string_view(pair).substr(0, equals);
    const auto known = std::find_if(kShapeKeys.begin(), kShapeKeys.end(),
                                    [&](const ShapeKey& entry) { return entry.key == key; });
    if (equals == std::string::npos || (known == kShapeKeys.end() && key != kDraftMap)) {
      std::string names(kDraftMap);
      for (const auto& entry : kShapeKeys) {
        names += ", " + std::string(entry.key);
      }
      fail("config", pair, origin, "key=value with one of " + names);
    }
    const std::string_view value = std::string_view(pair).substr(equals + 1);
    if (known == kShapeKeys.end()) {
      set_draft_map(shape, value, ':', origin);
    } else {
      set_shape(shape, *known, value, origin);
    }
  }
}

std::optional<std::string_view> find(const Environment& environment, std::string_view name) {
  const auto variable = environment.find(name);
  return variable == environment.end() ? std::nullopt
                                       : std::optional<std::string_view>(variable->second);
}

}  // namespace

ShapeOverrides parse_shape_overrides(std::string_view list, const Environment& environment) {
  ShapeOverrides shape;
  if (const auto config = find(environment, "SPEL_CONFIG")) {
    apply_list(shape, *config, "SPEL_CONFIG");
  }
  for (const auto& key : kShapeKeys) {
    if (const auto value = find(environment, key.variable)) {
      set_shape(shape, key, *value, key.variable);
    }
  }
  if (const auto value = find(environment, "SPEL_DRAFT_MAP")) {
    set_draft_map(shape, *value, ',', "SPEL_DRAFT_MAP");
  }
  apply_list(shape, list, "--config");
  return shape;
}

ToolSettings parse_tool_settings(const Environment& environment) {
  ToolSettings settings;
  // The settings the server has as well are checked by its table.
  ServerConfig shared;
  for (const auto& option : option_table()) {
    if (option.key == "draft_threads" || option.key == "kernel" || option.key == "isa" ||
        option.key == "spec_k") {
      if (const auto value = find(environment, option.variable())) {
        set_option(shared, option, *value, option.variable());
      }
    }
  }
  settings.draft_threads = shared.draft_threads;
  settings.kernel = shared.kernel;
  settings.isa = shared.isa;
  settings.bench_k = shared.spec_k;
  if (const auto value = find(environment, "SPEL_BENCH_K")) {
    settings.bench_k = static_cast<std::size_t>(
        require_count("bench_k", *value, "SPEL_BENCH_K", 0, limits::kSpecKMax));
  }
  if (const auto value = find(environment, "SPEL_VERIFY_TOL")) {
    const auto tolerance = parse_number(*value);
    if (!tolerance || *tolerance <= 0.0) {
      fail("verify_tol", *value, "SPEL_VERIFY_TOL", "a number greater than 0");
    }
    settings.verify_tolerance = *tolerance;
  }
  settings.weights = find(environment, "SPEL_WEIGHTS").value_or("");
  return settings;
}

}  // namespace spel::config

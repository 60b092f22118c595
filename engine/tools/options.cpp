#include "engine/tools/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>

#include "config/base/error.h"

namespace spel::engine::tools {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

struct ShapeKey {
  std::string_view name;
  std::uint32_t ModelConfig::*field;
};
constexpr std::array<ShapeKey, 9> kShapeKeys = {{{"d_model", &ModelConfig::d_model},
                                                 {"n_layers", &ModelConfig::n_layers},
                                                 {"n_heads", &ModelConfig::n_heads},
                                                 {"head_dim", &ModelConfig::head_dim},
                                                 {"d_ff", &ModelConfig::d_ff},
                                                 {"vocab", &ModelConfig::vocab_size},
                                                 {"vocab_size", &ModelConfig::vocab_size},
                                                 {"max_seq", &ModelConfig::max_seq},
                                                 {"attn_period", &ModelConfig::attn_period}}};
constexpr std::string_view kDraftMapKey = "draft_map";

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::uint32_t parse_u32(const std::string& what, const std::string& text) {
  return static_cast<std::uint32_t>(
      parse_unsigned(what, text, std::numeric_limits<std::uint32_t>::max()));
}

void set_shape_key(ModelConfig& config, const std::string& key, const std::string& value) {
  if (key == kDraftMapKey) {
    config.draft_layers.clear();
    for (const std::string& layer : split(value, ':')) {
      config.draft_layers.push_back(parse_u32(key, layer));
    }
    return;
  }
  const auto* at = std::find_if(kShapeKeys.begin(), kShapeKeys.end(),
                                [&key](const ShapeKey& entry) { return entry.name == key; });
  if (at == kShapeKeys.end()) {
    std::string known;
    for (const ShapeKey& entry : kShapeKeys) {
      known += std::string(entry.name) + ", ";
    }
    refuse("--config: unknown key " + key + "; expected one of " + known +
           std::string(kDraftMapKey));
  }
  config.*at->field = parse_u32("--config " + key, value);
}

}  // namespace

Options::Options(std::span<const std::string> args, const OptionNames& names) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    if (!arg.starts_with("--")) {
      if (positional_.size() == names.positional_max) {
        refuse("unexpected argument " + arg);
      }
      positional_.push_back(arg);
      continue;
    }
    const std::size_t equals = arg.find('=');
    const std::string name = arg.substr(2, equals == std::string::npos ? equals : equals - 2);
    if (names.flags.contains(name) && equals == std::string::npos) {
      flags_.insert(name);
      continue;
    }
    if (!names.with_value.contains(name)) {
      refuse("unknown option " + arg);
    }
    if (equals == std::string::npos && i + 1 == args.size()) {
      refuse("option --" + name + " needs a value");
    }
    const std::string value = equals == std::string::npos ? args[++i] : arg.substr(equals + 1);
    if (!values_.emplace(name, value).second) {
      refuse("option --" + name + " is given twice");
    }
  }
}

bool Options::has(const std::string& name) const { return flags_.contains(name); }

std::optional<std::string> Options::value(const std::string& name) const {
  const auto at = values_.find(name);
  return at == values_.end() ? std::nullopt : std::optional(at->second);
}

std::uint64_t parse_unsigned(const std::string& what, const std::string& text, std::uint64_t max) {
  std::uint64_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last || value > max) {
    refuse(what + " is \"" + text + "\"; expected a whole number from 0 to " + std::to_string(max));
  }
  return value;
}

double parse_positive(const std::string& what, const std::string& text) {
  double value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last || !std::isfinite(value) || value <= 0) {
    refuse(what + " is \"" + text + "\"; expected a finite number above 0");
  }
  return value;
}

ModelConfig apply_shape(ModelConfig base, const std::string& text) {
  for (const std::string& part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) {
      refuse("--config: \"" + part + "\"; expected key=value");
    }
    set_shape_key(base, part.substr(0, equals), part.substr(equals + 1));
  }
  try {
    base.validate();
  } catch (const Error& error) {
    refuse("--config: " + std::string(error.what()));
  }
  return base;
}

void require_shape(const ModelConfig& config, const std::string& text) {
  const ModelConfig wanted = apply_shape(config, text);
  for (const ShapeKey& key : kShapeKeys) {
    if (wanted.*key.field != config.*key.field) {
      refuse("--config " + std::string(key.name) + " is " + std::to_string(wanted.*key.field) +
             "; the file has " + std::to_string(config.*key.field));
    }
  }
  if (wanted.draft_layers != config.draft_layers) {
    refuse("--config " + std::string(kDraftMapKey) + " differs from the file's draft layers");
  }
}

}  // namespace spel::engine::tools

#include "engine/tools/shape.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "config/base/error.h"
#include "config/base/limits.h"
#include "engine/tools/values.h"

namespace spel::engine::tools {
namespace {

struct ShapeKey {
  std::string_view name;
  const char* variable;
  std::uint32_t ModelConfig::* field;
  std::uint32_t max;
};
constexpr std::array<ShapeKey, 8> kShapeKeys = {
    {{"d_model", "SPEL_D_MODEL", &ModelConfig::d_model, limits::kModelDimMax},
     {"n_layers", "SPEL_N_LAYERS", &ModelConfig::n_layers, limits::kLayersMax},
     {"n_heads", "SPEL_N_HEADS", &ModelConfig::n_heads, limits::kHeadsMax},
     {"head_dim", "SPEL_HEAD_DIM", &ModelConfig::head_dim, limits::kModelDimMax},
     {"d_ff", "SPEL_D_FF", &ModelConfig::d_ff, limits::kModelDimMax},
     {"vocab", "SPEL_VOCAB", &ModelConfig::vocab_size, limits::kVocabMax},
     {"max_seq", "SPEL_MAX_SEQ", &ModelConfig::max_seq, limits::kMaxSeqMax},
     {"attn_period", "SPEL_ATTN_PERIOD", &ModelConfig::attn_period, limits::kLayersMax}}};
constexpr std::string_view kDraftMapKey = "draft_map";
constexpr std::string_view kMaxSeqKey = "max_seq";

/// One value asked for. `key` is null for the draft's layers.
struct Wish {
  const ShapeKey* key = nullptr;
  std::uint32_t value = 0;
  std::vector<std::uint32_t> draft_layers;
  std::string origin;  ///< "SPEL_D_MODEL", "--config d_model"
};

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

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

Wish size_wish(const ShapeKey& key, const std::string& text, const std::string& origin) {
  return {&key, static_cast<std::uint32_t>(parse_between(origin, text, 1, key.max)), {}, origin};
}

Wish draft_wish(const std::string& text, char separator, const std::string& origin) {
  Wish wish;
  wish.origin = origin;
  for (const std::string& layer : split(text, separator)) {
    wish.draft_layers.push_back(
        static_cast<std::uint32_t>(parse_between(origin, layer, 0, limits::kLayersMax - 1)));
  }
  return wish;
}

void add_list(const std::string& list, const std::string& origin, std::vector<Wish>& wishes) {
  for (const std::string& part : split(list, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) {
      refuse(origin + ": \"" + part + "\"; expected key=value");
    }
    // As config.json has it.
    const std::string given = part.substr(0, equals);
    const std::string name = given == "vocab_size" ? "vocab" : given;
    const std::string value = part.substr(equals + 1);
    if (name == kDraftMapKey) {
      wishes.push_back(draft_wish(value, ':', origin + " " + name));
      continue;
    }
    const auto* key = std::find_if(kShapeKeys.begin(), kShapeKeys.end(),
                                   [&](const ShapeKey& entry) { return entry.name == name; });
    if (key == kShapeKeys.end()) {
      std::string known;
      for (const ShapeKey& entry : kShapeKeys) {
        known += std::string(entry.name) + ", ";
      }
      refuse(origin + ": unknown key " + name + "; expected one of " + known +
             std::string(kDraftMapKey));
    }
    wishes.push_back(size_wish(*key, value, origin + " " + name));
  }
}

/// From the weakest to the strongest.
std::vector<Wish> wishes_of(const std::optional<std::string>& flag) {
  std::vector<Wish> wishes;
  if (const std::optional<std::string> list = variable("SPEL_CONFIG")) {
    add_list(*list, "SPEL_CONFIG", wishes);
  }
  for (const ShapeKey& key : kShapeKeys) {
    if (const std::optional<std::string> text = variable(key.variable)) {
      wishes.push_back(size_wish(key, *text, key.variable));
    }
  }
  if (const std::optional<std::string> layers = variable("SPEL_DRAFT_MAP")) {
    wishes.push_back(draft_wish(*layers, ',', "SPEL_DRAFT_MAP"));
  }
  if (flag) {
    add_list(*flag, "--config", wishes);
  }
  return wishes;
}

/// SPEL_MAX_SEQ alone is the length of a context, not a shape.
bool is_context_setting(const Wish& wish) {
  return wish.key != nullptr && wish.key->name == kMaxSeqKey && wish.origin == wish.key->variable;
}

void apply(const Wish& wish, ModelConfig& config) {
  if (wish.key != nullptr) {
    config.*wish.key->field = wish.value;
  } else {
    config.draft_layers = wish.draft_layers;
  }
}

}  // namespace

bool shape_is_given(const std::optional<std::string>& flag) {
  const std::vector<Wish> wishes = wishes_of(flag);
  return !std::all_of(wishes.begin(), wishes.end(), &is_context_setting);
}

ModelConfig chosen_shape(ModelConfig base, const std::optional<std::string>& flag) {
  std::string origins;
  for (const Wish& wish : wishes_of(flag)) {
    apply(wish, base);
    origins += (origins.empty() ? "" : ", ") + wish.origin;
  }
  try {
    base.validate();
  } catch (const Error& error) {
    refuse("the shape of " + origins + ": " + error.what());
  }
  return base;
}

void require_shape(const std::optional<ModelConfig>& of_file,
                   const std::optional<std::string>& flag) {
  const ModelConfig config = of_file.value_or(ModelConfig());
  ModelConfig wanted = config;
  std::string draft_origin;
  std::array<std::string, kShapeKeys.size()> origins;
  for (const Wish& wish : wishes_of(flag)) {
    if (is_context_setting(wish)) {
      continue;
    }
    if (!of_file) {
      refuse(wish.origin + " names a shape; the model is of another architecture than those have");
    }
    apply(wish, wanted);
    (wish.key != nullptr ? origins[static_cast<std::size_t>(wish.key - kShapeKeys.data())]
                         : draft_origin) = wish.origin;
  }
  for (std::size_t i = 0; i < kShapeKeys.size(); ++i) {
    const auto field = kShapeKeys[i].field;
    if (wanted.*field != config.*field) {
      refuse(origins[i] + " is " + std::to_string(wanted.*field) + "; the file has " +
             std::to_string(config.*field));
    }
  }
  if (wanted.draft_layers != config.draft_layers) {
    refuse(draft_origin + " differs from the file's draft layers");
  }
}

void check_shape_variables() { (void)wishes_of(std::nullopt); }

}  // namespace spel::engine::tools

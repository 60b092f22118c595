// The keys of a published model's config.json. Internal to engine/arch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/json/reader.h"
#include "config/json/value.h"
#include "engine/model/spec.h"

namespace spel::engine {

/// A configuration, or the text_config of a multimodal one. A key that is null counts as absent.
/// All throw Error(kCorrupt) naming the file, the key, what was found and what is implemented.
class HfConfig {
 public:
  /// `text` must outlive it.
  HfConfig(std::string_view text, std::string source);

  [[nodiscard]] bool has(std::string_view key) const { return value(key).has_value(); }
  /// 1 … max.
  [[nodiscard]] std::size_t size(std::string_view key, std::size_t max) const;
  [[nodiscard]] std::size_t size_or(std::string_view key, std::size_t max,
                                    std::size_t fallback) const;
  [[nodiscard]] double real(std::string_view key, double low, double high) const;
  [[nodiscard]] double real_or(std::string_view key, double low, double high,
                               double fallback) const;
  [[nodiscard]] bool flag_or(std::string_view key, bool fallback) const;
  /// A number or a list of them; none if absent. Ids below `vocab`.
  [[nodiscard]] std::vector<std::int32_t> ids(std::string_view key, std::size_t vocab) const;
  /// tie_word_embeddings: a multimodal configuration says it outside of text_config.
  [[nodiscard]] bool tied() const;

  /// If `key` is there, it must be this: nothing else is implemented.
  void require_text(std::string_view key, std::string_view only) const;
  void require_flag(std::string_view key, bool only) const;

  /// For each of num_hidden_layers, whether it is attention: from layer_types, else from
  /// full_attention_interval.
  [[nodiscard]] std::vector<bool> attention_layers() const;

  /// From rope_parameters, or the older keys beside the others. None where rope_theta is null.
  /// `head_dim`: of what partial_rotary_factor is a part.
  [[nodiscard]] std::optional<RopeSpec> rope(std::size_t head_dim) const;

  [[noreturn]] void refuse(std::string_view key, const std::string& found,
                           const std::string& expected) const;

 private:
  [[nodiscard]] std::optional<JsonValue> value(std::string_view key) const;
  [[nodiscard]] JsonValue required(std::string_view key) const;
  [[nodiscard]] std::string where(std::string_view key) const;

  std::string source_;
  JsonObject top_;
  std::optional<JsonValue> text_;  ///< text_config
};

}  // namespace spel::engine

// What the completion and the chat endpoint have in common: how to generate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/base/limits.h"
#include "config/base/names.h"

namespace spel::proto {

using TokenId = std::int32_t;

/// `speculation` of a request. What is absent follows the server's configuration.
struct SpeculationOptions {
  std::optional<bool> enabled;   ///< mode: "on" | "off"; "auto" and absent: unset.
  std::optional<std::size_t> k;  ///< 0 … 16; 0 is the same as mode "off".
  std::optional<GovernorKind> governor;
  std::optional<double> alpha_threshold;  ///< [0, 1]
  std::optional<std::size_t> window;      ///< 1 … 4096 rounds.
};

/// `notebank` of a request: notes of `bank` are addressed by the prompt and replayed before it.
struct NoteBankOptions {
  std::string bank;  ///< A valid name.
  std::size_t top = 2;
  Ranker ranker = kRankerDefault;
};

struct StreamOptions {
  bool include_usage = false;
  bool continuous_usage = false;  ///< Every chunk says the usage so far; only with the above.
};

/// Every number is finite and inside the documented range. Token ids are >= 0; whether they are in
/// the vocabulary is for vocabulary.h to say.
struct GenerationOptions {
  std::string model;                      ///< Empty: not named, the resident model is meant.
  std::optional<std::size_t> max_tokens;  ///< Absent (chat only): the server's bound.
  std::size_t min_tokens = 0;  ///< At most max_tokens; before them, nothing ends the text.
  // Absent: as the model's makers want it, or else as if it did not exist (temperature: 1).
  std::optional<float> temperature;   ///< [0, 2]; 0: argmax.
  std::optional<std::int32_t> top_k;  ///< 0: off.
  /// (0, 1]. A client's top_p of 0 keeps only the most likely token: it arrives as top_k = 1.
  std::optional<float> top_p;
  std::optional<float> min_p;               ///< [0, 1]
  std::optional<float> repetition_penalty;  ///< (0, 2]
  float presence_penalty = 0.0F;            ///< [-2, 2]
  float frequency_penalty = 0.0F;           ///< [-2, 2]
  std::vector<std::pair<TokenId, float>> logit_bias;
  std::optional<std::int64_t> seed;  ///< Absent: the server picks one.
  std::vector<std::string> stop;     ///< Each 1 … 256 bytes.
  std::vector<TokenId> stop_token_ids;
  bool ignore_eos = false;
  std::size_t n = 1;                    ///< Choices for each prompt.
  std::optional<std::size_t> logprobs;  ///< Alternatives beside each token, 0 … 20.
  bool stream = false;
  StreamOptions stream_options;
  bool return_token_ids = false;
  bool skip_special_tokens = true;  ///< Special tokens are no part of the answer's text.
  /// Whether the beginning-of-text token goes before a prompt, where the model has one; absent: as
  /// the endpoint does.
  std::optional<bool> add_special_tokens;
  SpeculationOptions speculation;
  std::optional<NoteBankOptions> notebank;
  std::size_t unknown_fields = 0;  ///< Members we do not know, ignored. For a metric.
};

}  // namespace spel::proto

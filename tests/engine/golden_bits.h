// What the models compute, as hashes: the shipped model and six shapes that fit no register.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/arch/spel_hybrid.h"
#include "kernels/isa.h"

namespace spel::engine::testing {

/// FNV-1a over the bits of everything a model gave.
struct GoldenBits {
  std::string model;
  std::uint64_t ids = 0;     ///< Chosen greedily and at temperature 0.8.
  std::uint64_t logits = 0;  ///< Of the target and of the draft: prompt, rounds, after rollbacks.
  std::uint64_t states = 0;  ///< Recurrent states, convolution tails, keys and values at the end.

  friend bool operator==(const GoldenBits&, const GoldenBits&) = default;
};

/// The shipped model's configuration, and six that fit no register.
[[nodiscard]] std::vector<ModelConfig> golden_models();

/// What `isa` computes with the values of `reader`. The stored form of the weights, f32 or bf16,
/// changes nothing.
[[nodiscard]] GoldenBits compute_golden_bits(const ModelConfig& config, const TensorReader& reader,
                                             WeightsDtype dtype, kernels::Isa isa);

/// What golden_models() have to give, on every instruction set. They stay as they are: whoever
/// changes them has changed the answers of every server.
[[nodiscard]] std::vector<GoldenBits> expected_golden_bits();

/// A line for each model, as expected_golden_bits() spells it.
[[nodiscard]] std::string spelled(const std::vector<GoldenBits>& bits);

}  // namespace spel::engine::testing

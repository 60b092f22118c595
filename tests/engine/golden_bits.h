// What the models compute, as hashes: the shipped model and six shapes that fit no register.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

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

/// Computed by `isa`. `shipped`: the directory of the shipped model.
[[nodiscard]] std::vector<GoldenBits> compute_golden_bits(kernels::Isa isa,
                                                          const std::filesystem::path& shipped);

/// What they have to be, on every instruction set. They stay as they are: whoever changes them has
/// changed the answers of every server.
[[nodiscard]] std::vector<GoldenBits> expected_golden_bits();

/// A line for each model, as expected_golden_bits() spells it.
[[nodiscard]] std::string spelled(const std::vector<GoldenBits>& bits);

}  // namespace spel::engine::testing

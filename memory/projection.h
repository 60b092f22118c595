// The fixed sparse projections that turn keys and queries into a few coordinates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/params.h"
#include "memory/note.h"

namespace spel::kernels {
class Kernels;
}

namespace spel::memory {

/// Immutable; safe from any thread. Every input is added to one output with a fixed sign, both
/// chosen by a hash of its index (a count sketch): inner products are kept in expectation, equal
/// vectors stay equal, and there is nothing to store. The hash and the choice of channels are part
/// of the bank format: others are another `kBankFormat`.
class Projection {
 public:
  Projection(const kernels::Kernels& kernels, const ChannelShape& shape);

  [[nodiscard]] const ChannelShape& shape() const noexcept { return shape_; }
  [[nodiscard]] const kernels::Kernels& kernels() const noexcept { return kernels_; }

  /// Each channel on its own: out [channels][kChannelCoordinates] of vectors [channels][head_dim].
  void coordinates(std::span<const float> vectors, std::span<float> out) const;
  /// The first third of a token's channels together: out [kSketchCoordinates], of length 1. Keys of
  /// early layers say which characters stand there, those of later ones what it is about: all
  /// together, KEY_32 is found where KEY_33 is.
  void sketch(std::span<const float> vectors, std::span<float> out) const;

 private:
  const kernels::Kernels& kernels_;
  ChannelShape shape_;
  std::vector<kernels::ProjectedTo> to_coordinates_;  ///< [channels * head_dim]
  std::vector<kernels::ProjectedTo> to_sketch_;       ///< Of the first channels' inputs.
};

}  // namespace spel::memory

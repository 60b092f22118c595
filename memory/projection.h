// The fixed sparse projections that turn keys and queries into a few coordinates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "memory/note.h"

namespace spel::memory {

/// Immutable; safe from any thread. Every input is added to one output with a fixed sign, both
/// chosen by a hash of its index (a count sketch): inner products are kept in expectation, equal
/// vectors stay equal, and there is nothing to store. The hash and the choice of channels are part
/// of the bank format: others are another `kBankFormat`.
class Projection {
 public:
  explicit Projection(const ChannelShape& shape);

  [[nodiscard]] const ChannelShape& shape() const noexcept { return shape_; }

  /// Each channel on its own: out [channels][kChannelCoordinates] of vectors [channels][head_dim].
  void coordinates(std::span<const float> vectors, std::span<float> out) const;
  /// The first third of a token's channels together: out [kSketchCoordinates], of length 1. Keys of
  /// early layers say which characters stand there, those of later ones what it is about: all
  /// together, KEY_32 is found where KEY_33 is.
  void sketch(std::span<const float> vectors, std::span<float> out) const;

 private:
  struct Place {
    std::uint16_t coordinate;
    std::uint16_t sketch;
    float coordinate_sign;
    float sketch_sign;
  };

  ChannelShape shape_;
  std::vector<Place> places_;  ///< [channels * head_dim]
  std::size_t sketched_ = 0;   ///< Inputs that go into a sketch: those of the first channels.
};

}  // namespace spel::memory

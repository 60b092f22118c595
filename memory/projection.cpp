#include "memory/projection.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace spel::memory {
namespace {

/// splitmix64: a good hash of small integers in five operations.
std::uint64_t hash(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

/// One in so many channels, from the first layer up, is sketched.
constexpr std::size_t kSketchedShare = 3;

float sign_of(std::uint64_t bit) { return (bit & 1U) != 0 ? 1.0F : -1.0F; }

}  // namespace

Projection::Projection(const ChannelShape& shape)
    : shape_(shape),
      places_(shape.width()),
      sketched_((shape.channels + kSketchedShare - 1) / kSketchedShare * shape.head_dim) {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const std::uint64_t bits = hash(i);
    places_[i].coordinate = static_cast<std::uint16_t>((bits >> 8U) % kChannelCoordinates);
    places_[i].sketch = static_cast<std::uint16_t>((bits >> 24U) % kSketchCoordinates);
    places_[i].coordinate_sign = sign_of(bits);
    places_[i].sketch_sign = sign_of(bits >> 1U);
  }
}

void Projection::coordinates(std::span<const float> vectors, std::span<float> out) const {
  assert(vectors.size() == shape_.width());
  assert(out.size() == shape_.channels * kChannelCoordinates);
  std::fill(out.begin(), out.end(), 0.0F);
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    const std::size_t channel = i / shape_.head_dim;
    out[channel * kChannelCoordinates + places_[i].coordinate] +=
        places_[i].coordinate_sign * vectors[i];
  }
}

void Projection::sketch(std::span<const float> vectors, std::span<float> out) const {
  assert(vectors.size() == shape_.width());
  assert(out.size() == kSketchCoordinates);
  std::fill(out.begin(), out.end(), 0.0F);
  for (std::size_t i = 0; i < sketched_; ++i) {
    out[places_[i].sketch] += places_[i].sketch_sign * vectors[i];
  }
  float squares = 0.0F;
  for (const float value : out) {
    squares += value * value;
  }
  const float scale = squares > 0.0F ? 1.0F / std::sqrt(squares) : 0.0F;
  for (float& value : out) {
    value *= scale;
  }
}

}  // namespace spel::memory

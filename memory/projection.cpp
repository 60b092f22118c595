#include "memory/projection.h"

#include <algorithm>
#include <cassert>

#include "kernels/kernels.h"

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

Projection::Projection(const kernels::Kernels& kernels, const ChannelShape& shape)
    : kernels_(kernels), shape_(shape), to_coordinates_(shape.width()) {
  const std::size_t sketched =
      (shape.channels + kSketchedShare - 1) / kSketchedShare * shape.head_dim;
  for (std::size_t i = 0; i < to_coordinates_.size(); ++i) {
    const std::uint64_t bits = hash(i);
    const std::size_t channel = i / shape.head_dim;
    to_coordinates_[i] = {static_cast<std::uint32_t>(channel * kChannelCoordinates +
                                                     (bits >> 8U) % kChannelCoordinates),
                          sign_of(bits)};
    if (i < sketched) {
      to_sketch_.push_back(
          {static_cast<std::uint32_t>((bits >> 24U) % kSketchCoordinates), sign_of(bits >> 1U)});
    }
  }
}

void Projection::coordinates(std::span<const float> vectors, std::span<float> out) const {
  assert(vectors.size() == shape_.width());
  assert(out.size() == shape_.channels * kChannelCoordinates);
  std::fill(out.begin(), out.end(), 0.0F);
  kernels_.project(vectors.data(), to_coordinates_.data(), to_coordinates_.size(), out.data());
}

void Projection::sketch(std::span<const float> vectors, std::span<float> out) const {
  assert(vectors.size() == shape_.width());
  assert(out.size() == kSketchCoordinates);
  std::fill(out.begin(), out.end(), 0.0F);
  kernels_.project(vectors.data(), to_sketch_.data(), to_sketch_.size(), out.data());
  kernels_.unit_rows(out.data(), 1, out.size());
}

}  // namespace spel::memory

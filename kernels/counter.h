// The counter-based generator of the noise that choices are made with: its constants, for the
// scalar form (engine/sample/noise.h) and the lanes (generic/choose.h).
//
//   mix(x): x += kMixStep; x = (x ^ x >> 30) kMixFirst; x = (x ^ x >> 27) kMixSecond; x ^ x >> 31
//
// the finaliser of SplitMix64, a bijection with good avalanche (Steele, Lea, Flood: Fast Splittable
// Pseudorandom Number Generators, 2014).
#pragma once

#include <cstdint>

namespace spel::kernels {

inline constexpr std::uint64_t kMixStep = 0x9e3779b97f4a7c15ULL;
inline constexpr std::uint64_t kMixFirst = 0xbf58476d1ce4e5b9ULL;
inline constexpr std::uint64_t kMixSecond = 0x94d049bb133111ebULL;

// A draw is u = ((x >> kDrawShift) + 1/2) 2^-52. What it falls short of 1 by, times 2^52, is
// (~x >> kDrawShift) + 1/2, exact in a double: the bits below the exponent of 2^52, less
// kDrawOffset.
inline constexpr int kDrawShift = 12;
inline constexpr std::uint64_t kDrawExponent = 0x4330000000000000ULL;
inline constexpr double kDrawOffset = 0x1p52 - 0.5;

}  // namespace spel::kernels

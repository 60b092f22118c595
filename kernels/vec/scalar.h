// The 16 virtual lanes as plain arrays: the executable form of NUMERICS.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/vec/interleave.h"

namespace spel::kernels {
namespace {

struct F16 {
  float v[16];
};
struct I16 {
  std::int32_t v[16];
};

constexpr int kDenseTileRows = 6;
constexpr std::size_t kPrefetchLines = 128;
constexpr int dense_panels(int rows) { return rows == 1 ? 4 : rows == 2 ? 2 : 1; }
constexpr int kMaskedFieldRows = 1;
constexpr int masked_field_panels(int) { return 1; }
constexpr int kTernaryTileRows = 6;
constexpr int shifted_field_panels(int) { return 1; }
constexpr bool kInt8Biased = false;
constexpr int kFieldShift[4] = {0, 0, 0, 0};
constexpr int attention_vectors(int) { return 1; }

template <class Result, class Op>
inline Result each_lane(Op op) {
  Result r;
  for (int i = 0; i < 16; ++i) {
    r.v[i] = op(i);
  }
  return r;
}

inline float as_float(std::int32_t x) { return __builtin_bit_cast(float, x); }
inline std::int32_t as_int(float x) { return __builtin_bit_cast(std::int32_t, x); }
/// Integer arithmetic modulo 2^32, as the vector instructions do it.
inline std::int32_t wrap(std::uint32_t x) { return static_cast<std::int32_t>(x); }
inline std::uint32_t raw(std::int32_t x) { return static_cast<std::uint32_t>(x); }
inline std::int32_t byte_at(std::int32_t word, int b) {
  return static_cast<std::int8_t>((raw(word) >> (8 * b)) & 0xFFU);
}

inline F16 load(const float* p) {
  return each_lane<F16>([&](int i) { return p[i]; });
}
inline void store(float* p, F16 a) {
  for (int i = 0; i < 16; ++i) {
    p[i] = a.v[i];
  }
}
/// This set has no stores past the caches: plain ones.
inline void store_streamed(float* p, F16 a) { store(p, a); }
inline void end_streamed_stores() {}
inline F16 load_partial(const float* p, std::size_t n) {
  F16 r = {};
  for (std::size_t i = 0; i < n; ++i) {
    r.v[i] = p[i];
  }
  return r;
}
inline void store_partial(float* p, std::size_t n, F16 a) {
  for (std::size_t i = 0; i < n; ++i) {
    p[i] = a.v[i];
  }
}
/// load_partial and store_partial for n <= 16, n = 16 being usual.
inline F16 load_lanes(const float* p, std::size_t n) {
  if (n == 16) {
    return load(p);
  }
  return load_partial(p, n);
}
inline void store_lanes(float* p, std::size_t n, F16 a) {
  if (n == 16) {
    store(p, a);
  } else {
    store_partial(p, n, a);
  }
}
inline F16 splat(float x) {
  return each_lane<F16>([&](int) { return x; });
}
inline F16 add(F16 a, F16 b) {
  return each_lane<F16>([&](int i) { return a.v[i] + b.v[i]; });
}
inline F16 sub(F16 a, F16 b) {
  return each_lane<F16>([&](int i) { return a.v[i] - b.v[i]; });
}
inline F16 mul(F16 a, F16 b) {
  return each_lane<F16>([&](int i) { return a.v[i] * b.v[i]; });
}
inline F16 div(F16 a, F16 b) {
  return each_lane<F16>([&](int i) { return a.v[i] / b.v[i]; });
}
inline float fma_one(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline F16 fma(F16 a, F16 b, F16 c) {
  return each_lane<F16>([&](int i) { return fma_one(a.v[i], b.v[i], c.v[i]); });
}
/// a > b ? a : b, so a NaN in either place gives b.
inline F16 max(F16 a, F16 b) {
  return each_lane<F16>([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
inline F16 min(F16 a, F16 b) {
  return each_lane<F16>([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}
inline F16 abs(F16 a) {
  return each_lane<F16>([&](int i) { return __builtin_fabsf(a.v[i]); });
}
inline F16 swap_pairs(F16 a) {
  return each_lane<F16>([&](int i) { return a.v[i ^ 1]; });
}
inline F16 load_doubled(const float* p) {
  return each_lane<F16>([&](int i) { return p[i / 2]; });
}
inline F16 negate_even(F16 a) {
  return each_lane<F16>([&](int i) { return i % 2 == 0 ? -a.v[i] : a.v[i]; });
}

inline I16 bits(F16 a) {
  return each_lane<I16>([&](int i) { return as_int(a.v[i]); });
}
inline F16 from_bits(I16 a) {
  return each_lane<F16>([&](int i) { return as_float(a.v[i]); });
}
inline I16 load_words(const void* p) {
  I16 r;
  __builtin_memcpy(&r, p, sizeof(r));
  return r;
}
inline I16 splat_word(std::int32_t x) {
  return each_lane<I16>([&](int) { return x; });
}
inline I16 add(I16 a, I16 b) {
  return each_lane<I16>([&](int i) { return wrap(raw(a.v[i]) + raw(b.v[i])); });
}
inline I16 sub(I16 a, I16 b) {
  return each_lane<I16>([&](int i) { return wrap(raw(a.v[i]) - raw(b.v[i])); });
}
template <int N>
inline I16 shift_left(I16 a) {
  return each_lane<I16>([&](int i) { return wrap(raw(a.v[i]) << N); });
}
template <int N>
inline I16 shift_right_signed(I16 a) {
  return each_lane<I16>([&](int i) { return a.v[i] >> N; });
}
inline F16 to_float(I16 a) {
  return each_lane<F16>([&](int i) { return static_cast<float>(a.v[i]); });
}
inline void store_rounded_int8(std::int8_t* q, F16 a) {
  // Adding 1.5 * 2^23 rounds to an integer, halves to even, and leaves it in the low bits.
  for (int i = 0; i < 16; ++i) {
    q[i] = static_cast<std::int8_t>(as_int(a.v[i] + 0x1.8p+23F) & 0xFF);
  }
}

inline F16 load_bf16(const std::uint16_t* p) {
  return each_lane<F16>([&](int i) { return as_float(wrap(std::uint32_t{p[i]} << 16)); });
}
/// The lane before, 0 in the first.
inline I16 shift_up(I16 a) {
  return each_lane<I16>([&](int i) { return i == 0 ? 0 : a.v[i - 1]; });
}
inline F16 bf16_low(I16 a) { return from_bits(shift_left<16>(a)); }
inline F16 bf16_high(I16 a) {
  return each_lane<F16>([&](int i) { return as_float(wrap(raw(a.v[i]) & 0xFFFF0000U)); });
}

/// w is stored plus 128.
inline I16 dot_weights(I16 acc, I16 w, I16 x) {
  return each_lane<I16>([&](int i) {
    std::int32_t sum = acc.v[i];
    for (int b = 0; b < 4; ++b) {
      sum += byte_at(wrap(raw(w.v[i]) ^ 0x80808080U), b) * byte_at(x.v[i], b);
    }
    return sum;
  });
}
template <int F>
inline I16 codes(I16 packed) {
  return each_lane<I16>([&](int i) { return wrap((raw(packed.v[i]) >> (2 * F)) & 0x03030303U); });
}
inline I16 dot_bytes(I16 acc, I16 u, I16 s) {
  return each_lane<I16>([&](int i) {
    std::int32_t sum = acc.v[i];
    for (int b = 0; b < 4; ++b) {
      sum += byte_at(u.v[i], b) * byte_at(s.v[i], b);
    }
    return sum;
  });
}
/// The codes of field F times 2^kFieldShift[F], as bytes.
template <int F>
inline I16 masked_field(I16 packed) {
  return codes<F>(packed);
}
inline I16 add_sub(I16 acc, I16 code, I16 x) {
  return each_lane<I16>([&](int i) {
    std::int32_t sum = acc.v[i];
    for (int b = 0; b < 4; ++b) {
      if (byte_at(code.v[i], b) == 2) {
        sum += byte_at(x.v[i], b);
      }
      if (byte_at(code.v[i], b) == 0) {
        sum -= byte_at(x.v[i], b);
      }
    }
    return sum;
  });
}

inline void prefetch(const void*) {}
inline float square_root(float x) { return __builtin_sqrtf(x); }

inline float sum_lanes(F16 a) {
  for (int half = 8; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) {
      a.v[l] += a.v[l + half];
    }
  }
  return a.v[0];
}
inline float max_lanes(F16 a) {
  for (int half = 8; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) {
      a.v[l] = a.v[l] > a.v[l + half] ? a.v[l] : a.v[l + half];
    }
  }
  return a.v[0];
}
inline std::int32_t max_lanes(I16 a) {
  std::int32_t largest = a.v[0];
  for (const std::int32_t lane : a.v) {
    largest = lane > largest ? lane : largest;
  }
  return largest;
}
inline F16 sum_lanes_of_16(const F16 (&a)[16]) {
  return each_lane<F16>([&](int i) { return sum_lanes(a[i]); });
}

// --- The same lanes with 64 bits each ------------------------------------------------------------

struct D16 {
  double v[16];
};
struct W16 {
  std::uint64_t v[16];
};

inline double as_double(std::uint64_t x) { return __builtin_bit_cast(double, x); }
inline std::uint64_t as_word(double x) { return __builtin_bit_cast(std::uint64_t, x); }

inline D16 load(const double* p) {
  return each_lane<D16>([&](int i) { return p[i]; });
}
inline void store(double* p, const D16& a) {
  for (int i = 0; i < 16; ++i) {
    p[i] = a.v[i];
  }
}
inline D16 widen(F16 a) {
  return each_lane<D16>([&](int i) { return static_cast<double>(a.v[i]); });
}
inline D16 splat_f64(double x) {
  return each_lane<D16>([&](int) { return x; });
}
inline D16 add(const D16& a, const D16& b) {
  return each_lane<D16>([&](int i) { return a.v[i] + b.v[i]; });
}
inline D16 sub(const D16& a, const D16& b) {
  return each_lane<D16>([&](int i) { return a.v[i] - b.v[i]; });
}
inline D16 mul(const D16& a, const D16& b) {
  return each_lane<D16>([&](int i) { return a.v[i] * b.v[i]; });
}
inline D16 div(const D16& a, const D16& b) {
  return each_lane<D16>([&](int i) { return a.v[i] / b.v[i]; });
}
inline D16 fma(const D16& a, const D16& b, const D16& c) {
  return each_lane<D16>([&](int i) { return __builtin_fma(a.v[i], b.v[i], c.v[i]); });
}
/// a > b ? a : b, so a NaN in either place gives b.
inline D16 max(const D16& a, const D16& b) {
  return each_lane<D16>([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
/// a < b ? a : b
inline D16 min(const D16& a, const D16& b) {
  return each_lane<D16>([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}
/// The fixed tree: lanes l and l+8, then l+4, l+2, l+1.
inline double sum_lanes(D16 a) {
  for (int half = 8; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) {
      a.v[l] += a.v[l + half];
    }
  }
  return a.v[0];
}

inline W16 bits(const D16& a) {
  return each_lane<W16>([&](int i) { return as_word(a.v[i]); });
}
inline D16 from_bits(const W16& a) {
  return each_lane<D16>([&](int i) { return as_double(a.v[i]); });
}
inline W16 splat_u64(std::uint64_t x) {
  return each_lane<W16>([&](int) { return x; });
}
/// 0, 1, … 15
inline W16 lane_numbers() {
  return each_lane<W16>([](int i) { return static_cast<std::uint64_t>(i); });
}
inline W16 add(const W16& a, const W16& b) {
  return each_lane<W16>([&](int i) { return a.v[i] + b.v[i]; });
}
inline W16 sub(const W16& a, const W16& b) {
  return each_lane<W16>([&](int i) { return a.v[i] - b.v[i]; });
}
/// The product modulo 2^64.
inline W16 mul(const W16& a, const W16& b) {
  return each_lane<W16>([&](int i) { return a.v[i] * b.v[i]; });
}
inline W16 bit_xor(const W16& a, const W16& b) {
  return each_lane<W16>([&](int i) { return a.v[i] ^ b.v[i]; });
}
inline W16 bit_or(const W16& a, const W16& b) {
  return each_lane<W16>([&](int i) { return a.v[i] | b.v[i]; });
}
template <int N>
inline W16 shift_left(const W16& a) {
  return each_lane<W16>([&](int i) { return a.v[i] << N; });
}
template <int N>
inline W16 shift_right(const W16& a) {
  return each_lane<W16>([&](int i) { return a.v[i] >> N; });
}
/// The upper half of each lane.
inline I16 high_words(const W16& a) {
  return each_lane<I16>([&](int i) { return wrap(static_cast<std::uint32_t>(a.v[i] >> 32)); });
}

/// Bit l: a <= b in lane l; not where either is NaN.
inline unsigned at_most(F16 a, F16 b) {
  unsigned mask = 0;
  for (int i = 0; i < 16; ++i) {
    mask |= (a.v[i] <= b.v[i] ? 1U : 0U) << i;
  }
  return mask;
}

}  // namespace
}  // namespace spel::kernels

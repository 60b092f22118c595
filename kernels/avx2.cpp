// The kernels for AVX2 and FMA, byte products by maddubs.
#include "kernels/vec/avx2.h"

#include "kernels/function_table.h"

namespace spel::kernels {
namespace {

constexpr bool kInt8Biased = false;

/// maddubs saturates at 16 bits: |u| <= 128 and |s| <= 127 keep a pair within 32,512.
inline __m256i dot_half(__m256i acc, __m256i u, __m256i s) {
  const __m256i pairs = _mm256_maddubs_epi16(u, s);
  return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
inline I16 dot_bytes(I16 acc, I16 u, I16 s) {
  return {dot_half(acc.lo, u.lo, s.lo), dot_half(acc.hi, u.hi, s.hi)};
}
/// w + 128 would overflow a pair, so the bias is taken off and w's sign moved to x.
inline __m256i dot_weights_half(__m256i acc, __m256i w, __m256i x) {
  const __m256i value = _mm256_xor_si256(w, _mm256_set1_epi8(static_cast<char>(0x80)));
  return dot_half(acc, _mm256_abs_epi8(value), _mm256_sign_epi8(x, value));
}
inline I16 dot_weights(I16 acc, I16 w, I16 x) {
  return {dot_weights_half(acc.lo, w.lo, x.lo), dot_weights_half(acc.hi, w.hi, x.hi)};
}

}  // namespace
}  // namespace spel::kernels

// The bodies are written against the lanes and products above.
#include "kernels/generic/table.h"

namespace spel::kernels {

constinit const FunctionTable kAvx2Table = make_table();

}  // namespace spel::kernels

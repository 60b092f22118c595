// The kernels for AVX2, FMA and AVX-VNNI.
#include "kernels/function_table.h"
#include "kernels/vec/avx2.h"

namespace spel::kernels {
namespace {

constexpr bool kInt8Biased = true;

inline I16 dot_bytes(I16 acc, I16 u, I16 s) {
  return {_mm256_dpbusd_avx_epi32(acc.lo, u.lo, s.lo), _mm256_dpbusd_avx_epi32(acc.hi, u.hi, s.hi)};
}
inline I16 dot_weights(I16 acc, I16 w, I16 x) { return dot_bytes(acc, w, x); }
template <int F>
inline I16 dot_field(I16 acc, I16 packed, I16 x) {
  return dot_bytes(acc, masked_field<F>(packed), x);
}

}  // namespace
}  // namespace spel::kernels

// The bodies are written against the lanes and products above.
#include "kernels/generic/table.h"

namespace spel::kernels {

constinit const FunctionTable kAvx2VnniTable = make_table();

}  // namespace spel::kernels

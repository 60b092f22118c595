// The kernels for AVX2, FMA and AVX-VNNI.
#include "kernels/function_table.h"
#include "kernels/vec/avx2.h"

namespace spel::kernels {
namespace {

constexpr bool kInt8Biased = true;

inline I16 dot_bytes(I16 acc, I16 u, I16 s) {
  // Not the intrinsic: GCC 12 surrounds it with two register copies.
  asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(acc.lo) : "x"(u.lo), "x"(s.lo));
  asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(acc.hi) : "x"(u.hi), "x"(s.hi));
  return acc;
}
inline I16 dot_weights(I16 acc, I16 w, I16 x) { return dot_bytes(acc, w, x); }

}  // namespace
}  // namespace spel::kernels

// The bodies are written against the lanes and products above.
#include "kernels/generic/table.h"

namespace spel::kernels {

constinit const FunctionTable kAvx2VnniTable = make_table();

}  // namespace spel::kernels

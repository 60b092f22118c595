// One token for a batch of sequences: the recurrent and the attention mixer with their state.
// Used to let the target write text for the distillation of its draft; speed over exactness.
#include <cmath>
#include <omp.h>
#include <vector>

#include "simd.hpp"

namespace spel_train {
namespace {

float dot_vec(const Vec* a, const Vec* b) {
  Vec s = _mm512_mul_ps(a[0], b[0]);
  for (int j = 1; j < 4; ++j) s = fma(a[j], b[j], s);
  return _mm512_reduce_add_ps(s);
}

}  // namespace

extern "C" {

// qkv [batch][3*heads*64]; state [batch][heads][64 dv][64 dk]; out [batch][heads*64].
void delta_step(const bf16* qkv, int batch, int heads, const float* decay, const float* write,
                float* state, bf16* out) {
  const int width = heads * 64;
#pragma omp parallel for schedule(dynamic, 8)
  for (int bh = 0; bh < batch * heads; ++bh) {
    const int b = bh / heads, h = bh % heads;
    const bf16* p = qkv + static_cast<std::size_t>(b) * 3 * width + h * 64;
    alignas(64) float q[64], k[64], v[64], o[64];
    load_unit_row(p, q, 0.125f);
    load_unit_row(p + width, k, 1.f);
    load_row(p + 2 * width, v);
    Vec qv[4], kv[4];
    for (int j = 0; j < 4; ++j) qv[j] = load(q + 16 * j), kv[j] = load(k + 16 * j);
    const Vec a = splat(decay[h]);
    float* s = state + static_cast<std::size_t>(bh) * 4096;
    for (int r = 0; r < 64; ++r) {
      Vec row[4];
      for (int j = 0; j < 4; ++j) row[j] = load(s + r * 64 + 16 * j);
      const Vec u = splat(write[h] * (v[r] - dot_vec(row, kv)));
      for (int j = 0; j < 4; ++j) {
        row[j] = fma(u, kv[j], _mm512_mul_ps(a, row[j]));
        store(s + r * 64 + 16 * j, row[j]);
      }
      o[r] = dot_vec(row, qv);
    }
    store_row(out + static_cast<std::size_t>(b) * width + h * 64, o);
  }
}

// keys and values [batch][heads][max_len][64]; position `at` is written, 0..at are read.
void attention_step(const bf16* qkv, int batch, int heads, float scale, const float* cos,
                    const float* sin, bf16* keys, bf16* values, int max_len, int at, bf16* out) {
  const int width = heads * 64;
#pragma omp parallel
  {
    std::vector<float> weight(at + 1);
#pragma omp for schedule(dynamic, 8)
    for (int bh = 0; bh < batch * heads; ++bh) {
      const int b = bh / heads, h = bh % heads;
      const bf16* p = qkv + static_cast<std::size_t>(b) * 3 * width + h * 64;
      alignas(64) float q[64], k[64], v[64], o[64] = {};
      load_unit_row(p, q, 1.f);
      load_unit_row(p + width, k, 1.f);
      load_row(p + 2 * width, v);
      const std::size_t base = static_cast<std::size_t>(bh) * max_len * 64;
      Vec qv[4];
      for (int j = 0; j < 4; ++j) {
        const Vec c = load(cos + 16 * j), s = load(sin + 16 * j);
        const auto turn = [&](const float* x) {
          const Vec a = load(x + 16 * j);
          return fma(a, c, _mm512_mul_ps(_mm512_permute_ps(a, 0xB1), s));
        };
        qv[j] = turn(q);
        store_bf16(keys + base + at * 64 + 16 * j, turn(k));
        store_bf16(values + base + at * 64 + 16 * j, load(v + 16 * j));
      }
      float total = 0.f;
      for (int t = 0; t <= at; ++t) {
        Vec kv[4];
        for (int j = 0; j < 4; ++j) kv[j] = load_bf16(keys + base + t * 64 + 16 * j);
        weight[t] = std::exp(scale * (dot_vec(qv, kv) - 1.f));
        total += weight[t];
      }
      for (int t = 0; t <= at; ++t) {
        const Vec w = splat(weight[t] / total);
        for (int j = 0; j < 64; j += 16)
          store(o + j, fma(w, load_bf16(values + base + t * 64 + j), load(o + j)));
      }
      store_row(out + static_cast<std::size_t>(b) * width + h * 64, o);
    }
  }
}

}  // extern "C"
}  // namespace spel_train

// The attention mixer: unit q and k, rotary positions, softmax(scale * q.k), blocks of 64 tokens.
//
// Unit vectors bound the logits by `scale`, so the softmax needs no running maximum.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <omp.h>

#include "tile.hpp"

namespace spel_train {
namespace {

struct Workspace {
  alignas(64) Mat score, out, dscore, dout;
  alignas(64) MatB rows, pair, tmp, do_rows, do_pair;
};

Workspace& workspace() {
  static thread_local std::unique_ptr<Workspace> space;
  if (!space) space = std::make_unique<Workspace>();
  return *space;
}

// One head's sequence as operands: q, k in f32 (unit, rotated) and the bf16 forms each product
// wants.
struct Head {
  float *q, *k, *dq, *dk, *dv, *q_norm, *k_norm;
  bf16 *q_rows, *q_pair, *k_pair, *kt_pair, *v_pair, *vt_pair;
};

Head head_buffers(std::size_t time) {
  static thread_local void* memory = nullptr;
  static thread_local std::size_t size = 0;
  const std::size_t n = time * 64, bytes = (5 * n + 2 * time) * 4 + 6 * n * 2;
  if (size < bytes) {
    std::free(memory);
    memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    size = bytes;
  }
  float* f = static_cast<float*>(memory);
  Head h{f,  f + n, f + 2 * n, f + 3 * n, f + 4 * n, f + 5 * n, f + 5 * n + time,
         {}, {},    {},        {},        {},        {}};
  bf16* b = reinterpret_cast<bf16*>(f + 5 * n + 2 * time);
  h.q_rows = b, h.q_pair = b + n, h.k_pair = b + 2 * n, h.kt_pair = b + 3 * n, h.v_pair = b + 4 * n;
  h.vt_pair = b + 5 * n;
  return h;
}

// cos and sin hold every pair's value twice, sin with the sign of the rotation.
void rotate(float* x, const float* cos, const float* sin, bool inverse) {
  for (int j = 0; j < 64; j += 16) {
    const Vec a = load(x + j), swapped = _mm512_permute_ps(a, 0xB1);
    const Vec s = inverse ? _mm512_sub_ps(splat(0.f), load(sin + j)) : load(sin + j);
    store(x + j, fma(a, load(cos + j), _mm512_mul_ps(swapped, s)));
  }
}

void load_head(Head& s, const bf16* qkv, std::size_t row0, int time, int width, int head,
               const float* cos, const float* sin, bool backward) {
  alignas(64) float v[64 * 64];
  for (int block = 0; block < time; block += 64) {
    const std::size_t at = static_cast<std::size_t>(block) * 64;
    for (int i = 0; i < 64; ++i) {
      const std::size_t t = block + i;
      const bf16* p = qkv + (row0 + t) * 3 * width + head * 64;
      s.q_norm[t] = load_unit_row(p, s.q + t * 64, 1.f);
      s.k_norm[t] = load_unit_row(p + width, s.k + t * 64, 1.f);
      load_row(p + 2 * width, v + i * 64);
      rotate(s.q + t * 64, cos + t * 64, sin + t * 64, false);
      rotate(s.k + t * 64, cos + t * 64, sin + t * 64, false);
    }
    MatB& rows = workspace().rows;
    as_rows(s.q + at, s.q_rows + at);
    as_rows(s.k + at, rows);
    rows_to_paired_transpose(rows, s.kt_pair + at);
    as_paired(v, s.v_pair + at);
    if (!backward) continue;
    as_paired(s.q + at, s.q_pair + at);
    as_paired(s.k + at, s.k_pair + at);
    as_rows(v, rows);
    rows_to_paired_transpose(rows, s.vt_pair + at);
  }
}

// score = exp(scale * (score - 1)), causal on the diagonal block; row sums are added to `sums`.
void exponentials(float* score, float scale, bool diagonal, float* sums) {
  const Vec k = splat(scale), minus = splat(-scale);
  for (int i = 0; i < 64; ++i) {
    Vec total = splat(0.f);
    for (int j = 0; j < 64; j += 16) {
      const int seen = i - j + 1;
      const auto mask = static_cast<__mmask16>(!diagonal || seen >= 16 ? 0xffff
                                               : seen <= 0             ? 0
                                                                       : (1u << seen) - 1);
      const Vec e = _mm512_maskz_mov_ps(mask, exp_ps(fma(load(score + i * 64 + j), k, minus)));
      total = _mm512_add_ps(total, e);
      store(score + i * 64 + j, e);
    }
    sums[i] += _mm512_reduce_add_ps(total);
  }
}

}  // namespace

extern "C" {

// qkv [batch*time][3*heads*64] -> out [batch*time][heads*64]; row_sums [batch*heads][time].
void attention_forward(const bf16* qkv, int batch, int time, int heads, float scale,
                       const float* cos, const float* sin, bf16* out, float* row_sums) {
  const int width = heads * 64, blocks = time / 64;
#pragma omp parallel
  {
    TileScope tiles;
    Workspace& s = workspace();
#pragma omp for schedule(dynamic)
    for (int bh = 0; bh < batch * heads; ++bh) {
      const int h = bh % heads;
      const std::size_t row0 = static_cast<std::size_t>(bh / heads) * time;
      Head head = head_buffers(time);
      load_head(head, qkv, row0, time, width, h, cos, sin, false);
      for (int i = 0; i < blocks; ++i) {
        float* sums = row_sums + static_cast<std::size_t>(bh) * time + i * 64;
        std::memset(sums, 0, 64 * sizeof(float));
        for (int j = 0; j <= i; ++j) {
          mat_mul(head.q_rows + i * 4096, head.kt_pair + j * 4096, s.score, false);
          exponentials(s.score, scale, i == j, sums);
          as_rows(s.score, s.rows);
          mat_mul(s.rows, head.v_pair + j * 4096, s.out, j > 0);
        }
        for (int r = 0; r < 64; ++r) {
          scale_row(s.out + r * 64, s.out + r * 64, 1.f / sums[r]);
          store_row(out + (row0 + i * 64 + r) * width + h * 64, s.out + r * 64);
        }
      }
    }
  }
}

void attention_backward(const bf16* qkv, int batch, int time, int heads, float scale,
                        const float* cos, const float* sin, const bf16* out, const float* row_sums,
                        const bf16* d_out, bf16* d_qkv) {
  const int width = heads * 64, blocks = time / 64;
#pragma omp parallel
  {
    TileScope tiles;
    Workspace& s = workspace();
#pragma omp for schedule(dynamic)
    for (int bh = 0; bh < batch * heads; ++bh) {
      const int h = bh % heads;
      const std::size_t row0 = static_cast<std::size_t>(bh / heads) * time;
      Head head = head_buffers(time);
      load_head(head, qkv, row0, time, width, h, cos, sin, true);
      std::memset(head.dq, 0, static_cast<std::size_t>(time) * 64 * 3 * sizeof(float));
      for (int i = 0; i < blocks; ++i) {
        const float* sums = row_sums + static_cast<std::size_t>(bh) * time + i * 64;
        float along[64], inverse[64], unused[64];
        for (int r = 0; r < 64; ++r) {
          const std::size_t at = (row0 + i * 64 + r) * width + h * 64;
          load_row(d_out + at, s.dout + r * 64);
          load_row(out + at, s.out + r * 64);
          along[r] = dot_row(s.dout + r * 64, s.out + r * 64);
          inverse[r] = 1.f / sums[r];
        }
        as_rows(s.dout, s.do_rows);
        as_paired(s.dout, s.do_pair);
        for (int j = 0; j <= i; ++j) {
          mat_mul(head.q_rows + i * 4096, head.kt_pair + j * 4096, s.score, false);
          exponentials(s.score, scale, i == j, unused);
          mat_mul(s.do_rows, head.vt_pair + j * 4096, s.dscore, false);
          for (int r = 0; r < 64; ++r) {
            const Vec e = splat(along[r]), inv = splat(inverse[r]), k = splat(scale);
            for (int c = r * 64; c < r * 64 + 64; c += 16) {
              const Vec p = _mm512_mul_ps(load(s.score + c), inv);
              store(s.score + c, p);
              store(s.dscore + c,
                    _mm512_mul_ps(_mm512_mul_ps(k, p), _mm512_sub_ps(load(s.dscore + c), e)));
            }
          }
          as_paired(s.score, s.pair);
          paired_to_rows_transpose(s.pair, s.tmp);
          mat_mul(s.tmp, s.do_pair, head.dv + j * 4096, true);
          as_rows(s.dscore, s.rows);
          mat_mul(s.rows, head.k_pair + j * 4096, head.dq + i * 4096, true);
          as_paired(s.dscore, s.pair);
          paired_to_rows_transpose(s.pair, s.tmp);
          mat_mul(s.tmp, head.q_pair + i * 4096, head.dk + j * 4096, true);
        }
      }
      for (int t = 0; t < time; ++t) {
        bf16* p = d_qkv + (row0 + t) * 3 * width + h * 64;
        const auto back = [&](const float* unit, float* grad, float inverse, bf16* to) {
          add_scaled_row(grad, unit, -dot_row(unit, grad));
          rotate(grad, cos + t * 64, sin + t * 64, true);
          scale_row(grad, grad, inverse);
          store_row(to, grad);
        };
        back(head.q + t * 64, head.dq + t * 64, head.q_norm[t], p);
        back(head.k + t * 64, head.dk + t * 64, head.k_norm[t], p + width);
        store_row(p + 2 * width, head.dv + t * 64);
      }
    }
  }
}

}  // extern "C"
}  // namespace spel_train

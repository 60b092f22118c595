// Memory-bound pieces: residual + RMSNorm, short convolution, SwiGLU, int8 fake quantisation.
#include <cmath>
#include <omp.h>
#include <vector>

#include "simd.hpp"

namespace spel_train {
extern "C" {

// sum = x + y (y may be null, then sum is not written), h = sum * rstd * w.
void add_norm(const float* x, const bf16* y, float* sum, const float* w, bf16* h, float* rstd,
              int rows, int width) {
#pragma omp parallel for
  for (int n = 0; n < rows; ++n) {
    const std::size_t at = static_cast<std::size_t>(n) * width;
    Vec square = splat(0.f);
    for (int j = 0; j < width; j += 16) {
      Vec v = load(x + at + j);
      if (y) {
        v = _mm512_add_ps(v, load_bf16(y + at + j));
        store(sum + at + j, v);
      }
      square = fma(v, v, square);
    }
    const float* in = y ? sum : x;
    rstd[n] = 1.f / std::sqrt(_mm512_reduce_add_ps(square) / width + 1e-5f);
    for (int j = 0; j < width; j += 16) {
      store_bf16(h + at + j,
                 _mm512_mul_ps(_mm512_mul_ps(load(in + at + j), splat(rstd[n])), load(w + j)));
    }
  }
}

// dx += the gradient through h = x * rstd * w; dx_bf16 is a copy for the next product.
void norm_backward(float* dx, const bf16* dh, const float* x, const float* rstd, const float* w,
                   float* dw, bf16* dx_bf16, int rows, int width) {
#pragma omp parallel
  {
    std::vector<float> local(width, 0.f);
#pragma omp for
    for (int n = 0; n < rows; ++n) {
      const std::size_t at = static_cast<std::size_t>(n) * width;
      const Vec r = splat(rstd[n]);
      Vec along = splat(0.f);
      for (int j = 0; j < width; j += 16) {
        along = fma(_mm512_mul_ps(load_bf16(dh + at + j), load(w + j)), load(x + at + j), along);
      }
      const Vec mean = splat(_mm512_reduce_add_ps(along) * rstd[n] / width);
      for (int j = 0; j < width; j += 16) {
        const Vec g = load_bf16(dh + at + j), unit = _mm512_mul_ps(load(x + at + j), r);
        store(local.data() + j, fma(g, unit, load(local.data() + j)));
        const Vec t = _mm512_fnmadd_ps(unit, mean, _mm512_mul_ps(g, load(w + j)));
        const Vec out = fma(r, t, load(dx + at + j));
        store(dx + at + j, out);
        store_bf16(dx_bf16 + at + j, out);
      }
    }
#pragma omp critical
    for (int j = 0; j < width; ++j) dw[j] += local[j];
  }
}

// Causal depthwise convolution with three taps [3][width], oldest first.
void conv_forward(const bf16* h, const float* taps, bf16* out, int batch, int time, int width) {
#pragma omp parallel for
  for (int n = 0; n < batch * time; ++n) {
    const int t = n % time;
    const bf16* a = h + static_cast<std::size_t>(n) * width;
    for (int j = 0; j < width; j += 16) {
      Vec v = _mm512_mul_ps(load_bf16(a + j), load(taps + 2 * width + j));
      if (t > 0) v = fma(load_bf16(a - width + j), load(taps + width + j), v);
      if (t > 1) v = fma(load_bf16(a - 2 * width + j), load(taps + j), v);
      store_bf16(out + static_cast<std::size_t>(n) * width + j, v);
    }
  }
}

void conv_backward(const bf16* d_out, const bf16* h, const float* taps, bf16* dh, float* d_taps,
                   int batch, int time, int width) {
#pragma omp parallel
  {
    std::vector<float> local(3 * static_cast<std::size_t>(width), 0.f);
    float* acc = local.data();
#pragma omp for
    for (int n = 0; n < batch * time; ++n) {
      const int t = n % time;
      const std::size_t at = static_cast<std::size_t>(n) * width;
      const bf16 *g = d_out + at, *x = h + at;
      for (int j = 0; j < width; j += 16) {
        const Vec gj = load_bf16(g + j);
        Vec v = _mm512_mul_ps(gj, load(taps + 2 * width + j));
        if (t + 1 < time) v = fma(load_bf16(g + width + j), load(taps + width + j), v);
        if (t + 2 < time) v = fma(load_bf16(g + 2 * width + j), load(taps + j), v);
        store_bf16(dh + at + j, v);
        store(acc + 2 * width + j, fma(gj, load_bf16(x + j), load(acc + 2 * width + j)));
        if (t > 0) store(acc + width + j, fma(gj, load_bf16(x - width + j), load(acc + width + j)));
        if (t > 1) store(acc + j, fma(gj, load_bf16(x - 2 * width + j), load(acc + j)));
      }
    }
#pragma omp critical
    for (int j = 0; j < 3 * width; ++j) d_taps[j] += acc[j];
  }
}

// ab [rows][2*width] holds gate and up; out = silu(gate) * up.
void swiglu_forward(const bf16* ab, bf16* out, int rows, int width) {
#pragma omp parallel for
  for (int n = 0; n < rows; ++n) {
    const bf16* row = ab + static_cast<std::size_t>(n) * 2 * width;
    for (int j = 0; j < width; j += 16) {
      const Vec a = load_bf16(row + j), b = load_bf16(row + width + j);
      const Vec silu = _mm512_mul_ps(a, sigmoid_ps(a));
      store_bf16(out + static_cast<std::size_t>(n) * width + j, _mm512_mul_ps(silu, b));
    }
  }
}

void swiglu_backward(const bf16* ab, const bf16* d_out, bf16* d_ab, int rows, int width) {
#pragma omp parallel for
  for (int n = 0; n < rows; ++n) {
    const std::size_t at = static_cast<std::size_t>(n) * 2 * width;
    for (int j = 0; j < width; j += 16) {
      const Vec a = load_bf16(ab + at + j), b = load_bf16(ab + at + width + j);
      const Vec g = load_bf16(d_out + static_cast<std::size_t>(n) * width + j);
      const Vec s = sigmoid_ps(a), silu = _mm512_mul_ps(a, s);
      const Vec slope = fma(silu, _mm512_sub_ps(splat(1.f), s), s);
      store_bf16(d_ab + at + j, _mm512_mul_ps(_mm512_mul_ps(g, b), slope));
      store_bf16(d_ab + at + width + j, _mm512_mul_ps(g, silu));
    }
  }
}

// Rounds every row to 255 levels of its own range, as the draft's kernels do (scale = max|x| /
// 127).
void fake_quantise_rows(bf16* x, int rows, int width) {
#pragma omp parallel for
  for (int n = 0; n < rows; ++n) {
    bf16* row = x + static_cast<std::size_t>(n) * width;
    Vec most = splat(0.f);
    for (int j = 0; j < width; j += 16)
      most = _mm512_max_ps(most, _mm512_abs_ps(load_bf16(row + j)));
    const float top = _mm512_reduce_max_ps(most);
    if (top <= 0.f) continue;
    for (int j = 0; j < width; j += 16) {
      const Vec level =
          _mm512_roundscale_ps(_mm512_mul_ps(load_bf16(row + j), splat(127.f / top)), 0);
      store_bf16(row + j, _mm512_mul_ps(splat(top / 127.f), level));
    }
  }
}

void embedding_backward(const std::int64_t* tokens, const float* dx, float* d_table, int rows,
                        int width) {
  for (int n = 0; n < rows; ++n) {
    float* to = d_table + tokens[n] * width;
    const float* from = dx + static_cast<std::size_t>(n) * width;
    for (int j = 0; j < width; j += 16) store(to + j, _mm512_add_ps(load(to + j), load(from + j)));
  }
}

}  // extern "C"
}  // namespace spel_train

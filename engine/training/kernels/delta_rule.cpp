// The recurrent mixer in chunks of 64 tokens, forward and backward.
//
//   S_t = a_t S_{t-1} + b_t (v_t - S_{t-1} k_t) k_t^T,   o_t = S_t q_t / 8,   q and k of unit
//   length
//
// Within a chunk, with Z the transposed state at its start, g_i the decay from the start to token i
// inclusive and p_i the same without token i:
//   (I + L) U = V - diag(p) K Z         L_ij = (k_i . k_j) b_j p_i / g_j   for j < i
//   O = diag(g) Q Z + A U               A_ij = (q_i . k_j) b_j g_i / g_j   for j <= i
//   Z' = g_63 Z + K^T diag(w) U         w_i = b_i g_63 / g_i
// Z and U of every chunk are kept for the backward pass, so that it need not run forward again.
#include <cmath>
#include <cstring>
#include <memory>
#include <omp.h>

#include "tile.hpp"

namespace spel_train {
namespace {

constexpr float kReadScale = 0.125f;  // 1 / sqrt(head_dim)

struct Decays {
  float before[64], through[64], write[64], whole;  // p, g, w, g_63
};

struct Workspace {
  alignas(64) Mat q, k, v, att, low, att_mask, low_mask, out, state, t1, t2, t3, dq, dk, dout,
      dstate, du, kds;
  alignas(64) MatB q_rows, k_rows, k_pair, kt_pair, m_rows, m_pair, u_pair, z_pair, tmp, tmp2,
      do_rows, do_pair;
  float q_norm[64], k_norm[64], neg[64];
};

Workspace& workspace() {
  static thread_local std::unique_ptr<Workspace> space;
  if (!space) space = std::make_unique<Workspace>();
  return *space;
}

// Decays of a chunk, and the factors of A and L that do not depend on the tokens' vectors.
void make_decays(Decays& d, float* att_mask, float* low_mask, const float* log_a, const float* beta,
                 int heads) {
  float log_sum[65] = {}, b[64], through[64];
  for (int i = 0; i < 64; ++i) log_sum[i + 1] = log_sum[i] + log_a[i * heads];
  d.whole = std::exp(log_sum[64]);
  for (int i = 0; i < 64; ++i) {
    b[i] = beta[i * heads];
    through[i] = log_sum[i + 1];
    d.before[i] = std::exp(log_sum[i]);
    d.through[i] = std::exp(log_sum[i + 1]);
    d.write[i] = b[i] * std::exp(log_sum[64] - log_sum[i + 1]);
  }
  const auto first = [](int count) {
    return static_cast<__mmask16>(count <= 0 ? 0 : count >= 16 ? 0xffff : (1u << count) - 1);
  };
  for (int i = 0; i < 64; ++i) {
    for (int j = 0; j < 64; j += 16) {
      const Vec bj = load(b + j), lj = load(through + j);
      store(att_mask + i * 64 + j,
            _mm512_maskz_mul_ps(first(i - j + 1), bj, exp_ps(splat(log_sum[i + 1]) - lj)));
      store(low_mask + i * 64 + j,
            _mm512_maskz_mul_ps(first(i - j), bj, exp_ps(splat(log_sum[i]) - lj)));
    }
  }
}

void multiply_by(float* a, const float* b) {
  for (int i = 0; i < 64 * 64; i += 16) store(a + i, _mm512_mul_ps(load(a + i), load(b + i)));
}

// Rows [first, first+32) of (I + L) U = R in place, given the rows above are done and subtracted.
void solve_block(const float* low, float* u, int first) {
  for (int i = first; i < first + 32; i += 4) {
    for (int r = 0; r < 4; ++r) {
      float* row = u + (i + r) * 64;
      Vec s0 = load(row), s1 = load(row + 16), s2 = load(row + 32), s3 = load(row + 48);
      for (int c = first; c < i + r; ++c) {
        const Vec l = splat(low[(i + r) * 64 + c]);
        const float* x = u + c * 64;
        s0 = _mm512_fnmadd_ps(l, load(x), s0);
        s1 = _mm512_fnmadd_ps(l, load(x + 16), s1);
        s2 = _mm512_fnmadd_ps(l, load(x + 32), s2);
        s3 = _mm512_fnmadd_ps(l, load(x + 48), s3);
      }
      store(row, s0), store(row + 16, s1), store(row + 32, s2), store(row + 48, s3);
    }
  }
}

// Rows [first, first+32) of (I + L)^T X = U in place, from the last row up.
void solve_block_transposed(const float* low, float* u, int first) {
  for (int i = first + 31; i >= first; --i) {
    float* row = u + i * 64;
    Vec s0 = load(row), s1 = load(row + 16), s2 = load(row + 32), s3 = load(row + 48);
    for (int c = i + 1; c < first + 32; ++c) {
      const Vec l = splat(low[c * 64 + i]);
      const float* x = u + c * 64;
      s0 = _mm512_fnmadd_ps(l, load(x), s0);
      s1 = _mm512_fnmadd_ps(l, load(x + 16), s1);
      s2 = _mm512_fnmadd_ps(l, load(x + 32), s2);
      s3 = _mm512_fnmadd_ps(l, load(x + 48), s3);
    }
    store(row, s0), store(row + 16, s1), store(row + 32, s2), store(row + 48, s3);
  }
}

// Both halves solved in f32, the coupling between them by tiles. neg_low_rows holds -L.
void solve(const float* low, const bf16* neg_low_rows, float* u, bf16* pair) {
  solve_block(low, u, 0);
  as_paired(u, pair);
  for (int j = 0; j < 64; j += 32) {
    block_product(neg_low_rows + 32 * 64, 64, 16 * 64, 32, pair + 2 * j, 128, u + 32 * 64 + j, 64,
                  1, true);
  }
  solve_block(low, u, 32);
}

void solve_transposed(const float* low, const bf16* neg_low_t_rows, float* u, bf16* pair) {
  solve_block_transposed(low, u, 32);
  as_paired(u, pair);
  for (int j = 0; j < 64; j += 32) {  // rows 0..31 of -L^T, columns 32..63
    block_product(neg_low_t_rows + 32, 64, 16 * 64, 32, pair + 16 * 128 + 2 * j, 128, u + j, 64, 1,
                  true);
  }
  solve_block_transposed(low, u, 0);
}

// q, k (unit), A and L of a chunk; leaves q_rows, k_rows, kt_pair.
void chunk_scores(Workspace& s, const Decays&) {
  as_rows(s.q, s.q_rows);
  as_rows(s.k, s.k_rows);
  rows_to_paired_transpose(s.k_rows, s.kt_pair);
  mat_mul(s.q_rows, s.kt_pair, s.att, false);
  multiply_by(s.att, s.att_mask);
  mat_mul(s.k_rows, s.kt_pair, s.low, false);
  multiply_by(s.low, s.low_mask);
}

}  // namespace

extern "C" {

// qkv [batch*time][3*heads*64], log_a and beta [batch*time][heads] (equal in all rows when
// `fixed_gates`), out [batch*time][heads*64]; states and us [batch*heads*time/64][64*64].
void delta_forward(const bf16* qkv, int batch, int time, int heads, const float* log_a,
                   const float* beta, int fixed_gates, bf16* out, float* states, float* us) {
  const int width = heads * 64, chunks = time / 64;
#pragma omp parallel
  {
    TileScope tiles;
    Workspace& s = workspace();
#pragma omp for schedule(dynamic)
    for (int bh = 0; bh < batch * heads; ++bh) {
      const int h = bh % heads;
      Decays d;
      std::memset(s.state, 0, sizeof(Mat));
      for (int c = 0; c < chunks; ++c) {
        const std::size_t row0 = static_cast<std::size_t>(bh / heads) * time + c * 64;
        float* z = states + (static_cast<std::size_t>(bh) * chunks + c) * 4096;
        float* u = us + (static_cast<std::size_t>(bh) * chunks + c) * 4096;
        for (int i = 0; i < 64; ++i) {
          const bf16* p = qkv + (row0 + i) * 3 * width + h * 64;
          load_unit_row(p, s.q + i * 64, kReadScale);
          load_unit_row(p + width, s.k + i * 64, 1.f);
          load_row(p + 2 * width, s.v + i * 64);
        }
        if (!fixed_gates || c == 0) {
          make_decays(d, s.att_mask, s.low_mask, log_a + row0 * heads + h, beta + row0 * heads + h,
                      heads);
        }
        chunk_scores(s, d);
        std::memcpy(z, s.state, sizeof(Mat));
        as_paired(z, s.z_pair);
        mat_mul(s.k_rows, s.z_pair, s.t1, false);
        for (int i = 0; i < 64; ++i) {
          std::memcpy(u + i * 64, s.v + i * 64, 256);
          add_scaled_row(u + i * 64, s.t1 + i * 64, -d.before[i]);
          s.neg[i] = -1.f;
        }
        as_rows(s.low, s.m_rows, s.neg);
        solve(s.low, s.m_rows, u, s.m_pair);
        mat_mul(s.q_rows, s.z_pair, s.out, false);
        for (int i = 0; i < 64; ++i) scale_row(s.out + i * 64, s.out + i * 64, d.through[i]);
        as_rows(s.att, s.m_rows);
        as_paired(u, s.u_pair);
        mat_mul(s.m_rows, s.u_pair, s.out, true);
        for (int i = 0; i < 64; ++i) {
          store_row(out + (row0 + i) * width + h * 64, s.out + i * 64);
          scale_row(s.state + i * 64, s.state + i * 64, d.whole);
        }
        as_paired(s.k, s.tmp, d.write);
        paired_to_rows_transpose(s.tmp, s.tmp2);
        mat_mul(s.tmp2, s.u_pair, s.state, true);
      }
    }
  }
}

// Adjoint of the above; d_log_a and d_beta [batch*time][heads].
void delta_backward(const bf16* qkv, int batch, int time, int heads, const float* log_a,
                    const float* beta, int fixed_gates, const bf16* d_out, const float* states,
                    const float* us, bf16* d_qkv, float* d_log_a, float* d_beta) {
  const int width = heads * 64, chunks = time / 64;
#pragma omp parallel
  {
    TileScope tiles;
    Workspace& s = workspace();
#pragma omp for schedule(dynamic)
    for (int bh = 0; bh < batch * heads; ++bh) {
      const int h = bh % heads;
      Decays d;
      std::memset(s.dstate, 0, sizeof(Mat));
      for (int c = chunks - 1; c >= 0; --c) {
        const std::size_t row0 = static_cast<std::size_t>(bh / heads) * time + c * 64;
        const float* z = states + (static_cast<std::size_t>(bh) * chunks + c) * 4096;
        const float* u = us + (static_cast<std::size_t>(bh) * chunks + c) * 4096;
        for (int i = 0; i < 64; ++i) {
          const bf16* p = qkv + (row0 + i) * 3 * width + h * 64;
          s.q_norm[i] = load_unit_row(p, s.q + i * 64, kReadScale);
          s.k_norm[i] = load_unit_row(p + width, s.k + i * 64, 1.f);
          load_row(d_out + (row0 + i) * width + h * 64, s.dout + i * 64);
          s.neg[i] = -1.f;
        }
        if (!fixed_gates || c == chunks - 1) {
          make_decays(d, s.att_mask, s.low_mask, log_a + row0 * heads + h, beta + row0 * heads + h,
                      heads);
        }
        chunk_scores(s, d);
        float dl[65] = {}, db[64] = {}, d_write_sum = 0.f;  // with respect to log_sum and log beta
        // dU = A^T dO + diag(w) K dZ'
        as_paired(s.dstate, s.z_pair);
        mat_mul(s.k_rows, s.z_pair, s.kds, false);
        for (int i = 0; i < 64; ++i) {
          const float t = dot_row(s.kds + i * 64, u + i * 64) * d.write[i];
          db[i] += t, dl[i + 1] -= t, d_write_sum += t;
          scale_row(s.du + i * 64, s.kds + i * 64, d.write[i]);
        }
        Vec zz = splat(0.f);
        for (int i = 0; i < 4096; i += 16) zz = fma(load(z + i), load(s.dstate + i), zz);
        dl[64] += d_write_sum + d.whole * _mm512_reduce_add_ps(zz);
        as_paired(s.att, s.tmp);
        paired_to_rows_transpose(s.tmp, s.m_rows);
        as_rows(s.dout, s.do_rows);
        as_paired(s.dout, s.do_pair);
        mat_mul(s.m_rows, s.do_pair, s.du, true);
        as_paired(s.low, s.tmp, s.neg);
        paired_to_rows_transpose(s.tmp, s.m_rows);
        solve_transposed(s.low, s.m_rows, s.du, s.m_pair);
        for (int i = 0; i < 64; ++i)
          store_row(d_qkv + (row0 + i) * 3 * width + 2 * width + h * 64, s.du + i * 64);
        // dA = dO U^T (t2), -dL = dU U^T (t3); then the gradients of the decays inside A and L
        as_rows(u, s.tmp);
        rows_to_paired_transpose(s.tmp, s.u_pair);
        mat_mul(s.do_rows, s.u_pair, s.t2, false);
        as_rows(s.du, s.tmp2);
        mat_mul(s.tmp2, s.u_pair, s.t3, false);
        for (int i = 0; i < 64; ++i) {
          Vec sum_a = splat(0.f), sum_l = splat(0.f);
          for (int j = 0; j < 64; j += 16) {
            const int e = i * 64 + j;
            const Vec pa = _mm512_mul_ps(load(s.t2 + e), load(s.att + e));
            const Vec pl = _mm512_mul_ps(load(s.t3 + e), load(s.low + e));
            const Vec column = _mm512_sub_ps(pa, pl);
            sum_a = _mm512_add_ps(sum_a, pa), sum_l = _mm512_add_ps(sum_l, pl);
            store(db + j, _mm512_add_ps(load(db + j), column));
            store(dl + 1 + j, _mm512_sub_ps(load(dl + 1 + j), column));
            store(s.t2 + e, _mm512_mul_ps(load(s.t2 + e), load(s.att_mask + e)));
            store(s.t3 + e, _mm512_mul_ps(load(s.t3 + e), load(s.low_mask + e)));
          }
          dl[i + 1] += _mm512_reduce_add_ps(sum_a);
          dl[i] -= _mm512_reduce_add_ps(sum_l);
        }
        // dQ = diag(g) dO Z^T + dA K
        as_rows(z, s.tmp);
        rows_to_paired_transpose(s.tmp, s.m_pair);
        mat_mul(s.do_rows, s.m_pair, s.dq, false);
        for (int i = 0; i < 64; ++i) {
          scale_row(s.dq + i * 64, s.dq + i * 64, d.through[i]);
          dl[i + 1] += dot_row(s.q + i * 64, s.dq + i * 64);
        }
        as_paired(s.k, s.k_pair);
        as_rows(s.t2, s.m_rows);
        mat_mul(s.m_rows, s.k_pair, s.dq, true);
        // dK = -diag(p) dU Z^T + dA^T Q + dL K + dL^T K + diag(w) U dZ'^T
        mat_mul(s.tmp2, s.m_pair, s.dk, false);
        for (int i = 0; i < 64; ++i) {
          scale_row(s.dk + i * 64, s.dk + i * 64, -d.before[i]);
          dl[i] += dot_row(s.k + i * 64, s.dk + i * 64);
        }
        as_paired(s.t2, s.tmp);
        paired_to_rows_transpose(s.tmp, s.m_rows);
        as_paired(s.q, s.m_pair);
        mat_mul(s.m_rows, s.m_pair, s.dk, true);
        as_rows(s.t3, s.m_rows, s.neg);
        mat_mul(s.m_rows, s.k_pair, s.dk, true);
        as_paired(s.t3, s.tmp, s.neg);
        paired_to_rows_transpose(s.tmp, s.m_rows);
        mat_mul(s.m_rows, s.k_pair, s.dk, true);
        as_rows(s.dstate, s.tmp);
        rows_to_paired_transpose(s.tmp, s.m_pair);
        as_rows(u, s.m_rows, d.write);
        mat_mul(s.m_rows, s.m_pair, s.dk, true);
        // dZ = g_63 dZ' + Q^T diag(g) dO - K^T diag(p) dU
        for (int i = 0; i < 64; ++i) {
          bf16* p = d_qkv + (row0 + i) * 3 * width + h * 64;
          unit_row_backward(s.q + i * 64, kReadScale, s.dq + i * 64, s.q_norm[i], p);
          unit_row_backward(s.k + i * 64, 1.f, s.dk + i * 64, s.k_norm[i], p + width);
          scale_row(s.dstate + i * 64, s.dstate + i * 64, d.whole);
          s.neg[i] = -d.before[i];
        }
        paired_to_rows_transpose(s.k_pair, s.m_rows);
        as_paired(s.du, s.tmp, s.neg);
        mat_mul(s.m_rows, s.tmp, s.dstate, true);
        as_paired(s.q, s.tmp);
        paired_to_rows_transpose(s.tmp, s.m_rows);
        as_paired(s.dout, s.do_pair, d.through);
        mat_mul(s.m_rows, s.do_pair, s.dstate, true);
        float sum = 0.f;
        for (int i = 63; i >= 0; --i) {
          sum += dl[i + 1];
          d_log_a[(row0 + i) * heads + h] = sum;
          d_beta[(row0 + i) * heads + h] = db[i] / beta[(row0 + i) * heads + h];
        }
      }
    }
  }
}

}  // extern "C"
}  // namespace spel_train

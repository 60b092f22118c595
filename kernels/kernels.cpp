#include "kernels/kernels.h"

#include "kernels/function_table.h"

namespace spel::kernels {

std::string_view ternary_kernel_name(TernaryKernel kernel) {
  switch (kernel) {
    case TernaryKernel::kDotprod:
      return "dotprod";
    case TernaryKernel::kAddsub:
      return "addsub";
    case TernaryKernel::kScalar:
      return "scalar";
  }
  return "unknown";
}

void Kernels::quantize_row(const float* x, std::size_t n, std::int8_t* q, std::size_t stride,
                           float* scale) const {
  table_.quantize_row(x, n, q, stride, scale);
}
void Kernels::rms_norm(const float* x, const float* w, std::size_t n, float eps, float* y) const {
  table_.rms_norm(x, w, n, eps, y);
}
void Kernels::l2_normalize(float* x, std::size_t heads, std::size_t head_dim, float eps) const {
  table_.l2_normalize(x, heads, head_dim, eps);
}
void Kernels::rope(float* x, std::size_t heads, std::size_t head_dim, const float* cos,
                   const float* sin) const {
  table_.rope(x, heads, head_dim, cos, sin);
}
void Kernels::rope_halves(float* x, std::size_t heads, std::size_t head_stride,
                          std::size_t rotary_dim, const float* cos, const float* sin) const {
  table_.rope_halves(x, heads, head_stride, rotary_dim, cos, sin);
}
void Kernels::short_conv(const float* const* rows, const float* w, std::size_t taps, std::size_t n,
                         float* y) const {
  table_.short_conv(rows, w, taps, n, y);
}
void Kernels::silu(const float* x, std::size_t n, float* y) const { table_.silu(x, n, y); }
void Kernels::silu_mul(const float* gate, const float* up, std::size_t n, float* y) const {
  table_.silu_mul(gate, up, n, y);
}
void Kernels::add(float* x, const float* y, std::size_t n) const { table_.add(x, y, n); }
void Kernels::sigmoid(const float* x, std::size_t n, float* y) const { table_.sigmoid(x, n, y); }
void Kernels::sigmoid_mul(const float* gate, const float* x, std::size_t n, float* y) const {
  table_.sigmoid_mul(gate, x, n, y);
}
float Kernels::exp_sum(const float* x, std::size_t n, float* p, float* max) const {
  return table_.exp_sum(x, n, p, max);
}
std::size_t Kernels::argmax(const float* x, std::size_t n) const { return table_.argmax(x, n); }

void Kernels::delta_rule(const DeltaRule& rule, const DeltaTokens& tokens) const {
  table_.delta_rule(rule, tokens);
}
void Kernels::delta_gates(const float* a, const float* b, const float* rate, const float* step_bias,
                          std::size_t heads, float write_scale, float* decay, float* write) const {
  table_.delta_gates(a, b, rate, step_bias, heads, write_scale, decay, write);
}
void Kernels::attend_block(const AttentionBlock& block, const float* q, std::size_t q_stride,
                           std::size_t queries, float* parts, std::size_t part_stride) const {
  table_.attend_block(block, q, q_stride, queries, parts, part_stride);
}
void Kernels::merge_attention(const float* parts, std::size_t part_stride, std::size_t blocks,
                              std::size_t head_dim, float* out) const {
  table_.merge_attention(parts, part_stride, blocks, head_dim, out);
}
void Kernels::store_key(float* keys, std::size_t position, std::size_t head_dim,
                        const float* k) const {
  table_.store_key(keys, position, head_dim, k);
}
void Kernels::attend(const AttentionHead& head, const float* q, float* scratch, float* out) const {
  table_.attend(head, q, scratch, out);
}

void Kernels::bf16_dots(const std::uint16_t* panel, const float* queries, std::size_t count,
                        std::size_t dim, float* out) const {
  table_.bf16_dots(panel, queries, count, dim, out);
}
float Kernels::bf16_alignment(const std::uint16_t* panel, const float* queries, std::size_t tokens,
                              std::size_t dim) const {
  return table_.bf16_alignment(panel, queries, tokens, dim);
}
void Kernels::coarse_alignments(const std::uint8_t* panels, std::size_t count,
                                const std::int8_t* query, std::int32_t* scores) const {
  table_.coarse_alignments(panels, count, query, scores);
}
void Kernels::ordered_dots(const float* rows, std::size_t stride, std::size_t count, const float* x,
                           std::size_t n, float* out) const {
  table_.ordered_dots(rows, stride, count, x, n, out);
}
void Kernels::unit_rows(float* x, std::size_t rows, std::size_t n) const {
  table_.unit_rows(x, rows, n);
}
void Kernels::project(const float* x, const ProjectedTo* places, std::size_t n, float* out) const {
  table_.project(x, places, n, out);
}

void Kernels::block_max(const float* x, std::size_t n, float* largest) const {
  table_.block_max(x, n, largest);
}
std::size_t Kernels::places_at_least(const float* x, std::size_t n, float least,
                                     std::uint32_t* places) const {
  return table_.places_at_least(x, n, least, places);
}
std::size_t Kernels::race(const float* x, std::size_t n, const Race& rules,
                          std::uint32_t* places) const {
  return table_.race(x, n, rules, places);
}
double Kernels::softmax_sum(const float* x, std::size_t n, double temperature, double top) const {
  return table_.softmax_sum(x, n, temperature, top);
}
void Kernels::exp_f64(const double* x, std::size_t n, double* y) const { table_.exp_f64(x, n, y); }

}  // namespace spel::kernels

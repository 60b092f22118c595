// Matrix products: re-lay the activations, split the panels over the pool, call the table.
#include <algorithm>
#include <array>

#include "kernels/function_table.h"
#include "kernels/kernels.h"

namespace spel::kernels {
namespace {

/// Rows one pass over the weights serves at most: bounds the stack use of the low-bit products.
constexpr std::size_t kRowsMax = 96;
constexpr std::size_t kBlocksPerThread = 6;

/// Rows per pass for m rows of `words` 32-bit words: passes of equal size that fit the scratch.
std::size_t rows_per_pass(std::size_t m, std::size_t words) {
  const std::size_t row_bytes = std::max<std::size_t>(4 * words, 1);
  const std::size_t fit =
      std::clamp<std::size_t>(ThreadPool::kScratchBytes / row_bytes, 1, kRowsMax);
  const std::size_t passes = (m + fit - 1) / fit;
  return (m + passes - 1) / passes;
}

PackedRows pack(const FunctionTable& table, ThreadPool& pool, const std::byte* x,
                std::size_t stride_bytes, std::size_t rows, std::size_t words,
                std::size_t tile_rows) {
  if (rows == 1) {
    return {x, 1, tile_rows};
  }
  table.pack_rows(x, stride_bytes, rows, words, tile_rows, pool.scratch());
  return {pool.scratch(), rows, tile_rows};
}

template <class Job>
void run_over_panels(ThreadPool& pool, void (*fn)(const Job&, std::size_t, std::size_t),
                     const Job& job, std::size_t panels, std::size_t group) {
  if (pool.threads() == 1) {
    fn(job, 0, panels);
    return;
  }
  std::size_t block =
      (panels + pool.threads() * kBlocksPerThread - 1) / (pool.threads() * kBlocksPerThread);
  // Whole register groups when that still leaves a few blocks for each thread to balance with.
  const std::size_t rounded = (block + group - 1) / group * group;
  if (panels >= 4 * pool.threads() * rounded) {
    block = rounded;
  }
  const std::size_t blocks = (panels + block - 1) / block;
  pool.parallel_for(blocks,
                    [&](std::size_t b) { fn(job, b * block, std::min(panels, (b + 1) * block)); });
}

/// What a low-bit product needs of its weights.
struct LowBitShape {
  const std::byte* panels;
  std::size_t rows;
  std::size_t groups;
  std::size_t words;  ///< Of each activation row that the kernels read.
  const float* row_scales;
  std::size_t tile_rows;
};

void multiply_low_bit(const FunctionTable& table, ThreadPool& pool, LowBitFn fn,
                      std::size_t (*panel_group)(std::size_t), const LowBitShape& w,
                      const QuantizedRows& x, std::size_t m, float* y, std::size_t y_stride) {
  if (m == 0 || w.rows == 0) {
    return;
  }
  const std::size_t at_once = rows_per_pass(m, w.words);
  std::array<std::int32_t, kRowsMax> sums;
  for (std::size_t first = 0; first < m; first += at_once) {
    const std::size_t count = std::min(at_once, m - first);
    const std::int8_t* values = x.values + first * x.stride;
    for (std::size_t i = 0; i < count; ++i) {
      sums[i] = table.sum_int8(values + i * x.stride, 4 * w.words);
    }
    const LowBitJob job{.panels = w.panels,
                        .groups = w.groups,
                        .rows = w.rows,
                        .x = pack(table, pool, reinterpret_cast<const std::byte*>(values), x.stride,
                                  count, w.words, w.tile_rows),
                        .x_sums = sums.data(),
                        .x_scales = x.scales + first,
                        .row_scales = w.row_scales,
                        .y = y + first * y_stride,
                        .y_stride = y_stride};
    run_over_panels(pool, fn, job, (w.rows + 15) / 16, panel_group(count));
  }
}

LowBitFn ternary_function(const FunctionTable& table, TernaryKernel kernel) {
  switch (kernel) {
    case TernaryKernel::kDotprod:
      return table.matmul_ternary_dotprod;
    case TernaryKernel::kAddsub:
      return table.matmul_ternary_addsub;
    case TernaryKernel::kScalar:
      break;
  }
  return table.matmul_ternary_scalar;
}

}  // namespace

void Kernels::matmul(ThreadPool& pool, const DenseMatrix& w, const float* x, std::size_t x_stride,
                     std::size_t m, float* y, std::size_t y_stride) const {
  if (m == 0 || w.rows() == 0) {
    return;
  }
  const std::size_t at_once = rows_per_pass(m, w.cols());
  const DenseFn fn = w.type() == DenseType::kF32 ? table_.matmul_f32 : table_.matmul_bf16;
  for (std::size_t first = 0; first < m; first += at_once) {
    const std::size_t count = std::min(at_once, m - first);
    const auto* rows = reinterpret_cast<const std::byte*>(x + first * x_stride);
    const DenseJob job{
        .panels = w.panel(0),
        .panel_bytes = w.panel_bytes(),
        .rows = w.rows(),
        .cols = w.cols(),
        .x = pack(table_, pool, rows, 4 * x_stride, count, w.cols(), table_.dense_tile_rows),
        .y = y + first * y_stride,
        .y_stride = y_stride};
    run_over_panels(pool, fn, job, w.panels(), table_.dense_panel_group(count));
  }
}

void Kernels::matmul(ThreadPool& pool, const Int8Matrix& w, const QuantizedRows& x, std::size_t m,
                     float* y, std::size_t y_stride) const {
  const std::size_t groups = (w.cols() + 3) / 4;
  const LowBitShape shape{w.packed().data(),     w.rows(), groups, groups, w.scales(),
                          table_.dense_tile_rows};
  multiply_low_bit(table_, pool, table_.matmul_int8, table_.dense_panel_group, shape, x, m, y,
                   y_stride);
}

void Kernels::matmul(ThreadPool& pool, const TernaryMatrix& w, const QuantizedRows& x,
                     std::size_t m, float* y, std::size_t y_stride, TernaryKernel kernel) const {
  const std::size_t groups = (w.cols() + 15) / 16;
  const LowBitShape shape{w.packed().data(), w.rows(),   groups,
                          4 * groups,        w.scales(), table_.ternary_tile_rows};
  multiply_low_bit(table_, pool, ternary_function(table_, kernel), table_.ternary_panel_group,
                   shape, x, m, y, y_stride);
}

}  // namespace spel::kernels

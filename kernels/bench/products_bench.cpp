// Matrix products: GEMV and small batches, hot and streamed from memory.
//
//   kernels_bench --benchmark_filter='ternary.*avx512' --benchmark_repetitions=5
#include <array>

#include "kernels/bench/support.h"

namespace spel::kernels {
namespace {

using Args = std::vector<std::vector<std::int64_t>>;

/// {rows, cols, batch}: the document's shape, then those of the two models.
const Args kShapes = {{4096, 1536, 1}, {4096, 1536, 17}, {384, 384, 1},   {1152, 384, 5},
                      {1152, 384, 17}, {3072, 1024, 1},  {3072, 1024, 5}, {3072, 1024, 17}};

std::size_t arg(const benchmark::State& state, std::size_t i) {
  return static_cast<std::size_t>(state.range(i));
}

void dense(benchmark::State& state, const Kernels& kernels, DenseType type) {
  const std::size_t rows = arg(state, 0), cols = arg(state, 1), m = arg(state, 2);
  const DenseMatrix w(bench_values(rows * cols), rows, cols, type);
  const auto x = bench_values(m * cols);
  std::vector<float> y(m * rows);
  ThreadPool pool(1);
  for (auto _ : state) {
    kernels.matmul(pool, w, x.data(), cols, m, y.data(), rows);
    benchmark::DoNotOptimize(y.data());
  }
  report_macs(state, rows * cols * m, w.bytes());
}

/// Quantising the activations is part of a low-bit product.
template <class Matrix, class Multiply>
void low_bit(benchmark::State& state, const Kernels& kernels, const Matrix& w, Multiply multiply) {
  const std::size_t m = arg(state, 2);
  const std::size_t stride = (w.cols() + 63) / 64 * 64;
  const auto x = bench_values(m * w.cols());
  std::vector<std::int8_t> q(m * stride);
  std::vector<float> scales(m);
  std::vector<float> y(m * w.rows());
  for (auto _ : state) {
    for (std::size_t i = 0; i < m; ++i) {
      kernels.quantize_row(x.data() + i * w.cols(), w.cols(), q.data() + i * stride, stride,
                           &scales[i]);
    }
    multiply(QuantizedRows{q.data(), scales.data(), stride}, m, y.data());
    benchmark::DoNotOptimize(y.data());
  }
  report_macs(state, w.rows() * w.cols() * m, w.packed().size());
}

void int8(benchmark::State& state, const Kernels& kernels) {
  const std::size_t rows = arg(state, 0), cols = arg(state, 1);
  const Int8Matrix w(std::vector<std::int8_t>(rows * cols, 3), std::vector<float>(rows, 0.5F), rows,
                     cols);
  ThreadPool pool(1);
  low_bit(state, kernels, w, [&](const QuantizedRows& x, std::size_t m, float* y) {
    kernels.matmul(pool, w, x, m, y, rows);
  });
}

void ternary(benchmark::State& state, const Kernels& kernels, TernaryKernel kernel) {
  const std::size_t rows = arg(state, 0), cols = arg(state, 1);
  const TernaryMatrix w(std::vector<std::uint8_t>(rows * cols / 4, 0x4D),
                        std::vector<float>(rows, 0.5F), rows, cols);
  ThreadPool pool(1);
  low_bit(state, kernels, w, [&](const QuantizedRows& x, std::size_t m, float* y) {
    kernels.matmul(pool, w, x, m, y, rows, kernel);
  });
}

/// Enough layers of the scaled shape's 3072x1024 matrices to come from memory each time.
void streamed(benchmark::State& state, const Kernels& kernels, DenseType type) {
  constexpr std::size_t kRows = 3072, kCols = 1024, kMatrices = 16;
  const std::size_t m = arg(state, 0);
  const auto values = bench_values(kRows * kCols);
  std::vector<DenseMatrix> layers;
  for (std::size_t i = 0; i < kMatrices; ++i) {
    layers.emplace_back(values, kRows, kCols, type);
  }
  const auto x = bench_values(m * kCols);
  std::vector<float> y(m * kRows);
  ThreadPool pool(arg(state, 1));
  for (auto _ : state) {
    for (const DenseMatrix& w : layers) {
      kernels.matmul(pool, w, x.data(), kCols, m, y.data(), kRows);
    }
    benchmark::DoNotOptimize(y.data());
  }
  report_macs(state, kMatrices * kRows * kCols * m, kMatrices * layers[0].bytes());
}

const bool kRegistered = [] {
  const Args streams = {{1, 1}, {5, 1}, {9, 1}, {17, 1}, {1, 2}, {17, 2}};
  for (const DenseType type : {DenseType::kF32, DenseType::kBf16}) {
    const std::string name = type == DenseType::kF32 ? "f32" : "bf16";
    register_for_sets(
        "matmul_" + name, [type](benchmark::State& s, const Kernels& k) { dense(s, k, type); },
        kShapes);
    register_for_sets(
        "streamed_" + name, [type](benchmark::State& s, const Kernels& k) { streamed(s, k, type); },
        streams);
  }
  register_for_sets("matmul_int8", int8, kShapes);
  for (const TernaryKernel kernel :
       {TernaryKernel::kDotprod, TernaryKernel::kAddsub, TernaryKernel::kScalar}) {
    register_for_sets(
        "ternary_" + std::string(ternary_kernel_name(kernel)),
        [kernel](benchmark::State& s, const Kernels& k) { ternary(s, k, kernel); }, kShapes);
  }
  return true;
}();

}  // namespace
}  // namespace spel::kernels

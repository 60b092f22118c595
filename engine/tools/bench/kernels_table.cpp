// B1.
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/quantise/quantize.h"
#include "engine/tools/bench/bench_context.h"
#include "engine/tools/prompts.h"
#include "kernels/matrix.h"
#include "kernels/thread_pool.h"

namespace spel::engine::tools {
namespace {

constexpr std::size_t kRows = 4096;
constexpr std::size_t kCols = 1536;
constexpr std::size_t kBatch = 17;
constexpr double kMacs = static_cast<double>(kRows * kCols);

/// Seeded values that are exact in bf16: eight bits each.
std::vector<float> seeded_values(std::size_t count, std::uint64_t seed) {
  std::vector<float> values;
  values.reserve(count);
  for (const TokenId id : random_prompt(count, 255, seed)) {
    values.push_back(static_cast<float>(id - 127) / 128.0F);
  }
  return values;
}

/// One shape in every form, with activations for a batch.
struct Operands {
  Operands()
      : dense(seeded_values(kRows * kCols, 1)),
        ternary_rows(quantize_ternary(dense, kRows, kCols)),
        ternary(ternary_rows.packed, ternary_rows.scales, kRows, kCols),
        f32(dense, kRows, kCols, kernels::DenseType::kF32),
        bf16(dense, kRows, kCols, kernels::DenseType::kBf16),
        x(seeded_values(kBatch * kCols, 2)),
        y(kBatch * kRows),
        quantized(kBatch * kCols),
        scales(kBatch) {}

  std::vector<float> dense;
  TernaryRows ternary_rows;
  kernels::TernaryMatrix ternary;
  kernels::DenseMatrix f32;
  kernels::DenseMatrix bf16;
  std::vector<float> x;
  std::vector<float> y;
  std::vector<std::int8_t> quantized;
  std::vector<float> scales;
};
static_assert(kCols % 64 == 0, "rows of quantised activations are a multiple of 64");

struct Entry {
  const char* name;
  std::size_t m;
  double weight_bytes;
  std::function<void()> body;
};

}  // namespace

void bench_kernels(const BenchContext& context) {
  context.report.progress("B1: kernels");
  Operands o;
  kernels::ThreadPool pool(1);
  const kernels::Kernels& kernels = context.kernels;
  const auto ternary = [&](std::size_t m, kernels::TernaryKernel kernel) {
    return [&o, &pool, &kernels, m, kernel] {
      for (std::size_t i = 0; i < m; ++i) {
        kernels.quantize_row(&o.x[i * kCols], kCols, &o.quantized[i * kCols], kCols, &o.scales[i]);
      }
      kernels.matmul(pool, o.ternary, {o.quantized.data(), o.scales.data(), kCols}, m, o.y.data(),
                     kRows, kernel);
    };
  };
  const auto dense = [&](const kernels::DenseMatrix& w, std::size_t m) {
    return [&o, &pool, &kernels, &w, m] {
      kernels.matmul(pool, w, o.x.data(), kCols, m, o.y.data(), kRows);
    };
  };
  const double packed = kMacs / 4;
  const std::array<Entry, 8> entries = {{
      {"ternary dotprod", 1, packed, ternary(1, kernels::TernaryKernel::kDotprod)},
      {"FP32", 1, kMacs * 4, dense(o.f32, 1)},
      {"BF16", 1, kMacs * 2, dense(o.bf16, 1)},
      {"ternary addsub", 1, packed, ternary(1, kernels::TernaryKernel::kAddsub)},
      {"ternary scalar", 1, packed, ternary(1, kernels::TernaryKernel::kScalar)},
      {"ternary dotprod", kBatch, packed, ternary(kBatch, kernels::TernaryKernel::kDotprod)},
      {"FP32", kBatch, kMacs * 4, dense(o.f32, kBatch)},
      {"BF16", kBatch, kMacs * 2, dense(o.bf16, kBatch)},
  }};
  std::vector<std::function<void()>> bodies;
  bodies.reserve(entries.size());
  for (const Entry& entry : entries) {
    bodies.push_back(entry.body);
  }
  const auto seconds = take_turns(bodies, context.options.runs, context.options.min_seconds);

  context.report.table("B1  kernels, 4096 x 1536, 1 thread, activations quantised in the time (" +
                           std::string(kernels.variant()) + ")",
                       {{"kernel", 18}, {"M", 3}, {"GMAC/s", 22}, {"weight GB/s", 11}, {"ms", 8}});
  std::vector<Spread> rates;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    rates.push_back(spread_of(inverse(seconds[i], kMacs * static_cast<double>(entry.m) * 1e-9)));
    const Spread time = spread_of(seconds[i]);
    context.report.row({entry.name, std::to_string(entry.m), with_range(rates.back(), 1),
                        fixed(entry.weight_bytes * 1e-9 / time.median, 1),
                        fixed(time.median * 1e3, 3)});
  }
  const Spread ratio = spread_of(ratios(seconds[1], seconds[0]));
  context.report.line("ternary dotprod over FP32, per MAC: " + with_range(ratio, 1) + "x");
  const std::string isa(kernels.variant());
  const auto figure = [&](const char* name, const Spread& value, const char* unit) {
    context.report.figure({name, value, unit, {{"isa", isa}, {"shape", "4096x1536"}}});
  };
  figure("ternary_gemv_gmacs", rates[0], "GMAC/s");
  figure("ternary_gemm17_gmacs", rates[5], "GMAC/s");
  figure("ternary_vs_f32", ratio, "x");
  figure("ternary_addsub_gmacs", rates[3], "GMAC/s");
  figure("ternary_scalar_gmacs", rates[4], "GMAC/s");
  figure("f32_gemv_gmacs", rates[1], "GMAC/s");
  figure("bf16_gemv_gmacs", rates[2], "GMAC/s");
}

}  // namespace spel::engine::tools

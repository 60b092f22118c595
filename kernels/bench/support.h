// What the benchmarks share: data, and registration for every attainable kernel set.
#pragma once

#include <benchmark/benchmark.h>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/registry.h"

namespace spel::kernels {

/// Small bf16-exact values, cheap to make: the kernels' speed does not depend on them.
inline std::vector<float> bench_values(std::size_t n) {
  std::vector<float> values(n);
  std::uint32_t state = 1;
  for (float& v : values) {
    state = state * 1664525U + 1013904223U;
    v = static_cast<float>(static_cast<int>(state >> 24) - 128) / 128.0F;
  }
  return values;
}

/// Reports work done as GMAC/s, and weight bytes as GB/s where given.
inline void report_macs(benchmark::State& state, std::size_t macs, std::size_t bytes = 0) {
  const auto per_iteration = benchmark::Counter::kIsIterationInvariantRate;
  state.counters["MAC/s"] = benchmark::Counter(static_cast<double>(macs), per_iteration);
  if (bytes != 0) {
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
  }
}

/// Registers `run(state, kernels)` as NAME/VARIANT for every attainable set.
template <class Run>
benchmark::internal::Benchmark* register_for_sets(
    const std::string& name, Run run, const std::vector<std::vector<std::int64_t>>& args) {
  benchmark::internal::Benchmark* last = nullptr;
  for (const Kernels& kernels : KernelRegistry::attainable()) {
    const std::string full = name + "/" + std::string(kernels.variant());
    last = benchmark::RegisterBenchmark(full.c_str(),
                                        [run, &kernels](benchmark::State& s) { run(s, kernels); });
    for (const auto& a : args) {
      last->Args(a);
    }
  }
  return last;
}

}  // namespace spel::kernels

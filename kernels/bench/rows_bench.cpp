// Row operations, the delta rule and attention.
#include "kernels/bench/support.h"

namespace spel::kernels {
namespace {

using Args = std::vector<std::vector<std::int64_t>>;

const Args kWidths = {{384}, {1024}, {3072}};

/// Runs use(kernels, x, w, y, n) over rows of n.
template <class Use>
void register_row(const std::string& name, Use use) {
  register_for_sets(
      name,
      [use](benchmark::State& state, const Kernels& kernels) {
        const auto n = static_cast<std::size_t>(state.range(0));
        auto x = bench_values(n);
        const auto w = bench_values(3 * n);
        std::vector<float> y(n);
        for (auto _ : state) {
          use(kernels, x.data(), w.data(), y.data(), n);
          benchmark::DoNotOptimize(y.data());
        }
        state.SetItemsProcessed(state.iterations() * state.range(0));
      },
      kWidths);
}

void delta(benchmark::State& state, const Kernels& kernels) {
  const auto dk = static_cast<std::size_t>(state.range(0));
  const auto dv = static_cast<std::size_t>(state.range(1));
  const DeltaRule rule{dk, dv, 0.125F, false};
  const float decay = 0.9F;
  const float write = 0.5F;
  const auto q = bench_values(dk), k = bench_values(dk), v = bench_values(dv);
  const auto from = bench_values(dk * dv);
  std::vector<float> state_after(dk * dv), out(dv), work(16 * dk);
  float* const to = state_after.data();
  const DeltaTokens tokens{.count = 1,
                           .q = q.data(),
                           .k = k.data(),
                           .v = v.data(),
                           .stride = 0,
                           .decay = &decay,
                           .write = &write,
                           .gate_stride = 0,
                           .out = out.data(),
                           .out_stride = 0,
                           .from = from.data(),
                           .to = &to,
                           .to_offset = 0,
                           .work = work.data(),
                           .past_caches = false};
  for (auto _ : state) {
    kernels.delta_rule(rule, tokens);
    benchmark::DoNotOptimize(out.data());
  }
  report_macs(state, 3 * dk * dv);
}

void attend(benchmark::State& state, const Kernels& kernels) {
  constexpr std::size_t kDim = 64;
  const auto positions = static_cast<std::size_t>(state.range(0));
  const std::size_t padded = (positions + 15) / 16 * 16;
  const auto keys = bench_values(padded * kDim), values = bench_values(positions * kDim);
  const auto q = bench_values(kDim);
  std::vector<float> scratch(padded), out(kDim);
  const AttentionHead head{keys.data(), values.data(), positions, kDim, 0.125F};
  for (auto _ : state) {
    kernels.attend(head, q.data(), scratch.data(), out.data());
    benchmark::DoNotOptimize(out.data());
  }
  report_macs(state, 2 * positions * kDim);
}

/// All blocks of one key-value head for the query heads that share it; GB/s of keys and values.
void attend_blocks(benchmark::State& state, const Kernels& kernels) {
  constexpr std::size_t kDim = 256;
  constexpr std::size_t kPart = kDim + 2;
  const auto queries = static_cast<std::size_t>(state.range(0));
  const auto positions = static_cast<std::size_t>(state.range(1));
  const std::size_t blocks = positions / kAttentionBlock;
  const auto keys = bench_values(positions * kDim), values = bench_values(positions * kDim);
  const auto q = bench_values(queries * kDim);
  std::vector<float> parts(queries * blocks * kPart), out(queries * kDim);
  for (auto _ : state) {
    for (std::size_t b = 0; b < blocks; ++b) {
      const std::size_t from = b * kAttentionBlock * kDim;
      kernels.attend_block(
          {keys.data() + from, values.data() + from, kAttentionBlock, kDim, 0.0625F}, q.data(),
          kDim, queries, parts.data() + b * kPart, blocks * kPart);
    }
    for (std::size_t i = 0; i < queries; ++i) {
      kernels.merge_attention(parts.data() + i * blocks * kPart, kPart, blocks, kDim,
                              out.data() + i * kDim);
    }
    benchmark::DoNotOptimize(out.data());
  }
  report_macs(state, 2 * queries * positions * kDim, 2 * positions * kDim * sizeof(float));
}

void store_key(benchmark::State& state, const Kernels& kernels) {
  constexpr std::size_t kDim = 64;
  std::vector<float> keys(16 * kDim);
  const auto k = bench_values(kDim);
  std::size_t position = 0;
  for (auto _ : state) {
    kernels.store_key(keys.data(), position++ % 16, kDim, k.data());
    benchmark::DoNotOptimize(keys.data());
  }
}

void rope(benchmark::State& state, const Kernels& kernels) {
  constexpr std::size_t kDim = 64;
  const auto heads = static_cast<std::size_t>(state.range(0));
  auto x = bench_values(heads * kDim);
  // A turn by nothing, so that the values stay what they are through millions of iterations.
  const std::vector<float> cos(kDim / 2, 1.0F), sin(kDim / 2, 0.0F);
  for (auto _ : state) {
    kernels.rope(x.data(), heads, kDim, cos.data(), sin.data());
    benchmark::DoNotOptimize(x.data());
  }
}

void rope_halves(benchmark::State& state, const Kernels& kernels) {
  constexpr std::size_t kDim = 256;
  constexpr std::size_t kTurned = 64;
  const auto heads = static_cast<std::size_t>(state.range(0));
  auto x = bench_values(heads * kDim);
  const std::vector<float> cos(kTurned / 2, 1.0F), sin(kTurned / 2, 0.0F);
  for (auto _ : state) {
    kernels.rope_halves(x.data(), heads, kDim, kTurned, cos.data(), sin.data());
    benchmark::DoNotOptimize(x.data());
  }
}

void delta_gates(benchmark::State& state, const Kernels& kernels) {
  const auto heads = static_cast<std::size_t>(state.range(0));
  const auto a = bench_values(heads);
  const std::vector<float> rate(heads, 1.0F);
  std::vector<float> decay(heads), write(heads);
  for (auto _ : state) {
    kernels.delta_gates(a.data(), a.data(), rate.data(), a.data(), heads, 1.0F, decay.data(),
                        write.data());
    benchmark::DoNotOptimize(decay.data());
  }
}

const bool kRegistered = [] {
  register_row("rms_norm", [](const Kernels& k, const float* x, const float* w, float* y,
                              std::size_t n) { k.rms_norm(x, w, n, 1e-5F, y); });
  register_row("l2_normalize", [](const Kernels& k, float* x, const float*, float*, std::size_t n) {
    k.l2_normalize(x, n / 64, 64, 1e-6F);
  });
  register_row("silu_mul", [](const Kernels& k, const float* x, const float* w, float* y,
                              std::size_t n) { k.silu_mul(x, w, n, y); });
  register_row("silu", [](const Kernels& k, const float* x, const float*, float* y, std::size_t n) {
    k.silu(x, n, y);
  });
  register_row("sigmoid", [](const Kernels& k, const float* x, const float*, float* y,
                             std::size_t n) { k.sigmoid(x, n, y); });
  register_row("sigmoid_mul", [](const Kernels& k, const float* x, const float* w, float* y,
                                 std::size_t n) { k.sigmoid_mul(x, w, n, y); });
  register_row("add", [](const Kernels& k, const float*, const float* w, float* y, std::size_t n) {
    k.add(y, w, n);
  });
  register_row("short_conv",
               [](const Kernels& k, const float* x, const float* w, float* y, std::size_t n) {
                 const float* rows[] = {x, w, x};
                 k.short_conv(rows, w, 3, n, y);
               });
  register_row("exp_sum",
               [](const Kernels& k, const float* x, const float*, float* y, std::size_t n) {
                 float max = 0.0F;
                 benchmark::DoNotOptimize(k.exp_sum(x, n, y, &max));
               });
  register_row("argmax", [](const Kernels& k, const float* x, const float*, float*, std::size_t n) {
    benchmark::DoNotOptimize(k.argmax(x, n));
  });
  register_row("quantize_row",
               [](const Kernels& k, const float* x, const float*, float* y, std::size_t n) {
                 // y holds four bytes for each value: room for the int8 row.
                 float scale = 0.0F;
                 k.quantize_row(x, n, reinterpret_cast<std::int8_t*>(y), n, &scale);
                 benchmark::DoNotOptimize(scale);
               });
  register_for_sets("delta_rule", delta, {{64, 64}, {128, 128}, {96, 192}});
  register_for_sets("attend", attend, {{64}, {512}, {4096}});
  register_for_sets("attend_blocks", attend_blocks,
                    {{1, 256}, {2, 256}, {4, 256}, {1, 8192}, {4, 8192}, {6, 8192}});
  register_for_sets("store_key", store_key, {{}});
  register_for_sets("rope", rope, {{6}, {16}});
  register_for_sets("rope_halves", rope_halves, {{8}});
  register_for_sets("delta_gates", delta_gates, {{16}, {48}});
  return true;
}();

}  // namespace
}  // namespace spel::kernels

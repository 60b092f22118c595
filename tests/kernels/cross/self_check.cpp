// Prints one line per kernel: its name and a hash of its outputs on fixed inputs. Exits with 1 if
// the kernel sets attainable here disagree. Two machines of different architecture must print the
// same lines; needs nothing but the kernels, so that it can be cross-built.
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "kernels/registry.h"
#include "kernels/scalar_math.h"

namespace spel::kernels {
namespace {

/// FNV-1a over bytes.
class Hash {
 public:
  template <class T>
  void add(const std::vector<T>& values) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
    for (std::size_t i = 0; i < values.size() * sizeof(T); ++i) {
      value_ = (value_ ^ bytes[i]) * 0x100000001b3ULL;
    }
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

/// Values made by exact operations only: the same on every machine.
class Inputs {
 public:
  std::uint32_t next() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::uint32_t>(state_ >> 33);
  }
  std::vector<float> floats(std::size_t n, float scale = 1.0F) {
    std::vector<float> values(n);
    for (float& v : values) {
      v = (static_cast<float>(next() & 0xFFFFFFU) - 0x800000) * scale / 0x400000;
    }
    return values;
  }
  std::vector<float> bf16_floats(std::size_t n) {
    std::vector<float> values(n);
    for (float& v : values) {
      v = static_cast<float>(static_cast<int>(next() & 0xFFU) - 128) / 64;
    }
    return values;
  }

 private:
  std::uint64_t state_ = 20260101;
};

constexpr std::size_t kSizes[] = {1, 15, 16, 17, 63, 64, 130, 384};
constexpr std::size_t kBatches[] = {1, 2, 5, 7, 17};

void check_dense(const Kernels& kernels, DenseType type, Hash& hash) {
  Inputs inputs;
  ThreadPool pool(2);
  for (const std::size_t rows : {1U, 17U, 70U}) {
    for (const std::size_t cols : kSizes) {
      const DenseMatrix w(inputs.bf16_floats(rows * cols), rows, cols, type);
      for (const std::size_t m : kBatches) {
        const auto x = inputs.floats(m * cols);
        std::vector<float> y(m * rows);
        kernels.matmul(pool, w, x.data(), cols, m, y.data(), rows);
        hash.add(y);
      }
    }
  }
}

/// Calls use(rows, cols, m, quantised rows) and hashes the product it returns.
template <class Use>
void check_low_bit(const Kernels& kernels, Hash& hash, Use use) {
  Inputs inputs;
  for (const std::size_t rows : {1U, 17U, 70U}) {
    for (const std::size_t cols : {4U, 16U, 36U, 64U, 132U, 384U}) {
      for (const std::size_t m : kBatches) {
        const std::size_t stride = (cols + 63) / 64 * 64;
        const auto x = inputs.floats(m * cols);
        std::vector<std::int8_t> q(m * stride);
        std::vector<float> scales(m);
        for (std::size_t i = 0; i < m; ++i) {
          kernels.quantize_row(x.data() + i * cols, cols, q.data() + i * stride, stride,
                               &scales[i]);
        }
        hash.add(q);
        hash.add(scales);
        std::vector<float> y(m * rows);
        use(inputs, rows, cols, m, QuantizedRows{q.data(), scales.data(), stride}, y);
        hash.add(y);
      }
    }
  }
}

void check_int8(const Kernels& kernels, Hash& hash) {
  ThreadPool pool(1);
  check_low_bit(kernels, hash,
                [&](Inputs& inputs, std::size_t rows, std::size_t cols, std::size_t m,
                    const QuantizedRows& x, std::vector<float>& y) {
                  std::vector<std::int8_t> w(rows * cols);
                  for (auto& v : w) {
                    v = static_cast<std::int8_t>(static_cast<int>(inputs.next() % 255) - 127);
                  }
                  const Int8Matrix matrix(w, inputs.floats(rows), rows, cols);
                  kernels.matmul(pool, matrix, x, m, y.data(), rows);
                });
}

void check_ternary(const Kernels& kernels, TernaryKernel kernel, Hash& hash) {
  ThreadPool pool(1);
  check_low_bit(kernels, hash,
                [&](Inputs& inputs, std::size_t rows, std::size_t cols, std::size_t m,
                    const QuantizedRows& x, std::vector<float>& y) {
                  std::vector<std::uint8_t> w(rows * cols / 4);
                  for (auto& v : w) {
                    v = static_cast<std::uint8_t>(inputs.next());
                  }
                  const TernaryMatrix matrix(w, inputs.floats(rows), rows, cols);
                  kernels.matmul(pool, matrix, x, m, y.data(), rows, kernel);
                });
}

void check_rows(const Kernels& kernels, Hash& hash) {
  Inputs inputs;
  for (const std::size_t n : kSizes) {
    const auto x = inputs.floats(n, 20.0F);
    const auto w = inputs.floats(n);
    std::vector<float> y(n);
    kernels.rms_norm(x.data(), w.data(), n, 1e-5F, y.data());
    hash.add(y);
    kernels.silu(x.data(), n, y.data());
    hash.add(y);
    kernels.silu_mul(x.data(), w.data(), n, y.data());
    hash.add(y);
    kernels.sigmoid(x.data(), n, y.data());
    hash.add(y);
    float max = 0.0F;
    const float sum = kernels.exp_sum(x.data(), n, y.data(), &max);
    hash.add(y);
    hash.add(std::vector<float>{sum, max, static_cast<float>(kernels.argmax(x.data(), n))});
    const float* rows[] = {x.data(), w.data(), x.data()};
    const auto taps = inputs.floats(3 * n);
    kernels.short_conv(rows, taps.data(), 3, n, y.data());
    kernels.add(y.data(), x.data(), n);
    kernels.l2_normalize(y.data(), 1, n, 1e-6F);
    hash.add(y);
    const auto angles = inputs.floats(n);
    kernels.rope(y.data(), 1, n / 2 * 2, angles.data(), angles.data() + n / 2);
    hash.add(y);
  }
}

void check_mixers(const Kernels& kernels, Hash& hash) {
  Inputs inputs;
  for (const std::size_t dim : {8U, 17U, 64U, 96U, 128U}) {
    for (const bool before : {false, true}) {
      const std::size_t wide = dim + dim / 2;
      const DeltaRule rule{dim, wide, 0.125F, before};
      auto state = inputs.floats(dim * wide);
      std::vector<float> out(2 * wide), work(16 * dim);
      float* const to[] = {nullptr, state.data()};
      for (int step = 0; step < 3; ++step) {
        const auto q = inputs.floats(2 * wide), k = inputs.floats(2 * wide, 0.0625F),
                   v = inputs.floats(2 * wide), decay = inputs.floats(2), write = inputs.floats(2);
        kernels.delta_rule(rule, {.count = 2,
                                  .q = q.data(),
                                  .k = k.data(),
                                  .v = v.data(),
                                  .stride = wide,
                                  .decay = decay.data(),
                                  .write = write.data(),
                                  .gate_stride = 1,
                                  .out = out.data(),
                                  .out_stride = wide,
                                  .from = state.data(),
                                  .to = to,
                                  .to_offset = 0,
                                  .work = work.data(),
                                  .past_caches = false});
        hash.add(out);
      }
      hash.add(state);
    }
    for (const std::size_t positions : {1U, 17U, 150U}) {
      const std::size_t padded = (positions + 15) / 16 * 16;
      std::vector<float> keys(padded * dim), scratch(padded), out(dim);
      for (std::size_t j = 0; j < positions; ++j) {
        kernels.store_key(keys.data(), j, dim, inputs.floats(dim).data());
      }
      const auto values = inputs.floats(positions * dim);
      const auto q = inputs.floats(dim);
      kernels.attend({keys.data(), values.data(), positions, dim, 0.25F}, q.data(), scratch.data(),
                     out.data());
      hash.add(out);
      constexpr std::size_t kQueries = 7;  // A tile of each height.
      const auto queries = inputs.floats(kQueries * dim);
      std::vector<float> parts(kQueries * (dim + 2));
      kernels.attend_block({keys.data(), values.data(), positions, dim, 0.25F}, queries.data(), dim,
                           kQueries, parts.data(), dim + 2);
      kernels.merge_attention(parts.data(), dim + 2, kQueries, dim, out.data());
      hash.add(out);
    }
    auto gates = inputs.floats(dim), decay = inputs.floats(dim);
    const auto bias = inputs.floats(dim), write = inputs.floats(dim);
    kernels.delta_gates(gates.data(), write.data(), bias.data(), bias.data(), dim, 2.0F,
                        decay.data(), gates.data());
    hash.add(decay);
    hash.add(gates);
    kernels.sigmoid_mul(decay.data(), gates.data(), dim, gates.data());
    hash.add(gates);
    kernels.rope_halves(gates.data(), 1, dim, dim / 2 * 2, decay.data(), bias.data());
    hash.add(gates);
  }
}

void check_search(const Kernels& kernels, Hash& hash) {
  Inputs inputs;
  for (const std::size_t dim : {1U, 16U, 33U}) {
    std::vector<std::uint16_t> panel(dim * kLanes);
    for (std::uint16_t& value : panel) {
      // Any sign, exponents around 1, any mantissa.
      value = static_cast<std::uint16_t>((inputs.next() & 0x83FFU) + 0x3C00U);
    }
    for (const std::size_t tokens : {1U, 6U, 16U}) {
      const auto queries = inputs.floats(tokens * dim);
      std::vector<float> dots(tokens * kLanes);
      kernels.bf16_dots(panel.data(), queries.data(), tokens, dim, dots.data());
      hash.add(dots);
      hash.add(
          std::vector<float>{kernels.bf16_alignment(panel.data(), queries.data(), tokens, dim)});
    }
  }
  std::vector<std::uint8_t> panels(50 * kCoarseCoordinates * kLanes);
  for (std::uint8_t& value : panels) {
    value = static_cast<std::uint8_t>(1 + inputs.next() % 255);
  }
  std::vector<std::int8_t> query(kCoarseTokens * kCoarseCoordinates);
  for (std::int8_t& value : query) {
    value = static_cast<std::int8_t>(static_cast<int>(inputs.next() % 255) - 127);
  }
  std::vector<std::int32_t> scores(50);
  kernels.coarse_alignments(panels.data(), scores.size(), query.data(), scores.data());
  hash.add(scores);
  for (const std::size_t n : kSizes) {
    for (const std::size_t count : {1U, 17U}) {
      auto rows = inputs.floats(count * n);
      kernels.unit_rows(rows.data(), count, n);
      hash.add(rows);
      std::vector<float> dots(count);
      kernels.ordered_dots(rows.data(), n, count, inputs.floats(n).data(), n, dots.data());
      hash.add(dots);
      std::vector<ProjectedTo> places(rows.size());
      for (ProjectedTo& place : places) {
        place = {static_cast<std::uint32_t>(inputs.next() % 7),
                 inputs.next() % 2 == 0 ? 1.0F : -1.0F};
      }
      std::vector<float> projected(7);
      kernels.project(rows.data(), places.data(), places.size(), projected.data());
      hash.add(projected);
    }
  }
}

void check_choosing(const Kernels& kernels, Hash& hash) {
  Inputs inputs;
  for (const std::size_t n : {1U, 17U, 64U, 130U, 1000U}) {
    const auto x = inputs.floats(n, 20.0F);
    std::vector<float> largest((n + kMaxBlock - 1) / kMaxBlock);
    kernels.block_max(x.data(), n, largest.data());
    hash.add(largest);
    std::vector<std::uint32_t> places(n);
    places.resize(kernels.places_at_least(x.data(), n, 0.5F, places.data()));
    hash.add(places);
    places.assign(n, 0);
    const Race rules{inputs.next() * 0x100000001ULL, 5, largest[0], 0x1p20F, 0x1.0cp30F};
    places.resize(kernels.race(x.data(), n, rules, places.data()));
    hash.add(places);
    for (const double temperature : {1.0, 0.75}) {
      hash.add(std::vector<double>{kernels.softmax_sum(x.data(), n, temperature, 30.0)});
    }
    std::vector<double> wide(x.begin(), x.end());
    kernels.exp_f64(wide.data(), n, wide.data());
    hash.add(wide);
  }
}

void check_scalar_math(const Kernels&, Hash& hash) {
  Inputs inputs;
  for (const float x : inputs.floats(2000, 45.0F)) {
    const double wide = static_cast<double>(x);
    hash.add(std::vector<float>{exp_f32(x), sigmoid_f32(x), log_f32(x < 0 ? -x : x)});
    hash.add(std::vector<double>{exp_f64(wide), log_f64(wide < 0 ? -wide : wide),
                                 sin_f64(wide * 100), cos_f64(wide * 100)});
  }
}

struct Check {
  const char* name;
  std::function<void(const Kernels&, Hash&)> run;
};

int run_checks() {
  const Check checks[] = {
      {"matmul_f32", [](const Kernels& k, Hash& h) { check_dense(k, DenseType::kF32, h); }},
      {"matmul_bf16", [](const Kernels& k, Hash& h) { check_dense(k, DenseType::kBf16, h); }},
      {"matmul_int8", check_int8},
      {"ternary_dotprod",
       [](const Kernels& k, Hash& h) { check_ternary(k, TernaryKernel::kDotprod, h); }},
      {"ternary_addsub",
       [](const Kernels& k, Hash& h) { check_ternary(k, TernaryKernel::kAddsub, h); }},
      {"ternary_scalar",
       [](const Kernels& k, Hash& h) { check_ternary(k, TernaryKernel::kScalar, h); }},
      {"rows", check_rows},
      {"mixers", check_mixers},
      {"search", check_search},
      {"choosing", check_choosing},
      {"scalar_math", check_scalar_math}};
  bool agree = true;
  for (const Check& check : checks) {
    Hash expected;
    check.run(KernelRegistry::attainable().back(), expected);
    std::printf("%s %016llx\n", check.name, static_cast<unsigned long long>(expected.value()));
    for (const Kernels& kernels : KernelRegistry::attainable()) {
      Hash found;
      check.run(kernels, found);
      if (found.value() == expected.value()) {
        continue;
      }
      std::printf("%s differs on %s\n", check.name, std::string(kernels.variant()).c_str());
      agree = false;
    }
  }
  for (const Kernels& kernels : KernelRegistry::attainable()) {
    std::fprintf(stderr, "checked %s\n", std::string(kernels.variant()).c_str());
  }
  return agree ? 0 : 1;
}

}  // namespace
}  // namespace spel::kernels

int main() { return spel::kernels::run_checks(); }

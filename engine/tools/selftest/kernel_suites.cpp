// [1] ternary kernels, [9] instruction sets.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <sstream>
#include <vector>

#include "engine/quantise/quantize.h"
#include "engine/tools/model_rig.h"
#include "engine/tools/prompts.h"
#include "engine/tools/selftest/suites.h"
#include "kernels/scalar_math.h"

namespace spel::engine::tools {
namespace {

struct Shape {
  std::size_t rows;
  std::size_t cols;
};
constexpr std::array<Shape, 4> kShapes = {{{17, 20}, {130, 68}, {384, 1024}, {1024, 384}}};
constexpr std::size_t kBatch = 3;
constexpr std::array<kernels::TernaryKernel, 3> kTernaryKernels = {kernels::TernaryKernel::kDotprod,
                                                                   kernels::TernaryKernel::kAddsub,
                                                                   kernels::TernaryKernel::kScalar};

/// Seeded values in (-1, 1), the same on every machine.
std::vector<float> seeded_values(std::size_t count, std::uint64_t seed) {
  constexpr std::size_t kSteps = 4096;
  std::vector<float> values;
  values.reserve(count);
  for (const TokenId id : random_prompt(count, 2 * kSteps - 1, seed)) {
    values.push_back(static_cast<float>(id - static_cast<TokenId>(kSteps) + 1) /
                     static_cast<float>(kSteps));
  }
  return values;
}

/// A ternary matrix, its activations, and the product in double over what both stand for.
struct TernaryCase {
  TernaryCase(const Shape& shape, std::uint64_t seed)
      : rows(shape.rows),
        cols(shape.cols),
        stride((cols + 63) / 64 * 64),
        weights(quantize_ternary(seeded_values(rows * cols, seed), rows, cols)),
        matrix(weights.packed, weights.scales, rows, cols),
        activations(seeded_values(kBatch * cols, seed + 1)),
        quantized(kBatch * stride),
        scales(kBatch) {
    const kernels::Kernels& scalar = kernels::Kernels::select(kernels::Isa::kScalar);
    for (std::size_t i = 0; i < kBatch; ++i) {
      scalar.quantize_row(&activations[i * cols], cols, &quantized[i * stride], stride, &scales[i]);
    }
  }

  [[nodiscard]] std::vector<float> multiply(const kernels::Kernels& kernels,
                                            kernels::TernaryKernel kernel) {
    kernels::ThreadPool pool(1);
    std::vector<float> y(kBatch * rows);
    kernels.matmul(pool, matrix, {quantized.data(), scales.data(), stride}, kBatch, y.data(), rows,
                   kernel);
    return y;
  }

  [[nodiscard]] std::vector<float> dequantized_product() const {
    const std::vector<float> w = dequantize_ternary(weights, cols);
    std::vector<float> y;
    for (std::size_t i = 0; i < kBatch; ++i) {
      for (std::size_t row = 0; row < rows; ++row) {
        double sum = 0.0;
        for (std::size_t k = 0; k < cols; ++k) {
          sum += double{w[row * cols + k]} * quantized[i * stride + k] * double{scales[i]};
        }
        y.push_back(static_cast<float>(sum));
      }
    }
    return y;
  }

  std::size_t rows;
  std::size_t cols;
  std::size_t stride;
  TernaryRows weights;
  kernels::TernaryMatrix matrix;
  std::vector<float> activations;
  std::vector<std::int8_t> quantized;
  std::vector<float> scales;
};

}  // namespace

void check_ternary(const SuiteContext& context, Checks& checks) {
  constexpr double kTolerance = 1e-4;
  double worst = 0.0;
  std::size_t sets = 0;
  for (std::size_t i = 0; i < kShapes.size(); ++i) {
    TernaryCase problem(kShapes[i], 100 + i);
    const kernels::Kernels& scalar = kernels::Kernels::select(kernels::Isa::kScalar);
    const auto expected = problem.multiply(scalar, kernels::TernaryKernel::kScalar);
    sets = 0;
    for (const kernels::Isa isa : kernels::attainable_isas()) {
      ++sets;
      for (const kernels::TernaryKernel kernel : kTernaryKernels) {
        checks.same_bits(std::string(ternary_kernel_name(kernel)) + " on " +
                             std::string(isa_name(isa)) + ", " + std::to_string(problem.rows) +
                             " x " + std::to_string(problem.cols),
                         problem.multiply(kernels::Kernels::select(isa), kernel), expected);
      }
    }
    const auto found = problem.multiply(context.kernels, kernels::TernaryKernel::kDotprod);
    worst = std::max(worst, checks.max_abs(found, problem.dequantized_product()));
  }
  checks.require(worst < kTolerance,
                 "GEMV is " + std::to_string(worst) + " away from the dequantised reference");
  std::ostringstream text;
  text << "dotprod, addsub, scalar on " << sets << " instruction sets: " << checks.differed()
       << " of " << checks.compared() << " differ; GEMV vs dequantised reference max_abs=" << worst;
  checks.note(text.str());
}

void check_instruction_sets(const SuiteContext& context, Checks& checks) {
  constexpr std::size_t kTokens = 24;
  constexpr std::size_t kPass = 7;
  std::string names;
  for (const Subject& subject : context.subjects) {
    ModelOptions options;
    options.max_seq = context_of(subject, 2 * kTokens);
    const auto tokens = random_prompt(std::min(kTokens, options.max_seq),
                                      subject.weights->target.spec.vocab_size, 9);
    std::vector<float> target_reference;
    std::vector<float> draft_reference;
    names.clear();
    for (const kernels::Isa isa : kernels::attainable_isas()) {
      AssembledModel rig =
          assemble_rig(subject.weights, kernels::Kernels::select(isa), 1, 1, options);
      const auto target_state = rig.target->make_state();
      const auto draft_state = rig.draft->make_state();
      const auto target = feed(*rig.target, *target_state, tokens, kPass, true);
      const auto draft = feed(*rig.draft, *draft_state, tokens, kPass, true);
      if (target_reference.empty()) {
        target_reference = target;
        draft_reference = draft;
      }
      names += (names.empty() ? "" : ", ") + std::string(isa_name(isa));
      checks.same_bits(subject.name + ", target on " + std::string(isa_name(isa)), target,
                       target_reference);
      checks.same_bits(subject.name + ", draft on " + std::string(isa_name(isa)), draft,
                       draft_reference);
    }
  }
  checks.note(names + ": " + std::to_string(checks.compared()) + " logits, " +
              std::to_string(checks.differed()) + " differ");
}

}  // namespace spel::engine::tools

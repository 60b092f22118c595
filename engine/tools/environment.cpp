#include "engine/tools/environment.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "config/base/error.h"
#include "config/base/limits.h"
#include "engine/tools/shape.h"

namespace spel::engine::tools {
namespace {

constexpr double kDefaultTolerance = 1e-3;

[[noreturn]] void refuse(const std::string& name, const std::string& value,
                         const std::string& expected) {
  throw Error(ErrorCode::kInvalidArgument, name + " is \"" + value + "\"; expected " + expected);
}

std::optional<std::size_t> count(const char* name, std::size_t least, std::size_t most) {
  const std::optional<std::string> text = variable(name);
  return text ? std::optional<std::size_t>(parse_between(name, *text, least, most)) : std::nullopt;
}

}  // namespace

void check_environment() {
  (void)model_from_environment();
  (void)kernels_from_environment();
  (void)ternary_from_environment();
  (void)draft_threads_from_environment(1);
  (void)spec_k_from_environment(0);
  (void)count("SPEL_BENCH_K", 1, limits::kSpecKMax);
  (void)context_from_environment(limits::kMaxSeqMax);
  (void)tolerance_from_environment();
  check_shape_variables();
}

std::optional<std::filesystem::path> model_from_environment() {
  const std::optional<std::string> weights = variable("SPEL_WEIGHTS");
  const std::optional<std::string> model = variable("SPEL_MODEL");
  if (weights && model && *weights != *model) {
    throw Error(ErrorCode::kInvalidArgument, "SPEL_WEIGHTS is \"" + *weights +
                                                 "\" and SPEL_MODEL is \"" + *model +
                                                 "\"; set one of them");
  }
  const std::optional<std::string>& path = weights ? weights : model;
  if (path && path->empty()) {
    refuse(weights ? "SPEL_WEIGHTS" : "SPEL_MODEL", *path, "the path of a model");
  }
  return path ? std::optional<std::filesystem::path>(*path) : std::nullopt;
}

const kernels::Kernels& kernels_from_environment() {
  const std::string text = variable("SPEL_ISA").value_or("auto");
  if (text == "auto") {
    return kernels::Kernels::select();
  }
  const std::optional<kernels::Isa> isa = kernels::parse_isa(text);
  if (!isa) {
    refuse("SPEL_ISA", text, "auto, avx512, avx2, neon or scalar");
  }
  try {
    return kernels::Kernels::select(isa);
  } catch (const Error& error) {
    throw Error(error.code(), "SPEL_ISA is \"" + text + "\": " + error.what());
  }
}

kernels::TernaryKernel ternary_from_environment() {
  using kernels::TernaryKernel;
  const std::string text = variable("SPEL_KERNEL").value_or("auto");
  if (text == "auto") {
    return TernaryKernel::kDotprod;
  }
  for (const TernaryKernel kernel :
       {TernaryKernel::kDotprod, TernaryKernel::kAddsub, TernaryKernel::kScalar}) {
    if (text == kernels::ternary_kernel_name(kernel)) {
      return kernel;
    }
  }
  refuse("SPEL_KERNEL", text, "auto, dotprod, addsub or scalar");
}

std::size_t draft_threads_from_environment(std::size_t fallback) {
  return count("SPEL_DRAFT_THREADS", 1, limits::kDraftThreadsMax).value_or(fallback);
}

std::size_t spec_k_from_environment(std::size_t fallback) {
  return count("SPEL_SPEC_K", 0, limits::kSpecKMax).value_or(fallback);
}

std::size_t bench_k_from_environment() {
  const char* const name = variable("SPEL_BENCH_K") ? "SPEL_BENCH_K" : "SPEL_SPEC_K";
  return count(name, 1, limits::kSpecKMax).value_or(limits::kSpecKDefault);
}

std::size_t context_from_environment(std::size_t model_max_seq) {
  return std::min(count("SPEL_MAX_SEQ", 1, limits::kMaxSeqMax).value_or(model_max_seq),
                  model_max_seq);
}

double tolerance_from_environment() {
  const std::optional<std::string> text = variable("SPEL_VERIFY_TOL");
  return text ? parse_positive("SPEL_VERIFY_TOL", *text) : kDefaultTolerance;
}

}  // namespace spel::engine::tools

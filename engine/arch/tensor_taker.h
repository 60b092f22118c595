// Takes the tensors a model needs out of safetensors files.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engine/arch/tensors.h"
#include "engine/files/safetensors.h"

namespace spel::engine {

/// Checks each tensor as it is taken; what is never asked for is refused at the end.
class TensorTaker {
 public:
  /// `files` must outlive it; no tensor is in two of them.
  explicit TensorTaker(std::span<const SafetensorsView> files) : files_(files) {}
  explicit TensorTaker(const SafetensorsView& file) : TensorTaker(std::span(&file, 1)) {}

  /// Throws Error(kCorrupt) naming file and tensor if there is none of this name, one of `dtypes`
  /// and this shape, or if it holds a value that is not finite.
  const TensorView& take(const std::string& name, std::initializer_list<DType> dtypes,
                         const std::vector<std::uint64_t>& shape);

  /// Throws Error(kCorrupt) naming a tensor that nobody took and whose name begins with none of
  /// `ignored`.
  void refuse_others(std::span<const std::string> ignored = {}) const;

 private:
  std::span<const SafetensorsView> files_;
  std::set<const TensorView*> taken_;
};

/// As a file states it: [rows] of a vector, [rows, 1, cols] of a convolution over channels, else
/// [rows, cols].
[[nodiscard]] std::vector<std::uint64_t> shape_of(const TensorSpec& tensor);

/// Requires `files` to hold the tensors of `layout` that are not the draft's, in F32, BF16 or F16,
/// and no others but ignored ones. Throws as take() and refuse_others().
void check_target(const TensorLayout& layout, std::span<const SafetensorsView> files);

}  // namespace spel::engine

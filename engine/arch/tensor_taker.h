// Takes the tensors a model needs out of a safetensors file.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "engine/arch/tensors.h"
#include "engine/files/safetensors.h"

namespace spel::engine {

/// Checks each tensor as it is taken; what is never asked for is refused at the end.
class TensorTaker {
 public:
  /// `file` must outlive it.
  explicit TensorTaker(const SafetensorsView& file) : file_(file), taken_(file.tensors().size()) {}

  /// Throws Error(kCorrupt) naming file and tensor if there is none of this name, one of `dtypes`
  /// and this shape, or if it holds a value that is not finite.
  const TensorView& take(const std::string& name, std::initializer_list<DType> dtypes,
                         const std::vector<std::uint64_t>& shape);

  /// Throws Error(kCorrupt) naming a tensor that nobody took.
  void refuse_others() const;

 private:
  const SafetensorsView& file_;
  std::vector<bool> taken_;
};

/// [rows] of a vector, else [rows, cols].
[[nodiscard]] std::vector<std::uint64_t> shape_of(const TensorSpec& tensor);

/// Requires `file` to hold exactly the tensors of `layout` that are not the draft's, in F32 or
/// BF16. Throws as take() and refuse_others().
void check_target(const TensorLayout& layout, const SafetensorsView& file);

}  // namespace spel::engine

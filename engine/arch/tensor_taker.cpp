#include "engine/arch/tensor_taker.h"

#include <algorithm>
#include <string_view>

#include "config/base/error.h"
#include "engine/files/tensor_values.h"

namespace spel::engine {
namespace {

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  std::string out = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    out += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  }
  return out + "]";
}

}  // namespace

const TensorView& TensorTaker::take(const std::string& name, std::initializer_list<DType> dtypes,
                                    const std::vector<std::uint64_t>& shape) {
  const TensorView* tensor = nullptr;
  const SafetensorsView* file = nullptr;
  for (const SafetensorsView& one : files_) {
    if (const TensorView* found = one.find(name)) {
      tensor = found;
      file = &one;
    }
  }
  if (tensor == nullptr) {
    throw Error(ErrorCode::kCorrupt,
                files_.front().source() + (files_.size() > 1 ? " and its other shards" : "") +
                    ": tensor " + name + " is missing; the shape in config.json needs it");
  }
  if (std::find(dtypes.begin(), dtypes.end(), tensor->dtype) == dtypes.end()) {
    std::string allowed;
    for (const DType dtype : dtypes) {
      allowed += (allowed.empty() ? "" : " or ") + std::string(dtype_name(dtype));
    }
    throw Error(ErrorCode::kCorrupt, file->source() + ": tensor " + name + " is " +
                                         std::string(dtype_name(tensor->dtype)) + "; expected " +
                                         allowed);
  }
  if (tensor->shape != shape) {
    throw Error(ErrorCode::kCorrupt, file->source() + ": tensor " + name + " has shape " +
                                         shape_text(tensor->shape) + "; expected " +
                                         shape_text(shape) + " from config.json");
  }
  if (is_float(tensor->dtype)) {
    require_finite(tensor->data, tensor->dtype, file->source(), "tensor " + name);
  }
  taken_.insert(tensor);
  return *tensor;
}

void TensorTaker::refuse_others(std::span<const std::string> ignored) const {
  for (const SafetensorsView& file : files_) {
    for (const TensorView& tensor : file.tensors()) {
      const bool known =
          taken_.contains(&tensor) || std::ranges::any_of(ignored, [&](const std::string& prefix) {
            return tensor.name.starts_with(prefix);
          });
      if (!known) {
        throw Error(ErrorCode::kCorrupt,
                    file.source() + ": tensor " + tensor.name +
                        " does not belong to a model of the shape in config.json");
      }
    }
  }
}

std::vector<std::uint64_t> shape_of(const TensorSpec& tensor) {
  if (tensor.is_vector()) {
    return {tensor.rows};
  }
  if (tensor.role == TensorRole::kConv1d) {
    return {tensor.rows, 1, tensor.cols};
  }
  return {tensor.rows, tensor.cols};
}

void check_target(const TensorLayout& layout, std::span<const SafetensorsView> files) {
  TensorTaker taker(files);
  for (const TensorSpec& tensor : layout.in_file_order()) {
    if (!tensor.in_draft) {
      taker.take(tensor.name, {DType::kF32, DType::kBf16, DType::kF16}, shape_of(tensor));
    }
  }
  taker.refuse_others(layout.ignored_prefixes);
}

}  // namespace spel::engine

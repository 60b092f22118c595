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
  const TensorView* tensor = file_.find(name);
  if (tensor == nullptr) {
    throw Error(ErrorCode::kCorrupt, file_.source() + ": tensor " + name +
                                         " is missing; the shape in config.json needs it");
  }
  if (std::find(dtypes.begin(), dtypes.end(), tensor->dtype) == dtypes.end()) {
    std::string allowed;
    for (const DType dtype : dtypes) {
      allowed += (allowed.empty() ? "" : " or ") + std::string(dtype_name(dtype));
    }
    throw Error(ErrorCode::kCorrupt, file_.source() + ": tensor " + name + " is " +
                                         std::string(dtype_name(tensor->dtype)) + "; expected " +
                                         allowed);
  }
  if (tensor->shape != shape) {
    throw Error(ErrorCode::kCorrupt, file_.source() + ": tensor " + name + " has shape " +
                                         shape_text(tensor->shape) + "; expected " +
                                         shape_text(shape) + " from config.json");
  }
  if (tensor->dtype == DType::kF32 || tensor->dtype == DType::kBf16) {
    require_finite(tensor->data, tensor->dtype, file_.source(), "tensor " + name);
  }
  taken_[static_cast<std::size_t>(tensor - file_.tensors().data())] = true;
  return *tensor;
}

void TensorTaker::refuse_others() const {
  const auto at = std::find(taken_.begin(), taken_.end(), false);
  if (at != taken_.end()) {
    const auto index = static_cast<std::size_t>(at - taken_.begin());
    throw Error(ErrorCode::kCorrupt, file_.source() + ": tensor " + file_.tensors()[index].name +
                                         " does not belong to a model of the shape in config.json");
  }
}

std::vector<std::uint64_t> shape_of(const TensorSpec& tensor) {
  return tensor.is_vector() ? std::vector<std::uint64_t>{tensor.rows}
                            : std::vector<std::uint64_t>{tensor.rows, tensor.cols};
}

void check_target(const TensorLayout& layout, const SafetensorsView& file) {
  TensorTaker taker(file);
  for (const TensorSpec& tensor : layout.in_file_order()) {
    if (!tensor.in_draft) {
      taker.take(tensor.name, {DType::kF32, DType::kBf16}, shape_of(tensor));
    }
  }
  taker.refuse_others();
}

}  // namespace spel::engine

#include "engine/model/model_source.h"

#include "config/base/error.h"
#include "engine/model/model_directory.h"
#include "engine/model/spelw.h"

namespace spel::engine {

std::vector<float> ModelSource::read_values(const TensorSpec& tensor) const {
  std::vector<float> values(tensor.values());
  read(tensor, values);
  return values;
}

Int8Rows ModelSource::read_int8(const TensorSpec& tensor) const {
  return quantize_int8(read_values(tensor), tensor.rows, tensor.cols);
}

TernaryRows ModelSource::read_ternary(const TensorSpec& tensor) const {
  return quantize_ternary(read_values(tensor), tensor.rows, tensor.cols);
}

std::unique_ptr<ModelSource> open_model(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    throw Error(ErrorCode::kNotFound, path.string() + ": no such file or directory");
  }
  if (error) {
    throw Error(ErrorCode::kIo, path.string() + ": " + error.message());
  }
  return std::filesystem::is_directory(status) ? open_model_directory(path) : open_spelw(path);
}

}  // namespace spel::engine

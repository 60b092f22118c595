#include "engine/document/load_model.h"

#include "config/base/error.h"
#include "engine/document/model_directory.h"
#include "engine/document/random_source.h"
#include "engine/document/spelw.h"

namespace spel::engine {

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

std::shared_ptr<const ModelWeights> build_weights(const ModelSource& source, WeightsDtype dtype) {
  auto weights = std::make_shared<ModelWeights>(pack_spel_hybrid(source.config(), source, dtype));
  weights->golden = source.golden();
  weights->sha256 = source.sha256();
  weights->file_bytes = source.file_bytes();
  return weights;
}

std::shared_ptr<const ModelWeights> load_model(const std::filesystem::path& path,
                                               WeightsDtype dtype) {
  return build_weights(*open_model(path), dtype);
}

std::shared_ptr<const ModelWeights> random_model(const ModelConfig& config, std::uint64_t seed,
                                                 WeightsDtype dtype) {
  return build_weights(*random_source(config, seed), dtype);
}

}  // namespace spel::engine

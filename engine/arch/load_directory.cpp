#include <string>

#include "engine/arch/architecture.h"
#include "engine/arch/directory_names.h"
#include "engine/arch/pack.h"
#include "engine/arch/tensor_taker.h"
#include "engine/files/mapped_file.h"
#include "engine/files/sha256.h"
#include "engine/files/tensor_values.h"

namespace spel::engine {
namespace {

class SafetensorsReader final : public TensorReader {
 public:
  /// `file` must outlive it.
  explicit SafetensorsReader(const SafetensorsView& file) : file_(file) {}

  void read(const TensorSpec& tensor, std::span<float> out) const override {
    const TensorView& view = *file_.find(tensor.name);
    to_float(view.data, view.dtype, out);
  }

 private:
  const SafetensorsView& file_;
};

}  // namespace

std::shared_ptr<const ModelWeights> load_directory(const std::filesystem::path& path,
                                                   const Architecture& architecture,
                                                   WeightsDtype dtype) {
  const MappedFile config(path / kConfigName);
  const MappedFile file(path / kTargetName);
  const SafetensorsView view(file.bytes(), (path / kTargetName).string());
  const ModelSpec spec = architecture.spec(config.text(), (path / kConfigName).string());
  const TensorLayout tensors = architecture.tensors(spec);
  check_target(tensors, view);
  const SafetensorsReader reader(view);
  auto weights = std::make_shared<ModelWeights>();
  weights->shared = pack_shared(tensors, reader, dtype);
  weights->target = pack_dense(spec, tensors.target, reader, dtype);
  weights->sha256 = sha256_hex(sha256_hex(config.bytes()) + sha256_hex(file.bytes()));
  weights->file_bytes = config.bytes().size() + file.bytes().size();
  return weights;
}

}  // namespace spel::engine

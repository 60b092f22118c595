#include <algorithm>
#include <string>

#include "engine/arch/architecture.h"
#include "engine/arch/directory_names.h"
#include "engine/arch/pack.h"
#include "engine/arch/tensor_files.h"
#include "engine/arch/tensor_taker.h"
#include "engine/files/mapped_file.h"
#include "engine/files/sha256.h"
#include "engine/files/tensor_values.h"
#include "kernels/scalar_math.h"

namespace spel::engine {
namespace {

class FilesReader final : public TensorReader {
 public:
  /// `files` must outlive it.
  explicit FilesReader(const TensorFiles& files) : files_(files) {}

  void read(const TensorSpec& tensor, std::span<float> out) const override {
    read_rows(tensor, {0, tensor.rows}, out);
  }

  void read_rows(const TensorSpec& tensor, RowBlock block, std::span<float> out) const override {
    const TensorView& view = *files_.find(tensor.name);
    const std::size_t row_bytes = std::size_t{tensor.cols} * dtype_bytes(view.dtype);
    to_float(view.data.subspan(block.begin * row_bytes, block.count * row_bytes), view.dtype, out);
    switch (tensor.values_are) {
      case TensorValues::kAsStored:
        break;
      case TensorValues::kOnePlus:
        std::ranges::transform(out, out.begin(), [](float w) { return 1.0F + w; });
        break;
      case TensorValues::kExp:
        std::ranges::transform(out, out.begin(), kernels::exp_f32);
        break;
    }
  }

 private:
  const TensorFiles& files_;
};

}  // namespace

std::shared_ptr<const ModelWeights> load_directory(const std::filesystem::path& path,
                                                   const Architecture& architecture,
                                                   WeightsDtype dtype) {
  const MappedFile config(path / kConfigName);
  const TensorFiles files(path);
  ModelSpec spec = architecture.spec(config.text(), (path / kConfigName).string());
  if (spec.name.empty()) {
    // A path may end in a slash, or be a dot.
    const auto whole = std::filesystem::absolute(path).lexically_normal();
    spec.name = (whole.has_filename() ? whole : whole.parent_path()).filename().string();
  }
  const TensorLayout tensors = architecture.tensors(spec, files);
  check_target(tensors, files.files());
  const FilesReader reader(files);
  auto weights = std::make_shared<ModelWeights>();
  weights->shared = pack_shared(tensors, reader, dtype);
  weights->target = pack_dense(spec, tensors.target, reader, dtype);
  weights->sha256 = sha256_hex(sha256_hex(config.bytes()) + files.digests());
  weights->file_bytes = config.bytes().size() + files.bytes();
  return weights;
}

}  // namespace spel::engine

#include "engine/model/weights.h"

#include <algorithm>
#include <span>
#include <utility>

#include "engine/model/model_source.h"
#include "engine/model/random_source.h"
#include "engine/model/tensor_values.h"
#include "kernels/scalar_math.h"

namespace spel::engine {
namespace {

/// [d_model][taps] as files have it to [taps][d_model] as the kernels read it.
std::vector<float> transposed(const std::vector<float>& values, const TensorSpec& tensor) {
  std::vector<float> out(values.size());
  for (std::size_t row = 0; row < tensor.rows; ++row) {
    for (std::size_t tap = 0; tap < tensor.cols; ++tap) {
      out[tap * tensor.rows + row] = values[row * tensor.cols + tap];
    }
  }
  return out;
}

std::vector<float> through_sigmoid(std::vector<float> values) {
  std::ranges::transform(values, values.begin(), kernels::sigmoid_f32);
  return values;
}

/// Reads a source's tensors into packed matrices, one layer at a time.
class Packer {
 public:
  Packer(const ModelSource& source, WeightsDtype dtype) : source_(source), dtype_(dtype) {}

  [[nodiscard]] TargetLayer target_layer(const LayerTensors& t) {
    TargetLayer layer;
    read_vectors(t, layer);
    layer.qkv = dense(t.qkv);
    layer.out = dense(t.out);
    layer.gate_up = dense(t.gate, t.up);
    layer.down = dense(t.down);
    return layer;
  }

  [[nodiscard]] DraftLayer draft_layer(const LayerTensors& t) {
    DraftLayer layer;
    read_vectors(t, layer);
    layer.qkv = int8(t.qkv);
    layer.out = int8(t.out);
    TernaryRows gate = source_.read_ternary(t.gate);
    const TernaryRows up = source_.read_ternary(t.up);
    gate.packed.insert(gate.packed.end(), up.packed.begin(), up.packed.end());
    gate.scales.insert(gate.scales.end(), up.scales.begin(), up.scales.end());
    layer.gate_up = ternary(gate, t.gate.cols);
    layer.down = ternary(source_.read_ternary(t.down), t.down.cols);
    return layer;
  }

  [[nodiscard]] kernels::DenseMatrix dense(const TensorSpec& tensor) {
    buffer_.resize(tensor.values());
    source_.read(tensor, buffer_);
    return pack(tensor.rows, tensor.cols);
  }

 private:
  template <typename Layer>
  void read_vectors(const LayerTensors& t, Layer& layer) const {
    layer.input_norm = source_.read_values(t.input_norm);
    layer.post_norm = source_.read_values(t.post_norm);
    for (const TensorSpec& tensor : t.recurrent) {
      std::vector<float> values = source_.read_values(tensor);
      if (tensor.role == TensorRole::kConv) {
        layer.recurrent.conv = transposed(values, tensor);
      } else if (tensor.role == TensorRole::kDecay) {
        layer.recurrent.decay = through_sigmoid(std::move(values));
      } else {
        layer.recurrent.write = through_sigmoid(std::move(values));
      }
    }
  }

  [[nodiscard]] kernels::DenseMatrix dense(const TensorSpec& above, const TensorSpec& below) {
    buffer_.resize(above.values() + below.values());
    const std::span<float> all(buffer_);
    source_.read(above, all.first(above.values()));
    source_.read(below, all.subspan(above.values()));
    return pack(std::size_t{above.rows} + below.rows, above.cols);
  }

  [[nodiscard]] kernels::DenseMatrix pack(std::size_t rows, std::size_t cols) const {
    const bool as_bf16 = dtype_ == WeightsDtype::kBf16 && is_bf16_exact(buffer_);
    return {buffer_, rows, cols, as_bf16 ? kernels::DenseType::kBf16 : kernels::DenseType::kF32};
  }

  [[nodiscard]] kernels::Int8Matrix int8(const TensorSpec& tensor) const {
    const Int8Rows rows = source_.read_int8(tensor);
    return {rows.values, rows.scales, tensor.rows, tensor.cols};
  }

  [[nodiscard]] static kernels::TernaryMatrix ternary(const TernaryRows& rows, std::size_t cols) {
    return {rows.packed, rows.scales, rows.scales.size(), cols};
  }

  const ModelSource& source_;
  WeightsDtype dtype_;
  std::vector<float> buffer_;
};

}  // namespace

std::shared_ptr<const ModelWeights> build_weights(const ModelSource& source, WeightsDtype dtype) {
  auto weights = std::make_shared<ModelWeights>();
  weights->config = source.config();
  weights->golden = source.golden();
  weights->sha256 = source.sha256();
  weights->file_bytes = source.file_bytes();
  const TensorLayout layout = tensor_layout(source.config());
  weights->shared.embedding = source.read_values(layout.embedding);
  weights->shared.final_norm = source.read_values(layout.final_norm);
  Packer packer(source, dtype);
  weights->shared.lm_head = packer.dense(layout.lm_head);
  weights->target.reserve(layout.target.size());
  for (const LayerTensors& layer : layout.target) {
    weights->target.push_back(packer.target_layer(layer));
  }
  weights->draft.reserve(layout.draft.size());
  for (const LayerTensors& layer : layout.draft) {
    weights->draft.push_back(packer.draft_layer(layer));
  }
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

#include "engine/arch/pack.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/files/tensor_values.h"
#include "kernels/scalar_math.h"

namespace spel::engine {
namespace {

kernels::DenseMatrix dense(std::span<const float> values, std::size_t rows, std::size_t cols,
                           WeightsDtype dtype) {
  const bool as_bf16 = dtype == WeightsDtype::kBf16 && is_bf16_exact(values);
  return {values, rows, cols, as_bf16 ? kernels::DenseType::kBf16 : kernels::DenseType::kF32};
}

/// [rows][cols] as [cols][rows].
std::vector<float> transposed(std::span<const float> values, const TensorSpec& tensor) {
  std::vector<float> out(values.size());
  for (std::size_t row = 0; row < tensor.rows; ++row) {
    for (std::size_t col = 0; col < tensor.cols; ++col) {
      out[col * tensor.rows + row] = values[row * tensor.cols + col];
    }
  }
  return out;
}

std::vector<float> through_sigmoid(std::vector<float> values) {
  std::ranges::transform(values, values.begin(), kernels::sigmoid_f32);
  return values;
}

/// How the matrices of one stack are made.
class Packer {
 public:
  virtual ~Packer() = default;
  [[nodiscard]] virtual kernels::Matrix projection(const TensorSpec& tensor) = 0;
  /// Above one another.
  [[nodiscard]] virtual kernels::Matrix projection(std::span<const TensorRows> parts) = 0;
  [[nodiscard]] virtual kernels::Matrix mlp(const TensorSpec& tensor) = 0;
  /// `above` over `below`.
  [[nodiscard]] virtual kernels::Matrix mlp(const TensorSpec& above, const TensorSpec& below) = 0;
};

class DensePacker final : public Packer {
 public:
  DensePacker(const TensorReader& reader, WeightsDtype dtype) : reader_(reader), dtype_(dtype) {}

  [[nodiscard]] kernels::Matrix projection(const TensorSpec& tensor) override {
    return mlp(tensor);
  }
  [[nodiscard]] kernels::Matrix projection(std::span<const TensorRows> parts) override {
    const std::size_t cols = parts.front().tensor.cols;
    std::size_t rows = 0;
    for (const TensorRows& part : parts) {
      rows += part.rows();
    }
    buffer_.resize(rows * cols);
    std::span<float> rest(buffer_);
    for (const TensorRows& part : parts) {
      if (part.blocks.empty()) {
        reader_.read(part.tensor, rest.first(part.tensor.values()));
        rest = rest.subspan(part.tensor.values());
      }
      for (const RowBlock& block : part.blocks) {
        reader_.read_rows(part.tensor, block, rest.first(block.count * cols));
        rest = rest.subspan(block.count * cols);
      }
    }
    return dense(buffer_, rows, cols, dtype_);
  }
  [[nodiscard]] kernels::Matrix mlp(const TensorSpec& tensor) override {
    buffer_.resize(tensor.values());
    reader_.read(tensor, buffer_);
    return dense(buffer_, tensor.rows, tensor.cols, dtype_);
  }
  [[nodiscard]] kernels::Matrix mlp(const TensorSpec& above, const TensorSpec& below) override {
    buffer_.resize(above.values() + below.values());
    const std::span<float> all(buffer_);
    reader_.read(above, all.first(above.values()));
    reader_.read(below, all.subspan(above.values()));
    return dense(buffer_, std::size_t{above.rows} + below.rows, above.cols, dtype_);
  }

 private:
  const TensorReader& reader_;
  WeightsDtype dtype_;
  std::vector<float> buffer_;  ///< Of one matrix, kept from one to the next.
};

class TernaryPacker final : public Packer {
 public:
  explicit TernaryPacker(const TensorReader& reader) : reader_(reader) {}

  [[nodiscard]] kernels::Matrix projection(const TensorSpec& tensor) override {
    const Int8Rows rows = reader_.read_int8(tensor);
    return kernels::Int8Matrix(rows.values, rows.scales, tensor.rows, tensor.cols);
  }
  /// One tensor, as the document's draft stores it: what is quantised is not put together anew.
  [[nodiscard]] kernels::Matrix projection(std::span<const TensorRows> parts) override {
    return projection(parts.front().tensor);
  }
  [[nodiscard]] kernels::Matrix mlp(const TensorSpec& tensor) override {
    return ternary(reader_.read_ternary(tensor), tensor.cols);
  }
  [[nodiscard]] kernels::Matrix mlp(const TensorSpec& above, const TensorSpec& below) override {
    TernaryRows rows = reader_.read_ternary(above);
    const TernaryRows more = reader_.read_ternary(below);
    rows.packed.insert(rows.packed.end(), more.packed.begin(), more.packed.end());
    rows.scales.insert(rows.scales.end(), more.scales.begin(), more.scales.end());
    return ternary(rows, above.cols);
  }

 private:
  static kernels::Matrix ternary(const TernaryRows& rows, std::size_t cols) {
    return kernels::TernaryMatrix(rows.packed, rows.scales, rows.scales.size(), cols);
  }

  const TensorReader& reader_;
};

std::vector<float> small(const std::optional<TensorSpec>& tensor, const TensorReader& reader) {
  return tensor ? reader.read_values(*tensor) : std::vector<float>();
}

/// The convolution's tensors above one another, [taps][conv_width].
std::vector<float> conv_weights(std::span<const TensorSpec> tensors, const TensorReader& reader) {
  if (tensors.empty()) {
    return {};
  }
  std::vector<float> values;
  TensorSpec whole = tensors.front();
  whole.rows = 0;
  for (const TensorSpec& tensor : tensors) {
    const std::vector<float> more = reader.read_values(tensor);
    values.insert(values.end(), more.begin(), more.end());
    whole.rows += tensor.rows;
  }
  return transposed(values, whole);
}

DeltaWeights delta_weights(const LayerTensors& t, const TensorReader& reader, Packer& packer) {
  return {.in = packer.projection(t.in),
          .out = packer.projection(t.out),
          .conv = conv_weights(t.conv, reader),
          .decay = through_sigmoid(small(t.decay, reader)),
          .write = through_sigmoid(small(t.write, reader)),
          .decay_rate = small(t.decay_rate, reader),
          .step_bias = small(t.step_bias, reader),
          .norm = small(t.norm, reader)};
}

AttentionWeights attention_weights(const LayerTensors& t, const TensorReader& reader,
                                   Packer& packer) {
  return {.in = packer.projection(t.in),
          .out = packer.projection(t.out),
          .q_norm = small(t.q_norm, reader),
          .k_norm = small(t.k_norm, reader)};
}

TransformerWeights pack(const ModelSpec& spec, std::span<const LayerTensors> layers,
                        const TensorReader& reader, Packer& packer) {
  TransformerWeights stack{spec, {}};
  stack.layers.reserve(layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LayerTensors& t = layers[i];
    LayerWeights& layer = stack.layers.emplace_back();
    layer.input_norm = reader.read_values(t.input_norm);
    layer.post_norm = reader.read_values(t.post_norm);
    if (is_attention(spec.layers[i].mixer)) {
      layer.mixer = attention_weights(t, reader, packer);
    } else {
      layer.mixer = delta_weights(t, reader, packer);
    }
    layer.gate_up = packer.mlp(t.gate, t.up);
    layer.down = packer.mlp(t.down);
  }
  return stack;
}

}  // namespace

std::vector<float> TensorReader::read_values(const TensorSpec& tensor) const {
  std::vector<float> values(tensor.values());
  read(tensor, values);
  return values;
}

void TensorReader::read_rows(const TensorSpec& tensor, RowBlock block, std::span<float> out) const {
  const std::vector<float> all = read_values(tensor);
  const auto rows = std::span(all).subspan(std::size_t{block.begin} * tensor.cols, out.size());
  std::ranges::copy(rows, out.begin());
}

Int8Rows TensorReader::read_int8(const TensorSpec& tensor) const {
  return quantize_int8(read_values(tensor), tensor.rows, tensor.cols);
}

TernaryRows TensorReader::read_ternary(const TensorSpec& tensor) const {
  return quantize_ternary(read_values(tensor), tensor.rows, tensor.cols);
}

SharedWeights pack_shared(const TensorLayout& tensors, const TensorReader& reader,
                          WeightsDtype dtype) {
  SharedWeights shared;
  shared.embedding = reader.read_values(tensors.embedding);
  shared.final_norm = reader.read_values(tensors.final_norm);
  const TensorSpec& head = tensors.lm_head ? *tensors.lm_head : tensors.embedding;
  shared.lm_head = tensors.lm_head ? dense(reader.read_values(head), head.rows, head.cols, dtype)
                                   : dense(shared.embedding, head.rows, head.cols, dtype);
  return shared;
}

TransformerWeights pack_dense(const ModelSpec& spec, std::span<const LayerTensors> layers,
                              const TensorReader& reader, WeightsDtype dtype) {
  DensePacker packer(reader, dtype);
  return pack(spec, layers, reader, packer);
}

TransformerWeights pack_ternary(const ModelSpec& spec, std::span<const LayerTensors> layers,
                                const TensorReader& reader) {
  TernaryPacker packer(reader);
  return pack(spec, layers, reader, packer);
}

}  // namespace spel::engine

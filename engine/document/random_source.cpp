#include "engine/document/random_source.h"

#include <bit>
#include <cmath>
#include <string_view>

#include "engine/arch/spel_hybrid_json.h"
#include "engine/files/sha256.h"

namespace spel::engine {
namespace {

constexpr std::size_t kValuesPerDraw = 4;
constexpr float kUniformOfUnitDeviation = 1.7320508F;  // Half-width: sqrt(3).

/// splitmix64's output function: a bijection that passes for random on consecutive inputs.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

/// FNV-1a.
std::uint64_t hash_name(std::string_view name) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  }
  return hash;
}

/// Four values in [-1, 1) from one draw.
float uniform(std::uint64_t key, std::size_t index) {
  const std::uint64_t draw = mix(key + (index / kValuesPerDraw + 1) * 0x9E3779B97F4A7C15ULL);
  const auto bits = static_cast<std::uint16_t>(draw >> (16 * (index % kValuesPerDraw)));
  return static_cast<float>(std::bit_cast<std::int16_t>(bits)) / 32768.0F;
}

/// Nearest bf16, ties to even; `value` must be finite.
float round_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7FFFU + ((bits >> 16) & 1U);
  return std::bit_cast<float>(rounded & 0xFFFF0000U);
}

/// Values are center + spread * uniform.
struct Distribution {
  float center;
  float spread;
};

/// Projections keep the scale of their input, so that no shape blows up or dies out; the head's
/// logits then have a deviation of about 2. Gates stay between forgetting at once and never.
Distribution distribution(const TensorSpec& tensor) {
  const float keep_scale = kUniformOfUnitDeviation / std::sqrt(static_cast<float>(tensor.cols));
  switch (tensor.role) {
    case TensorRole::kEmbedding:
      return {0.0F, kUniformOfUnitDeviation};
    case TensorRole::kNorm:
      return {1.0F, 0.25F};
    case TensorRole::kConv:
      return {0.0F, 0.25F};
    case TensorRole::kDecay:
      return {2.0F, 1.0F};
    case TensorRole::kWrite:
      return {0.0F, 1.0F};
    case TensorRole::kHead:
      return {0.0F, 2.0F * keep_scale};
    case TensorRole::kProjection:
    case TensorRole::kMlp:
    case TensorRole::kConv1d:
    case TensorRole::kGate:
      break;
  }
  return {0.0F, keep_scale};
}

class RandomSource final : public ModelSource {
 public:
  RandomSource(const ModelConfig& config, std::uint64_t seed) : config_(config), seed_(seed) {
    config_.validate();
    sha256_ = sha256_hex("random weights, seed " + std::to_string(seed) + "\n" +
                         write_config_json(config_, "bf16"));
  }

  [[nodiscard]] const ModelConfig& config() const override { return config_; }
  [[nodiscard]] const std::optional<GoldenLogits>& golden() const override { return golden_; }
  [[nodiscard]] const std::string& sha256() const override { return sha256_; }
  [[nodiscard]] std::uint64_t file_bytes() const override { return 0; }

  void read(const TensorSpec& tensor, std::span<float> out) const override {
    const std::uint64_t key = mix(seed_ + 0x9E3779B97F4A7C15ULL) ^ hash_name(tensor.name);
    const Distribution d = distribution(tensor);
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = round_to_bf16(d.center + d.spread * uniform(key, i));
    }
    if (tensor.role == TensorRole::kConv) {
      // Mostly the newest input, as in a trained model.
      for (std::size_t i = tensor.cols - 1; i < out.size(); i += tensor.cols) {
        out[i] = round_to_bf16(out[i] + 0.75F);
      }
    }
  }

 private:
  ModelConfig config_;
  std::uint64_t seed_;
  std::optional<GoldenLogits> golden_;
  std::string sha256_;
};

}  // namespace

std::unique_ptr<ModelSource> random_source(const ModelConfig& config, std::uint64_t seed) {
  return std::make_unique<RandomSource>(config, seed);
}

}  // namespace spel::engine

#include "tests/engine/hybrids/fixture.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <system_error>

#include "config/base/error.h"
#include "engine/files/tensor_values.h"
#include "engine/state/hybrid_state.h"

namespace spel::engine::testing {

namespace {

std::filesystem::path shared_root() {
  const char* named = std::getenv("SPEL_HYBRIDS");  // NOLINT(concurrency-mt-unsafe)
  return std::filesystem::path(named != nullptr ? named : SPEL_HYBRIDS_DEFAULT) / "models";
}

}  // namespace

std::filesystem::path own_hybrid(const std::string& name) {
  return std::filesystem::path(SPEL_OWN_HYBRIDS) / name;
}

std::vector<std::filesystem::path> dense_hybrids() {
  std::vector<std::filesystem::path> paths;
  for (const char* name : {"qwen35-shards", "qwen35-text", "qwen3-next", "olmo-hybrid"}) {
    paths.push_back(own_hybrid(name));
  }
  for (const char* name : {"qwen35-tiny-eq", "qwen35-tiny-gqa", "qwen35-tiny-text",
                           "qwen3-next-tiny", "olmo-hybrid-tiny"}) {
    std::error_code ignored;
    if (std::filesystem::is_directory(shared_root() / name, ignored)) {
      paths.push_back(shared_root() / name);
    }
  }
  return paths;
}

std::optional<std::filesystem::path> expert_hybrid() {
  const std::filesystem::path path = shared_root() / "qwen3-next-tiny-moe";
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored) ? std::optional(path) : std::nullopt;
}

Golden::Golden(const std::filesystem::path& model)
    : file_(model / "golden.safetensors"),
      view_(file_.bytes(), (model / "golden.safetensors").string()) {}

std::vector<float> Golden::floats(const std::string& name) const {
  const TensorView* view = view_.find(name);
  if (view == nullptr || view->dtype != DType::kF32) {
    throw Error(ErrorCode::kCorrupt, view_.source() + ": no F32 tensor " + name);
  }
  std::vector<float> values(view->data.size() / sizeof(float));
  to_float(view->data, view->dtype, values);
  return values;
}

std::vector<TokenId> Golden::ids(const std::string& name) const {
  const TensorView* view = view_.find(name);
  if (view == nullptr || view->dtype != DType::kI32) {
    throw Error(ErrorCode::kCorrupt, view_.source() + ": no I32 tensor " + name);
  }
  std::vector<TokenId> values(view->data.size() / sizeof(TokenId));
  std::memcpy(values.data(), view->data.data(), view->data.size());
  return values;
}

std::shared_ptr<const ModelWeights> load_hybrid(const std::filesystem::path& path,
                                                const Architecture* architecture) {
  const Architecture& reads =
      architecture != nullptr ? *architecture : architecture_of(path, architectures());
  return load_directory(path, reads, WeightsDtype::kBf16);
}

HybridRun::HybridRun(std::shared_ptr<const ModelWeights> weights, kernels::Isa isa,
                     std::size_t threads, std::size_t max_seq)
    : pool(std::make_unique<kernels::ThreadPool>(threads, "the target's")) {
  ModelOptions options;
  options.max_seq = max_seq;
  options.max_batch_rows = max_seq;
  model = make_target_model(std::move(weights), kernels::Kernels::select(isa), *pool, options);
}

std::vector<float> HybridRun::logits(SequenceState& state,
                                     const std::vector<TokenId>& tokens) const {
  std::vector<float> out(tokens.size() * model->vocab_size());
  const ForwardItem item{&state, tokens, false, LogitRows::kAll, out.data()};
  model->forward({&item, 1});
  return out;
}

std::vector<float> HybridRun::logits(const std::vector<TokenId>& tokens) const {
  return logits(*model->make_state(), tokens);
}

std::vector<float> memory_of(SequenceState& of, const ModelSpec& spec) {
  auto& state = dynamic_cast<HybridState&>(of);
  std::vector<float> all;
  const std::size_t position = state.position();
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    if (const auto* delta = std::get_if<DeltaSpec>(&spec.layers[i].mixer)) {
      const float* s = state.recurrent(i, 0);
      all.insert(all.end(), s, s + delta->value_heads * delta->head_state());
      for (std::size_t back = 1; back < std::min(delta->conv_taps, position + 1); ++back) {
        const float* row = state.conv_row(i, position - back);
        all.insert(all.end(), row, row + delta->conv_width(spec.d_model));
      }
      continue;
    }
    const auto& attention = std::get<AttentionSpec>(spec.layers[i].mixer);
    const std::size_t hd = attention.head_dim;
    for (std::size_t head = 0; head < attention.kv_heads; ++head) {
      const float* keys = state.keys(i, head);
      for (std::size_t at = 0; at < position; ++at) {
        for (std::size_t d = 0; d < hd; ++d) {
          all.push_back(keys[at / 16 * 16 * hd + d * 16 + at % 16]);
        }
      }
      const float* values = state.values(i, head);
      all.insert(all.end(), values, values + position * hd);
    }
  }
  return all;
}

double worst(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) {
    return std::numeric_limits<double>::infinity();
  }
  double most = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    most = std::isnan(difference) ? std::numeric_limits<double>::infinity()
                                  : std::max(most, difference);
  }
  return most;
}

}  // namespace spel::engine::testing

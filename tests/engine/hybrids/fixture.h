// Small checkpoints of the published hybrids, with what the reference implementation computes of
// them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/arch/architecture.h"
#include "engine/files/mapped_file.h"
#include "engine/files/safetensors.h"
#include "engine/model/transformer.h"
#include "engine/types.h"
#include "kernels/kernels.h"
#include "kernels/thread_pool.h"

namespace spel::engine::testing {

/// The directory of one that make_fixtures.py wrote.
[[nodiscard]] std::filesystem::path own_hybrid(const std::string& name);

/// All that this program runs: make_fixtures.py's, and those with the real sizes' proportions where
/// they are (the environment's SPEL_HYBRIDS, else shared/hybrids beside the repository).
[[nodiscard]] std::vector<std::filesystem::path> dense_hybrids();

/// A mixture of experts among the latter, if they are there.
[[nodiscard]] std::optional<std::filesystem::path> expert_hybrid();

/// golden.safetensors of one.
class Golden {
 public:
  explicit Golden(const std::filesystem::path& model);

  [[nodiscard]] std::vector<float> floats(const std::string& name) const;
  [[nodiscard]] std::vector<TokenId> ids(const std::string& name) const;
  [[nodiscard]] bool has(const std::string& name) const { return view_.find(name) != nullptr; }

 private:
  MappedFile file_;
  SafetensorsView view_;
};

/// `architecture`: null for the one that reads it.
[[nodiscard]] std::shared_ptr<const ModelWeights> load_hybrid(
    const std::filesystem::path& model, const Architecture* architecture = nullptr);

/// One model ready to run.
struct HybridRun {
  HybridRun(std::shared_ptr<const ModelWeights> weights, kernels::Isa isa, std::size_t threads = 1,
            std::size_t max_seq = 1024);

  /// Feeds `tokens` to `state` and returns all their logits.
  [[nodiscard]] std::vector<float> logits(SequenceState& state,
                                          const std::vector<TokenId>& tokens) const;
  /// From an empty state.
  [[nodiscard]] std::vector<float> logits(const std::vector<TokenId>& tokens) const;

  std::unique_ptr<kernels::ThreadPool> pool;
  std::unique_ptr<HybridCausalModel> model;
};

/// Everything the next token depends on: states, convolution inputs, keys, values.
[[nodiscard]] std::vector<float> memory_of(SequenceState& state, const ModelSpec& spec);

/// The largest difference.
[[nodiscard]] double worst(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace spel::engine::testing

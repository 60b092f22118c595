// Where the golden models' values come from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "engine/document/load_model.h"
#include "engine/document/random_source.h"
#include "tests/engine/golden_bits.h"

namespace spel::engine::testing {

/// The shipped model under `root`, the repository, and random values of the other shapes: in the
/// order of golden_models().
inline std::vector<std::unique_ptr<ModelSource>> golden_sources(const std::filesystem::path& root) {
  std::vector<std::unique_ptr<ModelSource>> sources;
  sources.push_back(open_model(root / "engine" / "models" / "spel-21m"));
  const std::vector<ModelConfig> models = golden_models();
  for (std::uint64_t i = 1; i < models.size(); ++i) {
    sources.push_back(random_source(models[i], i));
  }
  return sources;
}

}  // namespace spel::engine::testing

// Small models and scratch files for the tests of engine/model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "config/base/error.h"
#include "engine/document/golden.h"
#include "engine/document/load_model.h"
#include "tests/scratch_folder.h"

namespace spel::engine::testing {

using spel::testing::ScratchFolder;

/// Every kind of layer, in a file of a few KiB.
inline ModelConfig tiny_config() {
  ModelConfig config;
  config.name = "tiny";
  config.d_model = 8;
  config.n_layers = 5;
  config.n_heads = 2;
  config.head_dim = 4;
  config.d_ff = 12;
  config.vocab_size = 5;
  config.max_seq = 32;
  config.draft_layers = {0, 1, 3, 4};
  return config;
}

/// The same with a vocabulary that a tokenizer has.
inline ModelConfig tiny_ascii_config() {
  ModelConfig config = tiny_config();
  config.vocab_size = 128;
  return config;
}

inline GoldenLogits tiny_golden(const ModelConfig& config) {
  GoldenLogits golden;
  for (std::size_t i = 0; i < kGoldenTokens; ++i) {
    golden.tokens.push_back(static_cast<TokenId>(i % config.vocab_size));
    for (std::uint32_t v = 0; v < config.vocab_size; ++v) {
      golden.target_logits.push_back(static_cast<float>(i) - 0.25F * static_cast<float>(v));
      golden.draft_logits.push_back(static_cast<float>(v) - 0.5F * static_cast<float>(i));
    }
  }
  return golden;
}

inline std::vector<std::byte> read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline void write_bytes(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// The message of the Error that `action` throws; empty if it throws none.
template <typename Action>
std::string error_of(Action&& action) {
  try {
    std::forward<Action>(action)();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

/// A splitmix64 stream: the same mutations on every machine.
class TestRandom {
 public:
  explicit TestRandom(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
  }
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(next() % limit); }
  /// Roughly normal with deviation 1.
  float normal() {
    float sum = 0;
    for (int i = 0; i < 12; ++i) {
      sum += static_cast<float>(next() >> 40) / 16777216.0F;
    }
    return sum - 6.0F;
  }

 private:
  std::uint64_t state_;
};

}  // namespace spel::engine::testing

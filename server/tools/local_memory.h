// A model and its memory in one thread, without a server: what the demonstration and the benchmark
// run.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/capture/capture_runner.h"
#include "engine/tools/model_rig.h"
#include "memory/note_bank.h"
#include "memory/writer.h"

namespace spel::server::tools {

/// How well a model says an expected text after a prompt, each token given those before it.
struct Expectation {
  std::size_t rank = 0;      ///< The worst over the tokens; 1: greedy decoding says exactly this.
  double probability = 0.0;  ///< Of the whole text.
};

class LocalMemory {
 public:
  LocalMemory(engine::tools::ModelRig& rig, const engine::Tokenizer& tokenizer,
              memory::NoteBank& bank);

  /// Whether a text's passages are stored beside the notes the writer chooses.
  enum class Passages { kStored, kLeftOut };

  struct Written {
    std::uint64_t notes = 0;
    double capture_seconds = 0.0;
    double choose_seconds = 0.0;
    double store_seconds = 0.0;
  };
  Written write(const std::string& bank, std::span<const engine::TokenId> tokens,
                const memory::WriterOptions& options, Passages passages = Passages::kStored);
  Written write(const std::string& bank, std::string_view text,
                const memory::WriterOptions& options, Passages passages = Passages::kStored) {
    return write(bank, encode(text), options, passages);
  }

  /// Reads the query in a state of its own.
  [[nodiscard]] std::vector<memory::Note> address(const std::string& bank,
                                                  std::span<const engine::TokenId> query,
                                                  memory::Ranker ranker, std::size_t top);
  [[nodiscard]] std::vector<memory::Note> address(const std::string& bank, std::string_view query,
                                                  memory::Ranker ranker, std::size_t top) {
    return address(bank, encode(query), ranker, top);
  }

  /// Of `expected` after `prompt`, from an empty state.
  [[nodiscard]] Expectation expect(std::span<const engine::TokenId> prompt,
                                   std::span<const engine::TokenId> expected);
  [[nodiscard]] Expectation expect(std::string_view prompt, std::string_view expected) {
    return expect(encode(prompt), encode(expected));
  }

  /// Seconds the last address() spent on the search alone, capture apart.
  [[nodiscard]] double search_seconds() const noexcept { return search_seconds_; }
  [[nodiscard]] std::vector<engine::TokenId> encode(std::string_view text) const {
    return tokenizer_.encode(text);
  }
  [[nodiscard]] std::string text(const std::vector<engine::TokenId>& tokens) const;

 private:
  [[nodiscard]] engine::Capture capture(std::span<const engine::TokenId> tokens, std::size_t keep,
                                        bool queries);

  engine::HybridCausalModel& model_;
  const engine::Tokenizer& tokenizer_;
  memory::NoteBank& bank_;
  engine::CaptureObserver observer_;
  std::unique_ptr<engine::SequenceState> state_;
  double search_seconds_ = 0.0;
};

}  // namespace spel::server::tools

// The memory of a model as a server runs it, engine and note service, for callers that wait: what
// the demonstration, the benchmark and the self-test measure.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tools/model_rig.h"
#include "server/note_service.h"

namespace spel::server::tools {

/// How well a model says an expected text after a prompt, each token given those before it.
struct Expectation {
  std::size_t rank = 0;      ///< The worst over the tokens; 1: greedy decoding says exactly this.
  double probability = 0.0;  ///< Of the whole text.
};

class LocalMemory {
 public:
  using Tokens = std::vector<engine::TokenId>;

  /// The notes are kept in memory, in banks of the model `identity`.
  LocalMemory(const std::shared_ptr<const engine::ModelWeights>& weights,
              const kernels::Kernels& kernels, std::size_t target_threads,
              const std::string& identity);

  struct Written {
    std::uint64_t notes = 0;
    double capture_seconds = 0.0;
    double choose_seconds = 0.0;
    double store_seconds = 0.0;
  };
  Written write(const std::string& bank, std::string_view text, NoteMaking making = {});

  [[nodiscard]] std::vector<memory::Note> address(const std::string& bank, const Tokens& query,
                                                  Ranker ranker, std::size_t top);
  [[nodiscard]] std::vector<memory::Note> address(const std::string& bank, std::string_view query,
                                                  Ranker ranker, std::size_t top) {
    return address(bank, encode(query), ranker, top);
  }
  /// Seconds the last address() spent on the search alone, capture apart.
  [[nodiscard]] double search_seconds() const noexcept { return search_seconds_; }

  /// `query` with the notes before it, as a request reads them.
  [[nodiscard]] Tokens replay(std::span<const memory::Note> notes, const Tokens& query) const;

  /// The completion of `prompt` by the same engine.
  [[nodiscard]] engine::tools::Generated generate(engine::GenerationRequest request) {
    return engine::tools::run_request(*served_.engine, std::move(request));
  }

  /// Of `expected` after `prompt`, from an empty state.
  [[nodiscard]] Expectation expect(std::span<const engine::TokenId> prompt,
                                   std::span<const engine::TokenId> expected);
  [[nodiscard]] Expectation expect(std::string_view prompt, std::string_view expected) {
    return expect(encode(prompt), encode(expected));
  }

  [[nodiscard]] Tokens encode(std::string_view text) const {
    return served_.engine->tokenizer().encode(text);
  }
  [[nodiscard]] std::string text(std::span<const engine::TokenId> tokens) const;
  [[nodiscard]] memory::NoteBank& bank() noexcept { return notes_.bank(); }
  /// The same target outside the engine, for states that are looked at.
  [[nodiscard]] engine::HybridCausalModel& target() noexcept { return *models_.target; }

 private:
  /// Runs the service's coroutines while somebody waits; outlives the threads that post to it.
  net::io_context io_;
  engine::tools::EngineRig served_;
  engine::AssembledModel models_;
  std::unique_ptr<engine::SequenceState> state_;
  NoteService notes_;
  double search_seconds_ = 0.0;
};

}  // namespace spel::server::tools

// Where proposals come from. A proposal becomes output where it equals the target's own choice, so
// every drafter is exact; it decides speed and nothing else.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "engine/sample/sampler.h"
#include "engine/speculate/pass_cost.h"
#include "engine/types.h"

namespace spel::engine {

/// What a drafter remembers of one sequence. Made by a Drafter and only valid with it.
class DraftState {
 public:
  virtual ~DraftState() = default;
  /// Forgets everything: another text begins. Keeps the memory.
  virtual void reset() = 0;
  [[nodiscard]] virtual std::size_t bytes() const = 0;
};

/// A sequence's text as a drafter sees it.
struct DraftText {
  std::span<const TokenId> tokens;  ///< Prompt and output; the last one has not been verified yet.
  std::size_t to_come = 0;          ///< Tokens that may still be emitted, at most.
};

/// What proposing for a text takes.
struct DraftOutlook {
  std::size_t backlog = 0;  ///< Tokens to be read before the first proposal.
  std::size_t most = 0;     ///< Proposals that have a place in its memory.
};

/// One sequence's part of a round.
struct DraftItem {
  DraftState* state = nullptr;
  DraftText text;
  Sampler* sampler = nullptr;    ///< The target's, so that equal logits mean equal choices.
  std::span<TokenId> proposals;  ///< As many as are wanted, at most the outlook's.
  std::size_t made = 0;          ///< Out: those filled in.
};

/// Learns what passes cost, and knows when one is a measurement.
class PassObserver {
 public:
  virtual ~PassObserver() = default;
  /// To be asked before a pass of `rows` begins.
  [[nodiscard]] virtual bool settled(double rows) const = 0;
  virtual void observe(const PassLoad& load, double seconds, bool settled) = 0;
};

/// Engine thread only. Allocates nothing once the states are made.
class Drafter {
 public:
  virtual ~Drafter() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual std::size_t vocab_size() const = 0;
  /// Rows one pass takes, over all sequences: what they have to read, and one each.
  [[nodiscard]] virtual std::size_t rows_max() const = 0;
  [[nodiscard]] virtual std::unique_ptr<DraftState> make_state() const = 0;

  [[nodiscard]] virtual DraftOutlook outlook(const DraftState& state,
                                             const DraftText& text) const = 0;
  /// Reads each item's backlog and fills in its proposals; the samplers are as before afterwards.
  /// The backlogs and one row each fit rows_max().
  virtual void propose(std::span<DraftItem> items, PassObserver& observer) = 0;
  /// Of the text proposed for, `tokens` are left: forgets what it knows beyond.
  virtual void keep(DraftState& state, std::size_t tokens) = 0;

  /// Runs one pass of `rows` on a state that serves nobody, so that its cost can be measured: the
  /// first of several after reset(). At most `rows_measured()` rows.
  virtual void rehearse(DraftState& state, std::size_t rows) = 0;
  [[nodiscard]] virtual std::size_t rows_measured() const = 0;
};

}  // namespace spel::engine

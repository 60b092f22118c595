// Follows the generations of one request: engine events in, text and tokens out.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/request/token_stream.h"
#include "proto/error_body.h"
#include "proto/reasoning.h"
#include "proto/responses.h"
#include "proto/text_assembler.h"
#include "server/metrics.h"
#include "server/pipeline.h"
#include "server/wake.h"

namespace spel::server {

/// One choice while it is being generated.
class ChoiceReader {
 public:
  ChoiceReader(std::size_t index, const PlannedChoice& planned, const GenerationPlan& plan,
               const engine::Tokenizer& tokenizer);

  void on_event(engine::StreamEvent event);

  /// What has become showable since the last call; its finish_reason is set when that is all.
  [[nodiscard]] proto::Choice take();
  [[nodiscard]] bool has_output() const noexcept {
    return !fresh_.text.empty() || !fresh_.reasoning.empty();
  }
  /// Tokens generated so far, those not showable yet included.
  [[nodiscard]] std::size_t generated() const noexcept { return generated_; }
  /// Of those, the ones that were thought.
  [[nodiscard]] std::size_t thought_tokens() const noexcept { return thought_.tokens(); }
  [[nodiscard]] const std::optional<engine::FinishEvent>& finish() const noexcept {
    return finish_;
  }

 private:
  void show_echo();
  void on_prompt(const engine::PromptEvent& event);
  void on_token(engine::TokenEvent& event);
  void on_finish(engine::FinishEvent event);
  void add_piece(const proto::TextAssembler::Piece& piece);
  void add_split(proto::ReasoningSplitter::Piece piece);
  [[nodiscard]] proto::TokenReport report(engine::TokenId token, std::optional<float> logprob,
                                          const engine::TopLogprobs& top) const;

  const engine::Tokenizer& tokenizer_;
  const std::size_t index_;
  const bool report_tokens_;  ///< Somebody asked for logprobs or token ids.
  const bool report_places_;  ///< … and for the places in the draft.
  const bool with_logprobs_;
  const bool with_token_ids_;
  const std::string own_stop_;
  const bool show_thought_;
  const std::size_t text_base_;  ///< Code points of the echoed prompt.

  struct HeldToken {
    proto::TokenReport report;
    std::int32_t draft_position = -1;
  };
  std::optional<std::string> echo_;   ///< Until it is shown, with the first event.
  engine::SharedTokens echo_tokens_;  ///< To report then, unless the engine does.
  std::size_t generated_ = 0;
  proto::TextAssembler assembler_;
  proto::ReasoningSplitter splitter_;
  proto::ThoughtMeter thought_;
  std::deque<HeldToken> held_;  ///< Tokens whose text is not shown yet.
  proto::Choice fresh_;
  std::optional<engine::FinishEvent> finish_;
};

/// All choices of one request. Strand only, but for the engine's notifications. Cancels what still
/// runs when it goes.
class CompletionStream {
 public:
  /// `arrived`: when the request came, for the metrics. `plan`, `backend` and `metrics` must
  /// outlive it.
  CompletionStream(const Executor& executor, const GenerationPlan& plan, const Backend& backend,
                   Metrics& metrics, Clock::time_point arrived);
  ~CompletionStream();
  CompletionStream(const CompletionStream&) = delete;
  CompletionStream& operator=(const CompletionStream&) = delete;

  /// Throws RequestError (503) if the engine takes no more; nothing is left running then.
  void submit();

  /// Waits until something has happened, then reads all there is.
  [[nodiscard]] Task<void> advance();
  /// The same; false if nothing has happened by `deadline`.
  [[nodiscard]] Task<bool> advance_until(Clock::time_point deadline);
  /// Ends all generations; their last events still come. Idempotent.
  void cancel();
  /// Waits for the last events.
  [[nodiscard]] Task<void> finish();

  [[nodiscard]] bool finished() const noexcept { return unfinished_ == 0; }
  [[nodiscard]] std::vector<ChoiceReader>& choices() noexcept { return choices_; }
  /// Some choice has text to show.
  [[nodiscard]] bool has_output() const;
  /// What went wrong first; nothing if nothing did.
  [[nodiscard]] const std::optional<proto::ApiError>& error() const noexcept { return error_; }
  /// Once finished.
  [[nodiscard]] proto::Receipt receipt() const;
  [[nodiscard]] proto::UsageSoFar usage_so_far() const;

 private:
  /// Outlives the stream for as long as the engine holds a way to notify it.
  struct Inbox {
    explicit Inbox(const Executor& executor) : strand(executor), wake(executor) {}
    const Executor strand;
    Wake wake;
    std::atomic<bool> posted{false};
  };

  [[nodiscard]] static std::shared_ptr<engine::TokenStream> make_stream(
      const std::shared_ptr<Inbox>& inbox);
  void read(std::size_t index, Clock::time_point now);
  void read_all();
  [[nodiscard]] proto::ApiError queue_full() const;

  const GenerationPlan& plan_;
  const Backend& backend_;
  Metrics& metrics_;
  const Clock::time_point began_;
  std::shared_ptr<Inbox> inbox_;
  std::vector<std::shared_ptr<engine::TokenStream>> streams_;
  std::vector<ChoiceReader> choices_;
  std::vector<std::optional<Clock::time_point>> last_token_;
  std::size_t unfinished_ = 0;
  bool cancelled_ = false;
  /// Of the choice that failed first: the others were cancelled for it and say nothing new.
  std::optional<proto::ApiError> error_;
};

}  // namespace spel::server

#include "server/completion_stream.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "server/constants.h"
#include "server/retry_after.h"
#include "server/translate.h"

namespace spel::server {
namespace {

/// What a client is told of a generation that ended badly.
proto::ApiError error_of(const engine::FinishEvent& finish) {
  switch (finish.reason) {
    case engine::FinishReason::kCancelled:
      return proto::unavailable("the server is shutting down", "shutting_down");
    case engine::FinishReason::kDeadline:
      return proto::http_error(504, "the request took longer than the server allows");
    case engine::FinishReason::kStop:
    case engine::FinishReason::kLength:
    case engine::FinishReason::kError:
      break;
  }
  return finish.out_of_memory ? proto::out_of_memory() : proto::server_error(finish.error);
}

}  // namespace

// --- One choice ----------------------------------------------------------------------------------

ChoiceReader::ChoiceReader(std::size_t index, const PlannedChoice& planned,
                           const GenerationPlan& plan, const engine::Tokenizer& tokenizer)
    : tokenizer_(tokenizer),
      index_(index),
      report_tokens_(plan.with_logprobs || plan.with_token_ids),
      report_places_(plan.with_token_ids),
      with_logprobs_(plan.with_logprobs),
      with_token_ids_(plan.with_token_ids),
      own_stop_(plan.own_stop),
      show_thought_(plan.reasoning != proto::ReasoningForm::kLeftOut),
      text_base_(proto::count_code_points(planned.echo)),
      splitter_(plan.reasoning == proto::ReasoningForm::kInText ? proto::ThoughtStart::kNone
                                                                : plan.thought),
      thought_(plan.thought) {
  if (plan.echo) {
    echo_ = planned.echo;
    if (report_tokens_ && !plan.with_logprobs) {
      // With logprobs the engine reports the prompt's tokens itself.
      echo_tokens_ = planned.request.prompt;
    }
  }
}

void ChoiceReader::on_event(engine::StreamEvent event) {
  if (auto* token = std::get_if<engine::TokenEvent>(&event)) {
    show_echo();
    on_token(*token);
  } else if (auto* finish = std::get_if<engine::FinishEvent>(&event)) {
    if (result_of(finish->reason) == Result::kOk) {
      show_echo();
    }
    on_finish(std::move(*finish));
  } else {
    on_prompt(std::get<engine::PromptEvent>(event));
    show_echo();
  }
}

// Together with the tokens it consists of, and not before something has come of the request.
void ChoiceReader::show_echo() {
  if (!echo_) {
    return;
  }
  fresh_.text = *std::exchange(echo_, std::nullopt);
  engine::PromptEvent prompt;
  for (const engine::TokenId token : std::exchange(echo_tokens_, {})) {
    prompt.tokens.push_back({token, 0.0F});
    prompt.top_logprobs.emplace_back();
  }
  on_prompt(prompt);
}

proto::TokenReport ChoiceReader::report(engine::TokenId token, std::optional<float> logprob,
                                        const engine::TopLogprobs& top) const {
  proto::TokenReport result;
  result.token = token;
  result.bytes = tokenizer_.bytes(token);
  result.logprob = logprob;
  for (const engine::TokenLogprob& entry : top) {
    result.top.push_back({entry.token, std::string(tokenizer_.bytes(entry.token)), entry.logprob});
  }
  return result;
}

void ChoiceReader::on_prompt(const engine::PromptEvent& event) {
  proto::TextAssembler places;
  for (std::size_t i = 0; i < event.tokens.size(); ++i) {
    const engine::TokenLogprob& entry = event.tokens[i];
    (void)places.push(tokenizer_.bytes(entry.token), 0);
    proto::TokenReport token = report(
        entry.token, i == 0 ? std::nullopt : std::optional(entry.logprob), event.top_logprobs[i]);
    token.text_offset = places.last_token_offset();
    fresh_.tokens.push_back(std::move(token));
    if (report_places_) {
      fresh_.draft_positions.push_back(-1);
    }
  }
}

void ChoiceReader::on_token(engine::TokenEvent& event) {
  ++generated_;
  const std::string_view bytes = tokenizer_.bytes(event.token);
  thought_.push(bytes);
  const proto::TextAssembler::Piece piece = assembler_.push(bytes, event.held_bytes);
  if (report_tokens_) {
    proto::TokenReport token =
        report(event.token, with_logprobs_ ? std::optional(event.logprob) : std::nullopt,
               event.top_logprobs);
    token.text_offset = text_base_ + assembler_.last_token_offset();
    held_.push_back({std::move(token), event.draft_position});
  }
  add_piece(piece);
}

void ChoiceReader::on_finish(engine::FinishEvent event) {
  add_piece(assembler_.finish(event.text_bytes));
  add_split(splitter_.finish());
  if (result_of(event.reason) == Result::kOk) {
    fresh_.finish_reason = event.reason;
  }
  if (event.stop_sequence != own_stop_) {
    fresh_.stop_reason = event.stop_sequence;
  }
  fresh_.stop_token = event.stop_token;
  finish_ = std::move(event);
}

void ChoiceReader::add_piece(const proto::TextAssembler::Piece& piece) {
  add_split(splitter_.push(piece.text));
  for (std::size_t i = 0; i < piece.tokens && !held_.empty(); ++i) {
    fresh_.tokens.push_back(std::move(held_.front().report));
    if (report_places_) {
      fresh_.draft_positions.push_back(held_.front().draft_position);
    }
    held_.pop_front();
  }
}

void ChoiceReader::add_split(proto::ReasoningSplitter::Piece piece) {
  fresh_.text += piece.content;
  if (show_thought_) {
    fresh_.reasoning += piece.reasoning;
  }
}

proto::Choice ChoiceReader::take() {
  proto::Choice choice = std::exchange(fresh_, {});
  choice.index = index_;
  choice.with_logprobs = with_logprobs_;
  choice.with_token_ids = with_token_ids_;
  return choice;
}

// --- All of them ---------------------------------------------------------------------------------

CompletionStream::CompletionStream(const Executor& executor, const GenerationPlan& plan,
                                   const Backend& backend, Metrics& metrics,
                                   Clock::time_point arrived)
    : plan_(plan),
      backend_(backend),
      metrics_(metrics),
      began_(arrived),
      inbox_(std::make_shared<Inbox>(executor)),
      last_token_(plan.choices.size()) {}

CompletionStream::~CompletionStream() { cancel(); }

std::shared_ptr<engine::TokenStream> CompletionStream::make_stream(
    const std::shared_ptr<Inbox>& inbox) {
  return std::make_shared<engine::TokenStream>(kStreamCapacity, [inbox] {
    // On the engine's thread. One notification at a time is enough: the reader takes all there is.
    if (inbox->posted.exchange(true)) {
      return;
    }
    try {
      net::post(inbox->strand, [inbox] {
        inbox->posted = false;
        inbox->wake.notify();
      });
    } catch (...) {
      inbox->posted = false;
      throw;
    }
  });
}

void CompletionStream::submit() {
  for (std::size_t i = 0; i < plan_.choices.size(); ++i) {
    auto stream = make_stream(inbox_);
    const engine::SubmitStatus status = backend_.engine->submit(plan_.choices[i].request, stream);
    if (status != engine::SubmitStatus::kAccepted) {
      cancel();
      throw proto::RequestError(
          status == engine::SubmitStatus::kQueueFull
              ? queue_full()
              : proto::unavailable("the server is shutting down", "shutting_down"));
    }
    streams_.push_back(std::move(stream));
    choices_.emplace_back(i, plan_.choices[i], plan_, backend_.engine->tokenizer());
    ++unfinished_;
  }
}

proto::ApiError CompletionStream::queue_full() const {
  const engine::EngineStats stats = backend_.engine->stats();
  proto::ApiError error = proto::unavailable("the queue is full; try again later", "queue_full");
  error.retry_after_seconds = retry_after_seconds({
      .waiting = stats.waiting,
      .sequences = backend_.engine->config().sequences,
      .service_seconds = metrics_.service_seconds(),
      .tokens_wanted = plan_.choices.front().request.max_tokens,
      .token_seconds = stats.ar_seconds_per_token,
  });
  return error;
}

Task<void> CompletionStream::advance() {
  co_await inbox_->wake.wait();
  read_all();
}

Task<bool> CompletionStream::advance_until(Clock::time_point deadline) {
  const bool woken = co_await inbox_->wake.wait_until(deadline);
  if (woken) {
    read_all();
  }
  co_return woken;
}

void CompletionStream::read_all() {
  const Clock::time_point now = Clock::now();
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    read(i, now);
  }
}

void CompletionStream::read(std::size_t index, Clock::time_point now) {
  ChoiceReader& choice = choices_[index];
  if (choice.finish()) {
    return;
  }
  std::size_t tokens = 0;
  while (auto event = streams_[index]->try_pop()) {
    tokens += std::holds_alternative<engine::TokenEvent>(*event) ? 1U : 0U;
    choice.on_event(std::move(*event));
  }
  std::optional<Clock::time_point>& last = last_token_[index];
  if (tokens > 0 && !last) {
    metrics_.observe_first_token(engine::seconds_between(began_, now));
    --tokens;
    last = now;
  }
  if (tokens > 0) {
    metrics_.observe_tokens(engine::seconds_between(*last, now), tokens);
    last = now;
  }
  if (choice.finish()) {
    metrics_.observe_finish(*choice.finish(), engine::seconds_between(began_, now));
    --unfinished_;
    if (result_of(choice.finish()->reason) != Result::kOk) {
      if (!error_) {
        error_ = error_of(*choice.finish());
      }
      cancel();  // The answer as a whole has failed: the other choices are of no use.
    }
  }
}

void CompletionStream::cancel() {
  if (!cancelled_ && !finished()) {
    for (const auto& stream : streams_) {
      stream->cancel();
    }
  }
  cancelled_ = true;
}

Task<void> CompletionStream::finish() {
  while (!finished()) {
    co_await advance();
  }
}

bool CompletionStream::has_output() const {
  return std::any_of(choices_.begin(), choices_.end(),
                     [](const ChoiceReader& choice) { return choice.has_output(); });
}

proto::Receipt CompletionStream::receipt() const {
  proto::Receipt total;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    proto::add(total, to_receipt(choices_[i].finish()->stats), plan_.choices[i].new_prompt);
  }
  for (const ChoiceReader& choice : choices_) {
    total.reasoning_tokens += choice.thought_tokens();
  }
  total.replays = plan_.replays;
  total.normalized_characters = plan_.normalized_characters;
  return total;
}

proto::UsageSoFar CompletionStream::usage_so_far() const {
  proto::UsageSoFar usage;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    usage.prompt_tokens += plan_.choices[i].new_prompt ? plan_.choices[i].request.prompt.size() : 0;
    usage.completion_tokens += choices_[i].generated();
  }
  return usage;
}

}  // namespace spel::server

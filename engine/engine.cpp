#include "engine/engine.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "config/base/thread.h"
#include "engine/capture/capture_runner.h"
#include "engine/sample/chooser.h"
#include "engine/schedule/admission.h"
#include "engine/schedule/cost_meter.h"
#include "engine/schedule/lifecycle.h"
#include "engine/schedule/step.h"
#include "engine/text/tokenizer.h"
#include "engine/wake_signal.h"

namespace spel::engine {
namespace {

struct Waiting {
  GenerationRequest request;
  std::shared_ptr<TokenStream> stream;
  Clock::time_point submitted_at;
};

/// Null where every id of the model is a token.
std::shared_ptr<const TokenMask> tokens_of(const Tokenizer& tokenizer, const CausalModel& target) {
  const auto mask = std::make_shared<TokenMask>(target.vocab_size());
  for (std::size_t id = 0; id < target.vocab_size(); ++id) {
    if (id >= tokenizer.vocab_size() || !tokenizer.has_token(static_cast<TokenId>(id))) {
      mask->forbid(id);
    }
  }
  return mask->end() == target.vocab_size() && !mask->has_holes() ? nullptr : mask;
}

bool expired(const GenerationRequest& request, Clock::time_point now) {
  return request.deadline && now >= *request.deadline;
}

}  // namespace

class Engine::Impl {
 public:
  Impl(const EngineConfig& config, std::unique_ptr<CausalModel> target,
       std::unique_ptr<Drafter> drafter, std::shared_ptr<const Tokenizer> tokenizer)
      : config_(checked_config(config, *target, drafter.get())),
        target_(std::move(target)),
        drafter_(std::move(drafter)),
        tokenizer_(std::move(tokenizer)),
        life_(config_, *target_, drafter_.get(), *tokenizer_, books_),
        stepper_(config_, *target_, drafter_.get(), books_, life_),
        meter_(config_, *target_, drafter_.get(), books_.costs),
        captures_(dynamic_cast<HybridCausalModel*>(target_.get())) {
    check_tokenizer(*tokenizer_, *target_);
    retired_.reserve(config_.sequences + config_.queue_capacity);
    state_bytes_ = captures_.state_bytes();
    const auto chooser = std::make_shared<Chooser>(target_->vocab_size(), *config_.kernels,
                                                   tokens_of(*tokenizer_, *target_));
    for (std::size_t i = 0; i < config_.sequences; ++i) {
      sequences_.push_back(
          std::make_unique<Sequence>(*target_, drafter_.get(), config_.k_max, chooser));
      state_bytes_ += sequences_.back()->target_state->bytes();
      state_bytes_ += drafter_ ? sequences_.back()->draft_state->bytes() : 0;
    }
    if (config_.calibrate) {
      meter_.calibrate(*sequences_.front());
    }
    publish();
    thread_ = start_thread("the engine's thread", [this] { run(); });
  }

  ~Impl() {
    cancel_all();
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_->notify();
    thread_.join();
  }

  SubmitStatus submit(GenerationRequest request, std::shared_ptr<TokenStream> stream) {
    check_request(request, *stream, config_, *target_);
    {
      const std::lock_guard lock(mutex_);
      if (draining_) {
        ++rejected_;
        return SubmitStatus::kDraining;
      }
      if (in_flight_ >= config_.sequences + config_.queue_capacity) {
        ++rejected_;
        return SubmitStatus::kQueueFull;
      }
      stream->set_on_credit([wake = wake_] { wake->notify(); });
      queue_.push_back({std::move(request), std::move(stream), Clock::now()});
      ++in_flight_;  // Only what is in the queue: the push may have thrown.
      ++submitted_;
    }
    wake_->notify();
    return SubmitStatus::kAccepted;
  }

  SubmitStatus capture(CaptureRequest request, CaptureDone done) {
    check_capture(request, captures_.shape(), *target_);
    {
      const std::lock_guard lock(mutex_);
      if (draining_) {
        return SubmitStatus::kDraining;
      }
      if (!captures_.submit(std::move(request), std::move(done))) {
        return SubmitStatus::kQueueFull;
      }
    }
    wake_->notify();
    return SubmitStatus::kAccepted;
  }

  [[nodiscard]] CaptureShape capture_shape() const noexcept { return captures_.shape(); }

  void begin_drain() {
    const std::lock_guard lock(mutex_);
    draining_ = true;
  }

  bool wait_idle(Clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    return idle_.wait_until(lock, deadline, [this] { return in_flight_ == 0; });
  }

  void cancel_all() {
    {
      const std::lock_guard lock(mutex_);
      cancel_all_ = true;
    }
    captures_.cancel_all();
    wake_->notify();
  }

  EngineStats stats() const {
    const std::lock_guard lock(mutex_);
    EngineStats stats = published_;
    stats.requests_submitted = submitted_;
    stats.requests_rejected = rejected_;
    stats.running = running_;
    stats.waiting = in_flight_ - running_;
    stats.capture_tokens = captures_.tokens();
    stats.capture_seconds = captures_.seconds();
    return stats;
  }

  [[nodiscard]] const EngineConfig& config() const noexcept { return config_; }
  [[nodiscard]] const CausalModel& target() const noexcept { return *target_; }
  [[nodiscard]] const Tokenizer& tokenizer() const noexcept { return *tokenizer_; }

 private:
  void run() {
    while (true) {
      bool worked = true;
      try {
        retire();
        worked = admit();
        worked = stepper_.run(sequences_) || worked;
        // One piece between two steps: nobody's next token waits for more.
        worked = captures_.step() || worked;
        if (!worked) {
          measure_if_idle();
        }
      } catch (const std::exception& error) {
        fail_running(error);
      }
      publish();
      {
        // Asked after this round has ended what was cancelled: the wake-ups for the cancelling and
        // for the stopping may have come as one, and there will be no other.
        const std::lock_guard lock(mutex_);
        if (stopping_ && in_flight_ == 0) {
          return;
        }
      }
      if (!worked) {
        sleep();
      }
    }
  }

  // Ends what was cancelled or has run out of time, in the queue and in the batch.
  void retire() {
    const auto now = Clock::now();
    bool cancel_everything = false;
    retired_.clear();
    {
      const std::lock_guard lock(mutex_);
      cancel_everything = std::exchange(cancel_all_, false);
      for (auto it = queue_.begin(); it != queue_.end();) {
        if (cancel_everything || it->stream->cancelled() || expired(it->request, now)) {
          retired_.push_back(std::move(*it));
          it = queue_.erase(it);
        } else {
          ++it;
        }
      }
    }
    for (Waiting& waiting : retired_) {
      const bool cancelled = cancel_everything || waiting.stream->cancelled();
      life_.refuse(waiting.request, *waiting.stream,
                   cancelled ? FinishReason::kCancelled : FinishReason::kDeadline,
                   waiting.submitted_at);
      leave_queue();
    }
    retired_.clear();
    for (const auto& sequence : sequences_) {
      if (!sequence->active) {
        continue;
      }
      if (cancel_everything || sequence->stream->cancelled()) {
        life_.cancel(*sequence, FinishReason::kCancelled);
      } else if (expired(sequence->request, now)) {
        life_.cancel(*sequence, FinishReason::kDeadline);
      }
      release_if_ended(*sequence);
    }
    publish();
  }

  // Whether a place was taken: it may be free again, and another request waiting.
  bool admit() {
    bool admitted = false;
    for (const auto& sequence : sequences_) {
      if (sequence->active) {
        continue;
      }
      std::optional<Waiting> next;
      {
        const std::lock_guard lock(mutex_);
        if (queue_.empty()) {
          break;
        }
        next = std::move(queue_.front());
        queue_.pop_front();
        ++running_;
      }
      try {
        life_.start(*sequence, std::move(next->request), std::move(next->stream),
                    next->submitted_at);
      } catch (const std::exception& error) {
        life_.fail(*sequence, error);  // It alone: the others' states are untouched.
      }
      release_if_ended(*sequence);
      admitted = true;
    }
    return admitted;
  }

  static void release_if_ended(Sequence& sequence) {
    if (!sequence.active) {
      sequence.stream->flush();
      sequence.stream.reset();
    }
  }

  // A pass threw: nobody's state can be trusted any more.
  void fail_running(const std::exception& error) {
    for (const auto& sequence : sequences_) {
      if (sequence->active) {
        life_.fail(*sequence, error);
      }
      if (sequence->stream) {
        sequence->stream->flush();
        sequence->stream.reset();
      }
    }
  }

  // Puts the books in order after a step: what ended leaves `running` and enters the finished
  // counts in one go, so that no reader sees a request twice or not at all.
  void publish() {
    const auto active = static_cast<std::size_t>(
        std::count_if(sequences_.begin(), sequences_.end(),
                      [](const auto& sequence) { return sequence->active; }));
    std::size_t left = 0;
    {
      const std::lock_guard lock(mutex_);
      left = running_ - active;
      running_ = active;
      in_flight_ -= left;
      snapshot();
    }
    if (left > 0) {
      idle_.notify_all();
    }
  }

  // A request leaves that never ran.
  void leave_queue() {
    {
      const std::lock_guard lock(mutex_);
      --in_flight_;
      snapshot();
    }
    idle_.notify_all();
  }

  // Under mutex_.
  void snapshot() {
    published_ = stepper_.stats();
    published_.state_bytes += state_bytes_;
  }

  // Costs have to be true when the next request comes, whatever the machine did meanwhile.
  void measure_if_idle() {
    {
      const std::lock_guard lock(mutex_);
      idle_now_ = config_.calibrate && in_flight_ == 0 && !stopping_;
    }
    if (idle_now_) {
      meter_.measure_idle(*sequences_.front());
    }
  }

  void sleep() {
    std::optional<Clock::time_point> deadline;
    if (idle_now_) {
      deadline = meter_.next_idle_measurement();
    }
    const auto consider = [&](const GenerationRequest& request) {
      if (request.deadline && (!deadline || *request.deadline < *deadline)) {
        deadline = request.deadline;
      }
    };
    for (const auto& sequence : sequences_) {
      if (sequence->active) {
        consider(sequence->request);
      }
    }
    {
      const std::lock_guard lock(mutex_);
      for (const Waiting& waiting : queue_) {
        consider(waiting.request);
      }
    }
    std::unique_lock lock(wake_->mutex);
    const auto raised = [this] { return wake_->raised; };
    if (deadline) {
      wake_->changed.wait_until(lock, *deadline, raised);
    } else {
      wake_->changed.wait(lock, raised);
    }
    wake_->raised = false;
  }

  const EngineConfig config_;
  std::unique_ptr<CausalModel> target_;
  std::unique_ptr<Drafter> drafter_;  ///< May be null.
  std::shared_ptr<const Tokenizer> tokenizer_;
  Books books_;
  Lifecycle life_;
  Stepper stepper_;
  CostMeter meter_;
  CaptureRunner captures_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::vector<Waiting> retired_;  ///< Holds the whole queue without growing.
  std::size_t state_bytes_ = 0;
  bool idle_now_ = false;  ///< Nothing accepted is left, as last seen by the engine thread.
  std::shared_ptr<WakeSignal> wake_ = std::make_shared<WakeSignal>();

  mutable std::mutex mutex_;  ///< Guards what follows.
  std::condition_variable idle_;
  std::deque<Waiting> queue_;
  EngineStats published_;
  std::size_t in_flight_ = 0;  ///< Queued and running.
  std::size_t running_ = 0;
  std::uint64_t submitted_ = 0;
  std::uint64_t rejected_ = 0;
  bool draining_ = false;
  bool cancel_all_ = false;
  bool stopping_ = false;

  std::thread thread_;
};

Engine::Engine(const EngineConfig& config, std::unique_ptr<CausalModel> target,
               std::unique_ptr<Drafter> drafter, std::shared_ptr<const Tokenizer> tokenizer)
    : impl_(std::make_unique<Impl>(config, std::move(target), std::move(drafter),
                                   std::move(tokenizer))) {}
Engine::~Engine() = default;

SubmitStatus Engine::submit(GenerationRequest request, std::shared_ptr<TokenStream> stream) {
  return impl_->submit(std::move(request), std::move(stream));
}
SubmitStatus Engine::capture(CaptureRequest request, CaptureDone done) {
  return impl_->capture(std::move(request), std::move(done));
}
CaptureShape Engine::capture_shape() const noexcept { return impl_->capture_shape(); }
void Engine::begin_drain() { impl_->begin_drain(); }
bool Engine::wait_idle(Clock::time_point deadline) { return impl_->wait_idle(deadline); }
void Engine::cancel_all() { impl_->cancel_all(); }
EngineStats Engine::stats() const { return impl_->stats(); }
std::size_t Engine::vocab_size() const noexcept { return impl_->target().vocab_size(); }
std::size_t Engine::max_seq() const noexcept { return impl_->target().max_seq(); }
const EngineConfig& Engine::config() const noexcept { return impl_->config(); }
const Tokenizer& Engine::tokenizer() const noexcept { return impl_->tokenizer(); }

}  // namespace spel::engine

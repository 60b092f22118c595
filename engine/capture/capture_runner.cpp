#include "engine/capture/capture_runner.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>
#include <variant>

#include "engine/request/request.h"

namespace spel::engine {

CaptureObserver::CaptureObserver(const ModelSpec& spec) {
  for (const LayerSpec& layer : spec.layers) {
    const auto* delta = std::get_if<DeltaSpec>(&layer.mixer);
    layers_.push_back({delta != nullptr ? delta->key_heads : 0, shape_.channels});
    if (delta != nullptr) {
      shape_.channels += delta->key_heads;
      shape_.head_dim = delta->key_dim;
    }
  }
}

void CaptureObserver::aim(Capture* capture, std::size_t skip, bool queries) {
  capture_ = capture;
  skip_ = skip;
  queries_ = queries;
}

void CaptureObserver::on_recurrent(std::size_t layer, std::size_t /*item*/, std::size_t tokens,
                                   const float* qkv, std::size_t row_stride) {
  if (capture_ == nullptr || skip_ >= tokens) {
    return;
  }
  const std::size_t width = shape_.channels * shape_.head_dim;
  const std::size_t layer_width = layers_[layer].heads * shape_.head_dim;
  // The first layer of the pass makes room; the others fill theirs in.
  const std::size_t base = capture_->tokens;
  const std::size_t size = (base + tokens - skip_) * width;
  capture_->keys.resize(std::max(capture_->keys.size(), size));
  capture_->queries.resize(queries_ ? std::max(capture_->queries.size(), size) : 0);
  for (std::size_t t = skip_; t < tokens; ++t) {
    const float* row = qkv + t * row_stride;
    const std::size_t to =
        (base + t - skip_) * width + layers_[layer].first_channel * shape_.head_dim;
    std::memcpy(&capture_->keys[to], row + layer_width, layer_width * sizeof(float));
    if (queries_) {
      std::memcpy(&capture_->queries[to], row, layer_width * sizeof(float));
    }
  }
}

CaptureRunner::CaptureRunner(HybridCausalModel* model) : model_(model) {
  if (model_ != nullptr) {
    observer_ = std::make_unique<CaptureObserver>(model_->spec());
    state_ = model_->make_state();
  }
}

CaptureRunner::~CaptureRunner() { fail_all("the engine is shutting down"); }

CaptureShape CaptureRunner::shape() const noexcept {
  return observer_ ? observer_->shape() : CaptureShape{};
}

bool CaptureRunner::submit(CaptureRequest request, CaptureDone done) {
  const std::lock_guard lock(mutex_);
  if (waiting_.size() >= kWaitingMax) {
    return false;
  }
  waiting_.push_back({std::move(request), std::move(done), {}, 0});
  return true;
}

bool CaptureRunner::step() {
  if (cancel_.exchange(false)) {
    fail_all("the server is shutting down");
  }
  try {
    if (!job_ && !take_next()) {
      return false;
    }
    read_piece();
  } catch (const std::exception& error) {
    if (model_ != nullptr) {
      model_->set_observer(nullptr);
    }
    if (const auto failed = std::exchange(job_, nullptr)) {
      failed->done({{}, failure_of(error).text});
    }
  }
  return true;
}

bool CaptureRunner::take_next() {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) {
      return false;
    }
    job_ = std::make_unique<Job>(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  const CaptureRequest& request = job_->request;
  const std::size_t size = std::min(request.keep, request.tokens.size()) *
                           observer_->shape().channels * observer_->shape().head_dim;
  job_->capture.keys.reserve(size);
  job_->capture.queries.reserve(request.queries ? size : 0);
  state_->reset();
  return true;
}

void CaptureRunner::read_piece() {
  Job& job = *job_;
  const std::size_t total = job.request.tokens.size();
  const std::size_t first_kept = total - std::min(job.request.keep, total);
  const std::size_t count = std::min(kPieceTokens, total - job.fed);
  const std::size_t skip = first_kept > job.fed ? std::min(first_kept - job.fed, count) : 0;
  const ForwardItem item{state_.get(), std::span(job.request.tokens).subspan(job.fed, count), false,
                         LogitRows::kNone, nullptr};
  const auto begin = Clock::now();
  observer_->aim(&job.capture, skip, job.request.queries);
  model_->set_observer(observer_.get());
  model_->forward({&item, 1});
  model_->set_observer(nullptr);
  seconds_ = seconds_ + seconds_between(begin, Clock::now());
  tokens_ += count;
  job.capture.tokens += count - skip;
  job.fed += count;
  if (job.fed == total) {
    const auto finished = std::exchange(job_, nullptr);
    finished->done({std::move(finished->capture), {}});
  }
}

void CaptureRunner::fail_all(const std::string& why) {
  std::deque<Job> failed;
  {
    const std::lock_guard lock(mutex_);
    failed.swap(waiting_);
  }
  if (job_) {
    failed.push_front(std::move(*job_));
    job_.reset();
  }
  for (Job& job : failed) {
    job.done({{}, why});
  }
}

}  // namespace spel::engine

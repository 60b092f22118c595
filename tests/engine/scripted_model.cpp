#include "tests/engine/scripted_model.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <thread>
#include <utility>

#include "config/base/error.h"

namespace spel::engine {
namespace {

// Far enough above 0 that no temperature up to 2 samples anything else.
constexpr float kCertainLogit = 200.0F;
constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();

class ScriptedState final : public SequenceState {
 public:
  explicit ScriptedState(const ScriptedModelOptions& options) : options_(options) {
    history_.reserve(options.max_seq);
  }

  void rollback(std::size_t tokens) override {
    assert(tokens <= rollback_limit_);
    history_.resize(history_.size() - tokens);
    position_ -= tokens;
    rollback_limit_ -= tokens;
  }
  void reset() override {
    history_.clear();
    position_ = 0;
    rollback_limit_ = 0;
  }
  void copy_from(const SequenceState& other) override {
    const auto& from = dynamic_cast<const ScriptedState&>(other);
    history_ = from.history_;
    history_.reserve(options_.max_seq);
    position_ = from.position_;
    rollback_limit_ = 0;
  }
  [[nodiscard]] std::size_t bytes() const override { return history_.capacity() * sizeof(TokenId); }

  void feed(TokenId token) {
    history_.push_back(token);
    ++position_;
  }
  void advance(std::size_t tokens, bool checkpoints) {
    const bool every_token = checkpoints || tokens == 1;
    rollback_limit_ =
        every_token ? std::min(rollback_limit_ + tokens, options_.max_checkpoints - 1) : 0;
  }
  [[nodiscard]] std::span<const TokenId> history() const { return history_; }

 private:
  const ScriptedModelOptions& options_;
  std::vector<TokenId> history_;
};

class ScriptedModel final : public CausalModel {
 public:
  ScriptedModel(ScriptedModelOptions options, NextToken next)
      : options_(options), next_(std::move(next)) {}

  [[nodiscard]] std::size_t vocab_size() const override { return options_.vocab_size; }
  [[nodiscard]] std::size_t max_seq() const override { return options_.max_seq; }
  [[nodiscard]] std::size_t max_checkpoints() const override { return options_.max_checkpoints; }
  [[nodiscard]] std::size_t max_batch_rows() const override { return options_.max_batch_rows; }
  [[nodiscard]] std::unique_ptr<SequenceState> make_state() const override {
    return std::make_unique<ScriptedState>(options_);
  }

  void forward(std::span<const ForwardItem> items) override {
    if (options_.delay_per_pass.count() > 0) {
      std::this_thread::sleep_for(options_.delay_per_pass);
    }
    std::size_t rows = 0;
    for (const ForwardItem& item : items) {
      rows += item.tokens.size();
      if (item.tokens.empty() || rows > options_.max_batch_rows) {
        throw Error(ErrorCode::kInternal, "a pass with no tokens, or with too many");
      }
      auto& state = static_cast<ScriptedState&>(*item.state);
      float* logits = item.logits;
      for (std::size_t t = 0; t < item.tokens.size(); ++t) {
        state.feed(item.tokens[t]);
        const bool wanted = item.logit_rows == LogitRows::kAll ||
                            (item.logit_rows == LogitRows::kLast && t + 1 == item.tokens.size());
        if (wanted) {
          const TokenId next = next_(state.history());
          std::fill(logits, logits + options_.vocab_size, next < 0 ? kNoNumber : 0.0F);
          if (next >= 0) {
            logits[next] = kCertainLogit;
          }
          logits += options_.vocab_size;
        }
      }
      state.advance(item.tokens.size(), item.checkpoints);
    }
  }

 private:
  ScriptedModelOptions options_;
  NextToken next_;
};

}  // namespace

std::unique_ptr<CausalModel> make_scripted_model(ScriptedModelOptions options, NextToken next) {
  return std::make_unique<ScriptedModel>(options, std::move(next));
}

}  // namespace spel::engine

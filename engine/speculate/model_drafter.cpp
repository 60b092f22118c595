#include "engine/speculate/model_drafter.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "engine/speculate/pass_clock.h"

namespace spel::engine {
namespace {

// To read all of a long prompt would cost more than it brings: with the last 8 tokens four of the
// shipped draft's proposals make 3.7 tokens a round, with the last 64 or with all of 300 3.9, and
// with all of 3,000 no more.
constexpr std::size_t kWindowMin = 16;
constexpr std::size_t kWindowMax = 128;
constexpr std::size_t kRowsMeasured = 17;

/// The model has been fed the text's tokens from `start` up to end().
class ModelDraftState final : public DraftState {
 public:
  explicit ModelDraftState(const CausalModel& model)
      : memory(model.make_state()), logits(model.vocab_size()) {}

  void reset() override {
    memory->reset();
    start = 0;
  }
  [[nodiscard]] std::size_t bytes() const override { return memory->bytes(); }
  [[nodiscard]] std::size_t end() const { return start + memory->position(); }

  std::unique_ptr<SequenceState> memory;
  std::vector<float> logits;  ///< [vocab]
  std::size_t start = 0;
};

ModelDraftState& own(DraftState& state) { return static_cast<ModelDraftState&>(state); }
const ModelDraftState& own(const DraftState& state) {
  return static_cast<const ModelDraftState&>(state);
}

class ModelDrafter final : public Drafter {
 public:
  ModelDrafter(std::string_view name, std::unique_ptr<CausalModel> model)
      : name_(name), model_(std::move(model)) {
    // One for each sequence of a pass, which has a row for each.
    passes_.reserve(model_->max_batch_rows());
  }

  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] std::size_t vocab_size() const override { return model_->vocab_size(); }
  [[nodiscard]] std::size_t rows_max() const override { return model_->max_batch_rows(); }
  [[nodiscard]] std::unique_ptr<DraftState> make_state() const override {
    return std::make_unique<ModelDraftState>(*model_);
  }

  [[nodiscard]] DraftOutlook outlook(const DraftState& state,
                                     const DraftText& text) const override {
    const std::size_t start = start_of(own(state), text);
    const std::size_t pending = text.tokens.size() - 1;
    DraftOutlook outlook;
    outlook.backlog = pending - std::max(start, own(state).end());
    const std::size_t taken = text.tokens.size() - start;
    outlook.most = model_->max_seq() > taken ? model_->max_seq() - taken : 0;
    return outlook;
  }

  void propose(std::span<DraftItem> items, PassObserver& observer) override {
    std::size_t places = 0;
    for (DraftItem& item : items) {
      ModelDraftState& state = own(*item.state);
      const std::size_t start = start_of(state, item.text);
      if (start != state.start) {
        state.memory->reset();
        state.start = start;
      }
      item.made = item.proposals.size();
      places = std::max(places, item.made);
    }
    for (std::size_t place = 0; place < places; ++place) {
      propose_place(items, place, observer);
    }
    for (DraftItem& item : items) {
      for (std::size_t place = item.made; place > 0; --place) {
        item.sampler->pop(item.proposals[place - 1]);
      }
    }
  }

  void keep(DraftState& state, std::size_t tokens) override {
    ModelDraftState& mine = own(state);
    if (mine.end() > tokens) {
      mine.memory->rollback(mine.end() - tokens);
    }
  }

  void rehearse(DraftState& state, std::size_t rows) override {
    static constexpr std::array<TokenId, kRowsMeasured> kTokens{};
    ModelDraftState& mine = own(state);
    if (mine.memory->position() + rows > model_->max_seq()) {
      mine.reset();
    }
    const ForwardItem item{mine.memory.get(), std::span(kTokens).first(rows), false,
                           LogitRows::kLast, mine.logits.data()};
    model_->forward({&item, 1});
  }
  [[nodiscard]] std::size_t rows_measured() const override {
    return std::min({kRowsMeasured, model_->max_batch_rows(), model_->max_seq()});
  }

 private:
  // Where the model's view of the text begins: one too far behind starts afresh.
  [[nodiscard]] std::size_t start_of(const ModelDraftState& state, const DraftText& text) const {
    const std::size_t window = std::min(std::clamp(text.to_come / 2, kWindowMin, kWindowMax),
                                        model_->max_batch_rows() - 1);
    const std::size_t pending = text.tokens.size() - 1;
    return pending - state.end() > window ? pending - window : state.start;
  }

  // The proposals of all items for one place in the round. The first pass of each also feeds what
  // the model has missed: the end of the prompt, the last round's final token, or the tokens of
  // plain rounds.
  void propose_place(std::span<DraftItem> items, std::size_t place, PassObserver& observer) {
    passes_.clear();
    PassLoad load;
    for (const DraftItem& item : items) {
      if (item.made <= place) {
        continue;
      }
      ModelDraftState& state = own(*item.state);
      const auto fed = place == 0 ? item.text.tokens.subspan(state.end())
                                  : std::span<const TokenId>(item.proposals).subspan(place - 1, 1);
      load += PassLoad::of_rows(fed.size(), state.memory->position());
      passes_.push_back({state.memory.get(), fed, false, LogitRows::kLast, state.logits.data()});
    }
    if (passes_.empty()) {
      return;
    }
    const bool settled = observer.settled(load.rows);
    const PassClock clock;
    model_->forward(passes_);
    for (DraftItem& item : items) {
      if (item.made <= place) {
        continue;
      }
      const TokenId token =
          item.sampler->choose(own(*item.state).logits, item.text.tokens.size() + place);
      if (token < 0) {
        item.made = place;  // A broken model proposes nothing; the target goes on.
        continue;
      }
      item.proposals[place] = token;
      item.sampler->push(token);
    }
    observer.observe(load, clock.seconds(), settled);
  }

  std::string name_;
  std::unique_ptr<CausalModel> model_;
  std::vector<ForwardItem> passes_;  ///< Of the pass being run.
};

}  // namespace

std::unique_ptr<Drafter> make_model_drafter(std::string_view name,
                                            std::unique_ptr<CausalModel> model) {
  return model == nullptr ? nullptr : std::make_unique<ModelDrafter>(name, std::move(model));
}

}  // namespace spel::engine

#include "tests/engine/support.h"

#include <random>
#include <utility>
#include <variant>

#include "engine/speculate/model_drafter.h"

namespace spel::engine::testing {

Reader::Reader(std::size_t capacity)
    : signal_(std::make_shared<Signal>()),
      stream_(std::make_shared<TokenStream>(capacity, [signal = signal_] {
        const std::lock_guard lock(signal->mutex);
        ++signal->count;
        signal->ready.notify_one();
      })) {}

StreamEvent Reader::next() {
  while (true) {
    std::uint64_t seen = 0;
    {
      const std::lock_guard lock(signal_->mutex);
      seen = signal_->count;
    }
    if (auto event = stream_->try_pop()) {
      return std::move(*event);
    }
    std::unique_lock lock(signal_->mutex);
    signal_->ready.wait(lock, [&] { return signal_->count != seen; });
  }
}

Answer Reader::drain(const Tokenizer& tokenizer) {
  Answer answer;
  while (true) {
    StreamEvent event = next();
    if (auto* prompt = std::get_if<PromptEvent>(&event)) {
      answer.prompt = std::move(*prompt);
    } else if (auto* token = std::get_if<TokenEvent>(&event)) {
      answer.tokens.push_back(token->token);
      answer.draft_positions.push_back(token->draft_position);
      answer.logprobs.push_back(token->logprob);
      answer.text += tokenizer.bytes(token->token);
    } else {
      answer.finish = std::move(std::get<FinishEvent>(event));
      answer.text.resize(std::min(answer.text.size(), answer.finish.text_bytes));
      return answer;
    }
  }
}

Answer generate(Engine& engine, GenerationRequest request) {
  Reader reader;
  if (engine.submit(std::move(request), reader.stream()) != SubmitStatus::kAccepted) {
    throw std::runtime_error("the engine did not accept a test request");
  }
  return reader.drain(engine.tokenizer());
}

std::vector<TokenId> ascii(std::string_view text) { return {text.begin(), text.end()}; }

NextToken recite(std::vector<TokenId> script, std::size_t prompt_size) {
  return [script = std::move(script), prompt_size](std::span<const TokenId> history) {
    const std::size_t at = history.size() - prompt_size;
    return script[std::min(at, script.size() - 1)];
  };
}

std::unique_ptr<Drafter> drafting(std::unique_ptr<CausalModel> model) {
  return make_model_drafter("ternary", std::move(model));
}

namespace {

class RandomDrafter final : public Drafter {
 public:
  explicit RandomDrafter(std::size_t vocab_size) : vocab_size_(vocab_size) {}

  [[nodiscard]] std::string_view name() const override { return "random"; }
  [[nodiscard]] std::size_t vocab_size() const override { return vocab_size_; }
  [[nodiscard]] std::size_t rows_max() const override { return 1U << 20; }
  [[nodiscard]] std::unique_ptr<DraftState> make_state() const override {
    return std::make_unique<State>();
  }
  [[nodiscard]] DraftOutlook outlook(const DraftState& /*state*/,
                                     const DraftText& /*text*/) const override {
    return {0, limits::kSpecKMax};
  }
  void propose(std::span<DraftItem> items, PassObserver& observer) override {
    for (DraftItem& item : items) {
      for (TokenId& token : item.proposals) {
        random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
        token = static_cast<TokenId>((random_ >> 33) % vocab_size_);
      }
      item.made = item.proposals.size();
    }
    observer.observe({1.0, 0.0}, 1e-6, true);
  }
  void keep(DraftState& /*state*/, std::size_t /*tokens*/) override {}
  void rehearse(DraftState& /*state*/, std::size_t /*rows*/) override {}
  [[nodiscard]] std::size_t rows_measured() const override { return 1; }

 private:
  class State final : public DraftState {
   public:
    void reset() override {}
    [[nodiscard]] std::size_t bytes() const override { return 0; }
  };

  std::size_t vocab_size_;
  std::uint64_t random_ = 7;
};

}  // namespace

std::unique_ptr<Drafter> random_drafter(std::size_t vocab_size) {
  return std::make_unique<RandomDrafter>(vocab_size);
}

std::unique_ptr<Engine> reciting_engine(std::string_view script, std::size_t prompt_size,
                                        const ReciterOptions& options) {
  auto target = make_scripted_model(options.model, recite(ascii(script), prompt_size));
  auto draft = options.draft
                   ? make_scripted_model(options.model, recite(ascii(script), prompt_size))
                   : nullptr;
  return std::make_unique<Engine>(options.config, std::move(target), drafting(std::move(draft)),
                                  make_ascii_tokenizer());
}

GenerationRequest request(std::string_view prompt, std::size_t max_tokens) {
  GenerationRequest request;
  request.prompt = ascii(prompt);
  request.max_tokens = max_tokens;
  request.sampling.temperature = 0;
  request.speculation.governor = GovernorKind::kOff;
  return request;
}

ModelConfig odd_shape() {
  ModelConfig config;
  config.name = "odd";
  config.d_model = 60;
  config.n_layers = 10;
  config.n_heads = 3;
  config.head_dim = 20;
  config.d_ff = 84;
  config.vocab_size = 101;
  config.max_seq = 600;
  config.draft_layers = {0, 3, 6, 9};
  return config;
}

HybridRig::HybridRig(std::shared_ptr<const ModelWeights> model_weights, kernels::Isa isa,
                     std::size_t threads, const ModelOptions& options)
    : weights(std::move(model_weights)), target_pool(threads), draft_pool(threads) {
  const kernels::Kernels& kernels = kernels::Kernels::select(isa);
  target = make_target_model(weights, kernels, target_pool, options);
  draft = make_draft_model(weights, kernels, draft_pool, options);
}

std::shared_ptr<const Tokenizer> byte_tokenizer(std::size_t vocab_size) {
  std::vector<std::string> tokens;
  for (std::size_t i = 0; i < vocab_size; ++i) {
    tokens.emplace_back(1, static_cast<char>(i));
  }
  return make_list_tokenizer(std::move(tokens), std::nullopt);
}

std::vector<TokenId> random_tokens(std::size_t count, std::size_t vocab, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) {
    token = static_cast<TokenId>(generator() % vocab);
  }
  return tokens;
}

}  // namespace spel::engine::testing

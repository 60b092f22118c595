#include "tests/engine/golden_bits.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <span>

#include "engine/model/transformer.h"
#include "engine/model/weights.h"
#include "engine/sample/sampler.h"
#include "engine/state/hybrid_state.h"
#include "kernels/kernels.h"
#include "kernels/thread_pool.h"

namespace spel::engine::testing {
namespace {

class Hash {
 public:
  void add(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) {
      value_ = (value_ ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3ULL;
    }
  }
  void add(std::span<const float> values) { add(std::as_bytes(values)); }
  void add(TokenId token) { add(std::as_bytes(std::span(&token, 1))); }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

constexpr std::size_t kPromptTokens = 61;
constexpr std::size_t kRounds = 12;

ModelConfig shape(std::string name, std::uint32_t heads, std::uint32_t head_dim,
                  std::uint32_t layers, std::uint32_t d_ff, std::uint32_t vocab) {
  ModelConfig config;
  config.name = std::move(name);
  config.d_model = heads * head_dim;
  config.n_heads = heads;
  config.head_dim = head_dim;
  config.n_layers = layers;
  config.d_ff = d_ff;
  config.vocab_size = vocab;
  config.max_seq = 256;
  config.draft_layers = {0};
  return config;
}

}  // namespace

std::vector<ModelConfig> golden_models() {
  ModelConfig shipped = ModelConfig::default_shape();
  shipped.name = "spel-21m";
  std::vector<ModelConfig> shapes = {
      shipped,
      shape("three heads of 12", 3, 12, 5, 44, 131),
      shape("one head of 8", 1, 8, 3, 20, 17),
      shape("five heads of 20", 5, 20, 4, 260, 259),
      shape("32 heads of 2", 32, 2, 4, 100, 70),
      shape("two heads of 66", 2, 66, 6, 132, 33),
      shape("seven heads of 28", 7, 28, 8, 388, 515),
  };
  shapes[1].attn_period = 2;
  shapes[1].draft_layers = {0, 3};
  shapes[2].attn_period = 3;
  shapes[2].conv_taps = 1;
  shapes[2].draft_layers = {1, 2};
  shapes[3].conv_taps = 4;
  shapes[3].conv_activation = ConvActivation::kSilu;
  shapes[3].read_order = ReadOrder::kAfterDecay;
  shapes[4].attn_period = 1;  // Nothing but attention.
  shapes[4].rope_theta = 500.0;
  shapes[5].attn_period = 7;  // Nothing but the delta rule.
  shapes[5].conv_taps = 2;
  shapes[5].draft_layers = {0, 2, 5};
  shapes[6].attn_logit_scale = 3.5F;
  shapes[6].rms_norm_eps = 1e-3F;
  shapes[6].draft_layers = {2, 3, 7};
  return shapes;
}

namespace {

/// Takes one model through a prompt and rounds that keep some of their tokens.
class Walk {
 public:
  Walk(HybridCausalModel& model, Hash& ids, Hash& logits)
      : model_(model),
        ids_(ids),
        logits_(logits),
        vocab_(model.vocab_size()),
        state_(model.make_state()),
        buffer_(kPromptTokens * vocab_) {}

  void run() {
    std::vector<TokenId> prompt(kPromptTokens);
    for (TokenId& token : prompt) {
      token = static_cast<TokenId>(next_random() % vocab_);
    }
    std::size_t at = 0;
    for (const std::size_t count : {1U, 7U, 17U, 36U}) {
      feed(std::span(prompt).subspan(at, count), false);
      at += count;
    }
    Sampler greedy(vocab_);
    Sampler warm(vocab_);
    SamplingParams params;
    params.temperature = 0.0F;
    greedy.reset(params, prompt);
    params.temperature = 0.8F;
    params.top_p = 0.9F;
    params.seed = 11;
    warm.reset(params, prompt);
    for (std::size_t round = 0; round < kRounds; ++round) {
      const std::size_t fed = 1 + next_random() % 6;
      std::vector<TokenId> tokens(fed);
      for (TokenId& token : tokens) {
        token = static_cast<TokenId>(next_random() % vocab_);
      }
      const std::span<const float> rows = feed(tokens, true);
      for (std::size_t row = 0; row < fed; ++row) {
        const auto logits = rows.subspan(row * vocab_, vocab_);
        ids_.add(greedy.choose(logits, state_->position()));
        ids_.add(warm.choose(logits, state_->position() + row));
      }
      state_->rollback(next_random() % fed);
    }
  }

  [[nodiscard]] HybridState& state() { return static_cast<HybridState&>(*state_); }

 private:
  std::uint64_t next_random() {
    random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return random_ >> 33;
  }

  std::span<const float> feed(std::span<const TokenId> tokens, bool checkpoints) {
    const ForwardItem item{state_.get(), tokens, checkpoints, LogitRows::kAll, buffer_.data()};
    model_.forward({&item, 1});
    const auto rows = std::span<const float>(buffer_).first(tokens.size() * vocab_);
    logits_.add(rows);
    return rows;
  }

  HybridCausalModel& model_;
  Hash& ids_;
  Hash& logits_;
  std::size_t vocab_;
  std::unique_ptr<SequenceState> state_;
  std::vector<float> buffer_;
  std::uint64_t random_ = 5;
};

/// What the next token depends on, and nothing else of the memory.
void add_state(Hash& hash, HybridState& state, const ModelSpec& spec) {
  const std::size_t position = state.position();
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    if (const auto* delta = std::get_if<DeltaSpec>(&spec.layers[i].mixer)) {
      hash.add({state.recurrent(i, 0), delta->value_heads * delta->head_state()});
      for (std::size_t back = 1; back < delta->conv_taps; ++back) {
        hash.add({state.conv_row(i, position - back), delta->conv_width(spec.d_model)});
      }
      continue;
    }
    const auto& attention = std::get<AttentionSpec>(spec.layers[i].mixer);
    const std::size_t hd = attention.head_dim;
    for (std::size_t head = 0; head < attention.kv_heads; ++head) {
      const float* keys = state.keys(i, head);
      for (std::size_t at = 0; at < position; ++at) {
        for (std::size_t d = 0; d < hd; ++d) {
          hash.add({keys + at / 16 * 16 * hd + d * 16 + at % 16, 1});
        }
      }
      hash.add({state.values(i, head), position * hd});
    }
  }
}

}  // namespace

GoldenBits compute_golden_bits(const ModelConfig& config, const TensorReader& reader,
                               WeightsDtype dtype, kernels::Isa isa) {
  const auto weights =
      std::make_shared<const ModelWeights>(pack_spel_hybrid(config, reader, dtype));
  const kernels::Kernels& set = kernels::Kernels::select(isa);
  kernels::ThreadPool pool(2);
  ModelOptions options;
  options.max_seq = 256;
  Hash ids;
  Hash logits;
  Hash states;
  const auto target = make_target_model(weights, set, pool, options);
  const auto draft = make_draft_model(weights, set, pool, options);
  Walk with_target(*target, ids, logits);
  with_target.run();
  add_state(states, with_target.state(), target->spec());
  Walk with_draft(*draft, ids, logits);
  with_draft.run();
  add_state(states, with_draft.state(), draft->spec());
  return {config.name, ids.value(), logits.value(), states.value()};
}

std::string spelled(const std::vector<GoldenBits>& bits) {
  std::string text;
  for (const GoldenBits& b : bits) {
    std::array<char, 160> line{};
    (void)std::snprintf(
        line.data(), line.size(), "      {\"%s\", 0x%016llx, 0x%016llx, 0x%016llx},\n",
        b.model.c_str(), static_cast<unsigned long long>(b.ids),
        static_cast<unsigned long long>(b.logits), static_cast<unsigned long long>(b.states));
    text += line.data();
  }
  return text;
}

std::vector<GoldenBits> expected_golden_bits() {
  return {
      {"spel-21m", 0xe3eb58823827f028, 0xc9625afc1b548a59, 0x22b55d9bed4ae9f6},
      {"three heads of 12", 0xe58eafcc39523252, 0x04ddb2be703b9821, 0xd3734693548fe6f6},
      {"one head of 8", 0xf7fc1e34b9509567, 0xf4071d220693ae86, 0x9e239c2588275769},
      {"five heads of 20", 0x4a19cb84077ad417, 0x616e6adca6a46e39, 0x89d6165c6a1cd258},
      {"32 heads of 2", 0x294985a4905fbe1c, 0xa1b5af1f53a52e2f, 0x36d50f44002a53e6},
      {"two heads of 66", 0xdf6862f3d28e185e, 0x582ae9c3e98c7521, 0x52a618a6ef7af631},
      {"seven heads of 28", 0xc9277436fd874393, 0x05cd398abc426e26, 0x3922531f5777cb1d},
  };
}

}  // namespace spel::engine::testing

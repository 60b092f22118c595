// The published hybrids compute what the reference implementation does, on every instruction set;
// and each of the usual mistakes is seen.
#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "config/base/error.h"
#include "engine/arch/hybrids.h"
#include "engine/state/hybrid_state.h"
#include "tests/engine/hybrids/fixture.h"

namespace spel::engine {
namespace {

using testing::dense_hybrids;
using testing::Golden;
using testing::HybridRun;
using testing::load_hybrid;
using testing::worst;

// Ten times the reference's own noise (one token a call against all at once, f32 against f64), and
// far below what any mistake does.
constexpr double kLogitsLimit = 5e-3;
constexpr double kHiddenLimit = 1e-3;
constexpr double kStateLimit = 2e-4;
constexpr double kCacheLimit = 5e-4;

/// Keeps the stream after every layer.
class LayerOutputs final : public ForwardObserver {
 public:
  explicit LayerOutputs(std::size_t d_model) : d_model_(d_model) {}
  void on_recurrent(std::size_t, std::size_t, std::size_t, const float*, std::size_t) override {}
  void on_layer(std::size_t /*layer*/, std::size_t rows, const float* x) override {
    layers.emplace_back(x, x + rows * d_model_);
  }
  std::vector<std::vector<float>> layers;

 private:
  std::size_t d_model_;
};

/// [heads][rows][cols] as [heads][cols][rows].
std::vector<float> turned(const float* values, std::size_t heads, std::size_t rows,
                          std::size_t cols) {
  std::vector<float> out(heads * rows * cols);
  for (std::size_t h = 0; h < heads; ++h) {
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < cols; ++c) {
        out[(h * cols + c) * rows + r] = values[(h * rows + r) * cols + c];
      }
    }
  }
  return out;
}

/// The worst difference of each kind.
struct Differences {
  double logits = 0.0;
  double hidden = 0.0;
  double state = 0.0;
  double cache = 0.0;

  void take(double& kind, double value) const { kind = std::max(kind, value); }
};

void compare_layer(HybridState& state, std::size_t i, const LayerSpec& layer, const Golden& golden,
                   std::size_t tokens, Differences& found) {
  const std::string name = ".short.layer" + std::to_string(i) + ".";
  if (const auto* delta = std::get_if<DeltaSpec>(&layer.mixer)) {
    found.take(found.state, worst(turned(state.recurrent(i, 0), delta->value_heads,
                                         delta->value_dim, delta->key_dim),
                                  golden.floats("state" + name + "recurrent")));
    std::vector<float> rows;
    for (std::size_t back = delta->conv_taps - 1; back > 0; --back) {
      const float* row = state.conv_row(i, tokens - back);
      rows.insert(rows.end(), row, row + delta->qkv_width());
    }
    found.take(found.cache, worst(turned(rows.data(), 1, delta->conv_taps - 1, delta->qkv_width()),
                                  golden.floats("state" + name + "conv")));
    return;
  }
  const auto& attention = std::get<AttentionSpec>(layer.mixer);
  const std::size_t hd = attention.head_dim;
  std::vector<float> keys;
  std::vector<float> values;
  for (std::size_t head = 0; head < attention.kv_heads; ++head) {
    for (std::size_t at = 0; at < tokens; ++at) {
      for (std::size_t d = 0; d < hd; ++d) {
        keys.push_back(state.keys(i, head)[at / 16 * 16 * hd + d * 16 + at % 16]);
      }
    }
    const float* v = state.values(i, head);
    values.insert(values.end(), v, v + tokens * hd);
  }
  found.take(found.cache, worst(keys, golden.floats("kv" + name + "k")));
  found.take(found.cache, worst(values, golden.floats("kv" + name + "v")));
}

Differences compare(const HybridRun& run, const Golden& golden) {
  Differences found;
  for (const std::string text : {"short", "mid", "long"}) {
    if (!golden.has("ids." + text)) {
      continue;
    }
    found.take(found.logits,
               worst(run.logits(golden.ids("ids." + text)), golden.floats("logits." + text)));
  }
  const ModelSpec& spec = run.model->spec();
  const std::vector<TokenId> ids = golden.ids("ids.short");
  const auto state = run.model->make_state();
  LayerOutputs outputs(spec.d_model);
  run.model->set_observer(&outputs);
  (void)run.logits(*state, ids);
  run.model->set_observer(nullptr);
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    const std::string name = "hidden.short.layer" + std::to_string(i);
    found.take(found.hidden, worst(outputs.layers[i], golden.floats(name)));
    compare_layer(dynamic_cast<HybridState&>(*state), i, spec.layers[i], golden, ids.size(), found);
  }
  return found;
}

std::vector<TokenId> greedy(const HybridRun& run, std::vector<TokenId> next, std::size_t count) {
  const auto state = run.model->make_state();
  const std::size_t vocab = run.model->vocab_size();
  std::vector<TokenId> chosen;
  while (chosen.size() < count) {
    const std::vector<float> logits = run.logits(*state, next);
    const auto last = logits.end() - static_cast<std::ptrdiff_t>(vocab);
    chosen.push_back(static_cast<TokenId>(std::max_element(last, logits.end()) - last));
    next = {chosen.back()};
  }
  return chosen;
}

TEST(HybridGoldens, EveryInstructionSetComputesWhatTheReferenceDoes) {
  for (const std::filesystem::path& model : dense_hybrids()) {
    const Golden golden(model);
    const auto weights = load_hybrid(model);
    const std::vector<TokenId> expected = golden.ids("greedy.short");
    for (const kernels::Isa isa : kernels::attainable_isas()) {
      SCOPED_TRACE(model.string() + ", " + std::string(kernels::isa_name(isa)));
      const HybridRun run(weights, isa);
      const Differences found = compare(run, golden);
      EXPECT_LT(found.logits, kLogitsLimit);
      EXPECT_LT(found.hidden, kHiddenLimit);
      EXPECT_LT(found.state, kStateLimit);
      EXPECT_LT(found.cache, kCacheLimit);
      EXPECT_EQ(greedy(run, golden.ids("ids.short"), expected.size()), expected);
      if (isa == kernels::attainable_isas().front()) {
        std::cout << model.filename().string() << ": worst logit " << found.logits
                  << " (the reference's own noise "
                  << "6.7e-4), hidden " << found.hidden << " (6.5e-5), state " << found.state
                  << " (1.7e-5), convolution, keys and values " << found.cache << " (3.5e-5)\n";
      }
    }
  }
}

/// Says that one layer has experts, whatever its configuration says.
class ExpertNames final : public TensorNames {
 public:
  [[nodiscard]] std::optional<std::span<const std::uint64_t>> shape(
      std::string_view /*name*/) const override {
    return std::nullopt;
  }
  [[nodiscard]] bool any_begins(std::string_view prefix) const override {
    return prefix == "model.layers.2.mlp.gate.weight";
  }
};

std::string refusal_of(const std::function<void()>& load) {
  try {
    load();
  } catch (const Error& error) {
    return error.what();
  }
  return "it was taken";
}

TEST(HybridGoldens, AMixtureOfExpertsIsRefusedByItsLayersName) {
  const MappedFile config(testing::own_hybrid("qwen3-next") / "config.json");
  const ModelSpec spec = qwen3_next_spec(config.text(), "config.json");
  const std::string refusal = refusal_of([&] { (void)qwen3_next_tensors(spec, ExpertNames()); });
  EXPECT_NE(refusal.find("model.layers.2.mlp.gate.weight"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("mixture of experts"), std::string::npos) << refusal;
  if (const auto path = testing::expert_hybrid()) {
    const std::string whole = refusal_of([&] { (void)load_hybrid(*path); });
    EXPECT_NE(whole.find("model.layers.0.mlp.gate.weight"), std::string::npos) << whole;
  }
}

// --- Deliberate mistakes
// ---------------------------------------------------------------------------

template <typename Change>
ModelSpec with_attention(ModelSpec spec, const Change& change) {
  for (LayerSpec& layer : spec.layers) {
    if (auto* attention = std::get_if<AttentionSpec>(&layer.mixer)) {
      change(*attention);
    }
  }
  return spec;
}
template <typename Change>
ModelSpec with_delta(ModelSpec spec, const Change& change) {
  for (LayerSpec& layer : spec.layers) {
    if (auto* delta = std::get_if<DeltaSpec>(&layer.mixer)) {
      change(*delta);
    }
  }
  return spec;
}
template <typename Change>
TensorLayout with_layers(TensorLayout layout, const Change& change) {
  std::ranges::for_each(layout.target, change);
  return layout;
}

using Config = std::string_view;
using Source = const std::string&;
using Spec = const ModelSpec&;
using Names = const TensorNames&;

/// An architecture with one thing wrong. Rotation: see rope in hybrid-models' common mistakes.
struct Mistake {
  const char* what;
  const char* model;
  Architecture architecture;
};

const Mistake kMistakes[] = {
    {"rotation with theta 1e4",
     "qwen35-shards",
     {"",
      [](Config c, Source s) {
        return with_attention(qwen35_spec(c, s), [](auto& a) { a.rope->theta = 1e4; });
      },
      &qwen35_tensors}},
    {"no rotation",
     "qwen35-shards",
     {"",
      [](Config c, Source s) {
        return with_attention(qwen35_spec(c, s), [](auto& a) { a.rope.reset(); });
      },
      &qwen35_tensors}},
    {"rotation of whole heads",
     "qwen35-shards",
     {"",
      [](Config c, Source s) {
        return with_attention(qwen35_spec(c, s), [](auto& a) { a.rope->dims = a.head_dim; });
      },
      &qwen35_tensors}},
    {"rotation of neighbours",
     "qwen35-shards",
     {"",
      [](Config c, Source s) {
        return with_attention(qwen35_spec(c, s), [](auto& a) {
          a.rope->dims = a.head_dim;
          a.rope->pairs = RopePairs::kNeighbours;
        });
      },
      &qwen35_tensors}},
    {"q and k of length 1 instead of normed",
     "qwen35-shards",
     {"",
      [](Config c, Source s) {
        return with_attention(qwen35_spec(c, s), [](auto& a) { a.qk_norm = QkNorm::kLength; });
      },
      &qwen35_tensors}},
    {"logits not scaled",
     "qwen35-shards",
     {"",
      [](Config c, Source s) {
        return with_attention(qwen35_spec(c, s), [](auto& a) { a.logit_scale = 1.0F; });
      },
      &qwen35_tensors}},
    {"all queries, then all gates",
     "qwen35-shards",
     {"", &qwen35_spec,
      [](Spec s, Names n) {
        return with_layers(qwen35_tensors(s, n), [](LayerTensors& t) {
          if (t.in.front().blocks.size() == t.in.back().blocks.size() &&
              !t.in.front().blocks.empty()) {
            const std::uint32_t half = t.in.front().tensor.rows / 2;
            t.in.front().blocks = {{0, half}};
            t.in.back().blocks = {{half, half}};
          }
        });
      }}},
    {"the state read before its decay",
     "qwen35-shards",
     {"",
      [](Config c, Source s) {
        return with_delta(qwen35_spec(c, s),
                          [](auto& d) { d.read_order = ReadOrder::kBeforeDecay; });
      },
      &qwen35_tensors}},
    {"a convolution without SiLU",
     "qwen35-shards",
     {"",
      [](Config c, Source s) {
        return with_delta(qwen35_spec(c, s),
                          [](auto& d) { d.conv_activation = ConvActivation::kNone; });
      },
      &qwen35_tensors}},
    {"a and b swapped",
     "qwen35-shards",
     {"", &qwen35_spec,
      [](Spec s, Names n) {
        return with_layers(qwen35_tensors(s, n), [](LayerTensors& t) {
          if (t.norm) {
            std::swap(t.in[2], t.in[3]);
          }
        });
      }}},
    {"norms by w instead of 1 + w",
     "qwen35-shards",
     {"", &qwen35_spec,
      [](Spec s, Names n) {
        return with_layers(qwen35_tensors(s, n), [](LayerTensors& t) {
          t.input_norm.values_are = TensorValues::kAsStored;
        });
      }}},
    {"the gated norm by 1 + w",
     "qwen35-shards",
     {"", &qwen35_spec,
      [](Spec s, Names n) {
        return with_layers(qwen35_tensors(s, n), [](LayerTensors& t) {
          if (t.norm) {
            t.norm->values_are = TensorValues::kOnePlus;
          }
        });
      }}},
    {"rates not through exp",
     "qwen35-shards",
     {"", &qwen35_spec,
      [](Spec s, Names n) {
        return with_layers(qwen35_tensors(s, n), [](LayerTensors& t) {
          if (t.decay_rate) {
            t.decay_rate->values_are = TensorValues::kOnePlus;
          }
        });
      }}},
    {"fused projections taken as one after another",
     "qwen3-next",
     {"", &qwen3_next_spec,
      [](Spec s, Names n) {
        return with_layers(qwen3_next_tensors(s, n), [](LayerTensors& t) {
          if (t.norm) {
            t.in = {{t.in.front().tensor}, {t.in.back().tensor}};
          }
        });
      }}},
    {"a write rate not doubled",
     "olmo-hybrid",
     {"",
      [](Config c, Source s) {
        return with_delta(olmo_hybrid_spec(c, s),
                          [](auto& d) { d.input_gates->write_scale = 1.0F; });
      },
      &olmo_hybrid_tensors}},
    {"the gated norm's eps",
     "olmo-hybrid",
     {"",
      [](Config c, Source s) {
        return with_delta(olmo_hybrid_spec(c, s), [](auto& d) { d.gated_norm->eps = 1e-6F; });
      },
      &olmo_hybrid_tensors}},
    {"attention normed before instead of after",
     "olmo-hybrid",
     {"",
      [](Config c, Source s) {
        ModelSpec spec = olmo_hybrid_spec(c, s);
        for (LayerSpec& layer : spec.layers) {
          layer.norms = NormPlace::kBefore;
        }
        return spec;
      },
      &olmo_hybrid_tensors}},
    {"q and k normed a head at a time",
     "olmo-hybrid",
     {"",
      [](Config c, Source s) {
        return with_attention(olmo_hybrid_spec(c, s),
                              [](auto& a) { a.qk_norm = QkNorm::kRmsHead; });
      },
      &olmo_hybrid_tensors}},
};

TEST(HybridGoldens, EachUsualMistakeIsFarOutsideTheLimits) {
  const kernels::Isa isa = kernels::attainable_isas().front();
  for (const Mistake& mistake : kMistakes) {
    SCOPED_TRACE(mistake.what);
    const std::filesystem::path model = testing::own_hybrid(mistake.model);
    const Golden golden(model);
    const HybridRun run(load_hybrid(model, &mistake.architecture), isa);
    const double off = worst(run.logits(golden.ids("ids.mid")), golden.floats("logits.mid"));
    EXPECT_GT(off, 20 * kLogitsLimit);
    std::cout << mistake.model << ", " << mistake.what << ": a logit off by " << off << "\n";
  }
}

}  // namespace
}  // namespace spel::engine

#include "engine/model/forward.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "config/base/error.h"
#include "engine/model/fast_projections.h"
#include "engine/model/hybrid_state.h"
#include "engine/model/rope_table.h"
#include "engine/model/workspace.h"

namespace spel::engine {
namespace {

using kernels::Kernels;
using kernels::ThreadPool;

/// Rows below which splitting a row operation over threads costs more than it saves.
constexpr std::size_t kRowsWorthSplitting = 16;
/// Weights of more bytes than this push a pass's states out of the caches before the next pass
/// reads one of them.
constexpr std::size_t kCacheBytes = std::size_t{32} << 20;

template <typename Layer>
std::size_t weight_bytes(const std::vector<Layer>& layers) {
  std::size_t bytes = 0;
  for (const Layer& layer : layers) {
    bytes += layer.qkv.bytes() + layer.out.bytes() + layer.gate_up.bytes() + layer.down.bytes();
  }
  return bytes;
}

template <typename Layer>
class HybridModel final : public HybridCausalModel {
 public:
  HybridModel(std::shared_ptr<const ModelWeights> weights, const std::vector<Layer>& layers,
              const Kernels& kernels, ThreadPool& pool, const ModelOptions& options,
              StateLayout layout, std::vector<std::size_t> layer_index, FastProjections fast)
      : weights_(std::move(weights)),
        layers_(layers),
        states_past_caches_(weight_bytes(layers) > kCacheBytes),
        config_(weights_->config),
        kernels_(kernels),
        pool_(pool),
        options_(options),
        layout_(std::move(layout)),
        layer_index_(std::move(layer_index)),
        fast_(std::move(fast)),
        rope_(layout_.max_seq, config_.head_dim, config_.rope_theta),
        ws_(config_, options.max_batch_rows, layout_.max_seq) {}

  [[nodiscard]] std::size_t vocab_size() const override { return config_.vocab_size; }
  [[nodiscard]] std::size_t max_seq() const override { return layout_.max_seq; }
  [[nodiscard]] std::size_t max_checkpoints() const override { return layout_.ring_slots; }
  [[nodiscard]] std::size_t max_batch_rows() const override { return options_.max_batch_rows; }
  [[nodiscard]] std::unique_ptr<SequenceState> make_state() const override {
    return std::make_unique<HybridState>(layout_);
  }
  void set_observer(ForwardObserver* observer) override { observer_ = observer; }
  [[nodiscard]] const ModelConfig& config() const override { return config_; }

  void forward(std::span<const ForwardItem> items) override {
    const std::size_t rows = embed(items);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const Layer& layer = layers_[i];
      normalize(layer.input_norm, rows);
      if (layout_.is_attention[i]) {
        project(layer.qkv, ws_.h.data(), config_.d_model, rows, ws_.qkv.data());
        attention(items, i);
      } else {
        convolve(items, i, layer.recurrent);
        project(layer.qkv, ws_.mixed.data(), config_.d_model, rows, ws_.qkv.data());
        delta_rule(items, i, layer.recurrent);
      }
      project(layer.out, ws_.h.data(), config_.d_model, rows, ws_.mixed.data());
      add_to_stream(rows);

      normalize(layer.post_norm, rows);
      project(layer.gate_up, ws_.h.data(), config_.d_model, rows, ws_.gate_up.data());
      swiglu(rows);
      project(layer.down, ws_.act.data(), config_.d_ff, rows, ws_.mixed.data());
      add_to_stream(rows);
    }
    for (const ForwardItem& item : items) {
      state_of(item).advance(item.tokens.size(), item.checkpoints);
    }
    write_logits(items);
  }

 private:
  static HybridState& state_of(const ForwardItem& item) {
    return static_cast<HybridState&>(*item.state);
  }

  template <typename Body>
  void for_rows(std::size_t rows, const Body& body) {
    if (rows < kRowsWorthSplitting) {
      for (std::size_t row = 0; row < rows; ++row) {
        body(row);
      }
    } else {
      pool_.parallel_for(rows, body);
    }
  }

  std::size_t embed(std::span<const ForwardItem> items) {
    const std::size_t d = config_.d_model;
    std::size_t row = 0;
    for (const ForwardItem& item : items) {
      // Worth a branch in every build: past these bounds lies somebody else's memory.
      if (row + item.tokens.size() > options_.max_batch_rows ||
          item.state->position() + item.tokens.size() > layout_.max_seq) {
        throw Error(ErrorCode::kInternal, "a pass beyond max_batch_rows or max_seq");
      }
      for (const TokenId token : item.tokens) {
        std::memcpy(&ws_.x[row * d],
                    &weights_->shared.embedding[static_cast<std::size_t>(token) * d],
                    d * sizeof(float));
        ++row;
      }
    }
    return row;
  }

  // h = rms(x)
  void normalize(const std::vector<float>& weight, std::size_t rows) {
    const std::size_t d = config_.d_model;
    for_rows(rows, [&](std::size_t row) {
      kernels_.rms_norm(&ws_.x[row * d], weight.data(), d, config_.rms_norm_eps, &ws_.h[row * d]);
    });
  }

  // x += mixed
  void add_to_stream(std::size_t rows) {
    kernels_.add(ws_.x.data(), ws_.mixed.data(), rows * config_.d_model);
  }

  void project(const kernels::DenseMatrix& w, const float* x, std::size_t cols, std::size_t rows,
               float* y) {
    const kernels::BlasMatrix* fast = rows > 1 ? fast_.find(w) : nullptr;
    if (fast != nullptr) {
      fast->matmul(x, cols, rows, y, w.rows());
    } else {
      kernels_.matmul(pool_, w, x, cols, rows, y, w.rows());
    }
  }
  void project(const kernels::Int8Matrix& w, const float* x, std::size_t cols, std::size_t rows,
               float* y) {
    kernels_.matmul(pool_, w, quantize(x, cols, rows), rows, y, w.rows());
  }
  void project(const kernels::TernaryMatrix& w, const float* x, std::size_t cols, std::size_t rows,
               float* y) {
    kernels_.matmul(pool_, w, quantize(x, cols, rows), rows, y, w.rows(), options_.ternary);
  }

  kernels::QuantizedRows quantize(const float* x, std::size_t cols, std::size_t rows) {
    const std::size_t stride = round_up(cols, 64);
    const kernels::QuantizedRows out{ws_.quantized.data(), ws_.quantized_scales.data(), stride};
    for_rows(rows, [&](std::size_t row) {
      kernels_.quantize_row(x + row * cols, cols, out.values + row * stride, stride,
                            out.scales + row);
    });
    return out;
  }

  // mixed = the short convolution over h; h joins the state's history.
  void convolve(std::span<const ForwardItem> items, std::size_t layer,
                const RecurrentVectors& recurrent) {
    const std::size_t d = config_.d_model;
    const std::size_t taps = config_.conv_taps;
    std::size_t first = 0;
    for (const ForwardItem& item : items) {
      HybridState& state = state_of(item);
      const std::size_t start = state.position();
      const std::size_t tokens = item.tokens.size();
      for (std::size_t t = 0; t < tokens; ++t) {
        std::array<const float*, limits::kConvTapsMax> inputs{};
        for (std::size_t tap = 0; tap < taps; ++tap) {
          const std::size_t back = taps - 1 - tap;  // Oldest first.
          if (back <= t) {
            inputs[tap] = &ws_.h[(first + t - back) * d];
          } else if (back <= start + t) {
            inputs[tap] = state.conv_row(layer, start + t - back);
          } else {
            inputs[tap] = zero_row_.data();
          }
        }
        float* out = &ws_.mixed[(first + t) * d];
        kernels_.short_conv(inputs.data(), recurrent.conv.data(), taps, d, out);
        if (config_.conv_activation == ConvActivation::kSilu) {
          kernels_.silu(out, d, out);
        }
      }
      const std::size_t kept = std::min(tokens, layout_.conv_rows());
      for (std::size_t t = tokens - kept; t < tokens; ++t) {
        std::memcpy(state.conv_row(layer, start + t), &ws_.h[(first + t) * d], d * sizeof(float));
      }
      first += tokens;
    }
  }

  // h = the delta rule's output over every token, head by head.
  void delta_rule(std::span<const ForwardItem> items, std::size_t layer,
                  const RecurrentVectors& recurrent) {
    const std::size_t d = config_.d_model;
    const std::size_t hd = config_.head_dim;
    const float read_scale = 1.0F / std::sqrt(static_cast<float>(hd));
    list_states(items, layer);
    pool_.parallel_for(config_.n_heads, [&](std::size_t head) {
      const kernels::DeltaRule rule{hd,
                                    hd,
                                    recurrent.decay[head],
                                    recurrent.write[head],
                                    read_scale,
                                    config_.read_order == ReadOrder::kAfterDecay};
      const std::size_t offset = head * layout_.head_state();
      std::size_t row = 0;
      for (const ForwardItem& item : items) {
        float* qkv = &ws_.qkv[row * 3 * d + head * hd];
        for (std::size_t t = 0; t < item.tokens.size(); ++t) {
          kernels_.l2_normalize(qkv + t * 3 * d, 1, hd, config_.l2_norm_eps);
          kernels_.l2_normalize(qkv + t * 3 * d + d, 1, hd, config_.l2_norm_eps);
        }
        kernels_.delta_rule(rule, {.count = item.tokens.size(),
                                   .q = qkv,
                                   .k = qkv + d,
                                   .v = qkv + 2 * d,
                                   .stride = 3 * d,
                                   .out = &ws_.h[row * d + head * hd],
                                   .out_stride = d,
                                   .from = state_of(item).recurrent(layer, 0) + offset,
                                   .to = &ws_.states[row],
                                   .to_offset = offset,
                                   .work = ws_.delta_of(head),
                                   .past_caches = states_past_caches_});
        row += item.tokens.size();
      }
    });
    observe(items, layer);
  }

  // Where each token's state of this layer goes: a ring slot each with checkpoints, else only the
  // last one.
  void list_states(std::span<const ForwardItem> items, std::size_t layer) {
    std::size_t row = 0;
    for (const ForwardItem& item : items) {
      HybridState& state = state_of(item);
      const std::size_t tokens = item.tokens.size();
      for (std::size_t t = 0; t < tokens; ++t, ++row) {
        if (item.checkpoints) {
          ws_.states[row] = state.recurrent(layer, t + 1);
        } else {
          ws_.states[row] = t + 1 == tokens ? state.recurrent(layer, 1) : nullptr;
        }
      }
    }
  }

  void observe(std::span<const ForwardItem> items, std::size_t layer) {
    if (observer_ == nullptr) {
      return;
    }
    std::size_t first = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      observer_->on_recurrent(layer_index_[layer], i, items[i].tokens.size(),
                              &ws_.qkv[first * 3 * config_.d_model],
                              std::size_t{3} * config_.d_model);
      first += items[i].tokens.size();
    }
  }

  // h = causal attention's output over every token, head by head.
  void attention(std::span<const ForwardItem> items, std::size_t layer) {
    const std::size_t d = config_.d_model;
    const std::size_t hd = config_.head_dim;
    const std::size_t scratch_stride = ws_.attention.size() / config_.n_heads;
    pool_.parallel_for(config_.n_heads, [&](std::size_t head) {
      float* scratch = &ws_.attention[head * scratch_stride];
      std::size_t row = 0;
      for (const ForwardItem& item : items) {
        HybridState& state = state_of(item);
        float* keys = state.keys(layer, head);
        float* values = state.values(layer, head);
        for (std::size_t t = 0; t < item.tokens.size(); ++t, ++row) {
          const std::size_t position = state.position() + t;
          float* q = &ws_.qkv[row * 3 * d + head * hd];
          float* k = q + d;
          kernels_.l2_normalize(q, 1, hd, config_.l2_norm_eps);
          kernels_.l2_normalize(k, 1, hd, config_.l2_norm_eps);
          kernels_.rope(q, 1, hd, rope_.cos(position), rope_.sin(position));
          kernels_.rope(k, 1, hd, rope_.cos(position), rope_.sin(position));
          kernels_.store_key(keys, position, hd, k);
          std::memcpy(values + position * hd, k + d, hd * sizeof(float));
          const kernels::AttentionHead view{keys, values, position + 1, hd,
                                            config_.attn_logit_scale};
          kernels_.attend(view, q, scratch, &ws_.h[row * d + head * hd]);
        }
      }
    });
  }

  // act = silu(gate) * up
  void swiglu(std::size_t rows) {
    const std::size_t ff = config_.d_ff;
    for_rows(rows, [&](std::size_t row) {
      const float* gate = &ws_.gate_up[row * 2 * ff];
      kernels_.silu_mul(gate, gate + ff, ff, &ws_.act[row * ff]);
    });
  }

  void write_logits(std::span<const ForwardItem> items) {
    const std::size_t d = config_.d_model;
    std::size_t wanted = 0;
    std::size_t first = 0;
    for (const ForwardItem& item : items) {
      const std::size_t count = logit_rows(item);
      for (std::size_t row = first + item.tokens.size() - count; row < first + item.tokens.size();
           ++row, ++wanted) {
        kernels_.rms_norm(&ws_.x[row * d], weights_->shared.final_norm.data(), d,
                          config_.rms_norm_eps, &ws_.h[wanted * d]);
      }
      first += item.tokens.size();
    }
    if (wanted == 0) {
      return;
    }
    const std::size_t vocab = config_.vocab_size;
    project(weights_->shared.lm_head, ws_.h.data(), d, wanted, ws_.logits.data());
    const float* from = ws_.logits.data();
    for (const ForwardItem& item : items) {
      const std::size_t count = logit_rows(item);
      if (count == 0) {
        continue;
      }
      std::memcpy(item.logits, from, count * vocab * sizeof(float));
      from += count * vocab;
    }
  }

  static std::size_t logit_rows(const ForwardItem& item) {
    switch (item.logit_rows) {
      case LogitRows::kNone:
        return 0;
      case LogitRows::kLast:
        return 1;
      case LogitRows::kAll:
        return item.tokens.size();
    }
    return 0;
  }

  std::shared_ptr<const ModelWeights> weights_;
  const std::vector<Layer>& layers_;  ///< Inside weights_.
  bool states_past_caches_;
  const ModelConfig& config_;  ///< Inside weights_.
  const Kernels& kernels_;
  ThreadPool& pool_;
  ModelOptions options_;
  StateLayout layout_;
  std::vector<std::size_t> layer_index_;  ///< [layers], the model's index of each of ours.
  FastProjections fast_;                  ///< Empty unless numerics are fast.
  RopeTable rope_;
  Workspace ws_;
  std::vector<float> zero_row_ = std::vector<float>(config_.d_model);
  ForwardObserver* observer_ = nullptr;
};

}  // namespace

std::unique_ptr<HybridCausalModel> make_target_model(std::shared_ptr<const ModelWeights> weights,
                                                     const Kernels& kernels, ThreadPool& pool,
                                                     const ModelOptions& options) {
  std::vector<std::size_t> index(weights->config.n_layers);
  std::iota(index.begin(), index.end(), std::size_t{0});
  StateLayout layout = make_state_layout(weights->config, options, index);
  const std::vector<TargetLayer>& layers = weights->target;
  FastProjections fast;
  if (options.numerics == Numerics::kFast) {
    fast = FastProjections(*weights);
  }
  return std::make_unique<HybridModel<TargetLayer>>(std::move(weights), layers, kernels, pool,
                                                    options, std::move(layout), std::move(index),
                                                    std::move(fast));
}

std::unique_ptr<HybridCausalModel> make_draft_model(std::shared_ptr<const ModelWeights> weights,
                                                    const Kernels& kernels, ThreadPool& pool,
                                                    const ModelOptions& options) {
  std::vector<std::size_t> index(weights->config.draft_layers.begin(),
                                 weights->config.draft_layers.end());
  StateLayout layout = make_state_layout(weights->config, options, index);
  const std::vector<DraftLayer>& layers = weights->draft;
  return std::make_unique<HybridModel<DraftLayer>>(std::move(weights), layers, kernels, pool,
                                                   options, std::move(layout), std::move(index),
                                                   FastProjections());
}

}  // namespace spel::engine

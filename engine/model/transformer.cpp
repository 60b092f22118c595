#include "engine/model/transformer.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "config/base/error.h"
#include "engine/model/attention.h"
#include "engine/model/delta_net.h"
#include "engine/model/fast_projections.h"
#include "engine/model/rope_table.h"
#include "engine/model/workspace.h"
#include "engine/state/hybrid_state.h"

namespace spel::engine {
namespace {

/// Weights of more bytes than this push a pass's states out of the caches before the next pass
/// reads one of them.
constexpr std::size_t kCacheBytes = std::size_t{32} << 20;

std::size_t matrix_bytes(const TransformerWeights& stack) {
  std::size_t bytes = 0;
  for_each_matrix(stack,
                  [&](const kernels::Matrix& matrix) { bytes += kernels::bytes_of(matrix); });
  return bytes;
}

StateLayout checked_layout(const ModelSpec& spec, const ModelOptions& options) {
  const auto refuse = [](const std::string& what) {
    throw Error(ErrorCode::kInvalidArgument, what);
  };
  const std::size_t max_seq = options.max_seq == 0 ? spec.max_seq : options.max_seq;
  if (max_seq > spec.max_seq) {
    refuse("max_seq " + std::to_string(max_seq) + ": this model was made for at most " +
           std::to_string(spec.max_seq) + " positions");
  }
  if (options.k_max > limits::kSpecKMax) {
    refuse("k_max " + std::to_string(options.k_max) + ": at most " +
           std::to_string(limits::kSpecKMax) + " proposals a round");
  }
  if (options.max_batch_rows < options.k_max + 1) {
    refuse("max_batch_rows " + std::to_string(options.max_batch_rows) +
           ": a round needs k_max + 1 rows");
  }
  return {spec, max_seq, options.k_max + 1};
}

std::size_t logit_rows(const ForwardItem& item) {
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

class Transformer final : public HybridCausalModel {
 public:
  Transformer(std::shared_ptr<const ModelWeights> weights, const TransformerWeights& stack,
              const kernels::Kernels& kernels, kernels::ThreadPool& pool,
              const ModelOptions& options, FastProjections fast)
      : weights_(std::move(weights)),
        stack_(stack),
        states_past_caches_(matrix_bytes(stack) > kCacheBytes),
        kernels_(kernels),
        pool_(pool),
        options_(options),
        layout_(checked_layout(stack.spec, options)),
        fast_(std::move(fast)),
        ws_(stack.spec, options.max_batch_rows, layout_.max_seq) {
    for (const LayerSpec& layer : stack.spec.layers) {
      const auto* attention = std::get_if<AttentionSpec>(&layer.mixer);
      ropes_.push_back(attention != nullptr && attention->rope ? rope_of(*attention->rope)
                                                               : nullptr);
    }
  }

  [[nodiscard]] std::size_t vocab_size() const override { return stack_.spec.vocab_size; }
  [[nodiscard]] std::size_t max_seq() const override { return layout_.max_seq; }
  [[nodiscard]] std::size_t max_checkpoints() const override { return layout_.ring_slots; }
  [[nodiscard]] std::size_t max_batch_rows() const override { return options_.max_batch_rows; }
  [[nodiscard]] std::unique_ptr<SequenceState> make_state() const override {
    return std::make_unique<HybridState>(layout_);
  }
  void set_observer(ForwardObserver* observer) override { observer_ = observer; }
  [[nodiscard]] const ModelSpec& spec() const override { return stack_.spec; }

  void forward(std::span<const ForwardItem> items) override {
    const Pass pass{items, embed(items), stack_.spec, kernels_, pool_, ws_};
    for (std::size_t i = 0; i < stack_.layers.size(); ++i) {
      const LayerWeights& layer = stack_.layers[i];
      const LayerSpec& spec = stack_.spec.layers[i];
      begin_block(pass, spec.norms, layer.input_norm);
      std::visit([&](const auto& mixer) { mix(pass, i, mixer); }, spec.mixer);
      end_block(pass, spec.norms, layer.input_norm);
      begin_block(pass, spec.norms, layer.post_norm);
      feed_forward(pass, i);
      end_block(pass, spec.norms, layer.post_norm);
      if (observer_ != nullptr) {
        observer_->on_layer(i, pass.rows, ws_.x.data());
      }
    }
    for (const ForwardItem& item : items) {
      state_of(item).advance(item.tokens.size(), item.checkpoints);
    }
    write_logits(pass);
  }

 private:
  // Layers of one shape share a table.
  std::shared_ptr<const RopeTable> rope_of(const RopeSpec& spec) const {
    for (std::size_t i = 0; i < ropes_.size(); ++i) {
      const auto* other = std::get_if<AttentionSpec>(&stack_.spec.layers[i].mixer);
      if (other != nullptr && other->rope && other->rope->dims == spec.dims &&
          other->rope->theta == spec.theta) {
        return ropes_[i];
      }
    }
    return std::make_shared<const RopeTable>(layout_.max_seq, spec.dims, spec.theta);
  }

  std::size_t embed(std::span<const ForwardItem> items) {
    const std::size_t d = stack_.spec.d_model;
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

  void normalize(const Pass& pass, const std::vector<float>& weight, const float* from, float* to) {
    const std::size_t d = stack_.spec.d_model;
    pass.for_rows([&](std::size_t row) {
      kernels_.rms_norm(from + row * d, weight.data(), d, stack_.spec.rms_norm_eps, to + row * d);
    });
  }

  // h = rms(x), or x where the norm stands behind.
  void begin_block(const Pass& pass, NormPlace norms, const std::vector<float>& weight) {
    if (norms == NormPlace::kBefore) {
      normalize(pass, weight, ws_.x.data(), ws_.h.data());
    } else {
      std::memcpy(ws_.h.data(), ws_.x.data(), pass.rows * stack_.spec.d_model * sizeof(float));
    }
  }

  // x += mixed, or rms(mixed)
  void end_block(const Pass& pass, NormPlace norms, const std::vector<float>& weight) {
    if (norms == NormPlace::kAfter) {
      normalize(pass, weight, ws_.mixed.data(), ws_.mixed.data());
    }
    kernels_.add(ws_.x.data(), ws_.mixed.data(), pass.rows * stack_.spec.d_model);
  }

  // mixed = out(delta_rule(in(conv(h)))), or the convolution after the projection; then the gated
  // norm, where there is one.
  void mix(const Pass& pass, std::size_t i, const DeltaSpec& spec) {
    const auto& w = std::get<DeltaWeights>(stack_.layers[i].mixer);
    const std::size_t d = stack_.spec.d_model;
    Rows qkv{ws_.in.data(), in_width(spec)};
    if (spec.conv_place == ConvPlace::kInput) {
      convolve(pass, i, spec, w, {ws_.h.data(), d}, {ws_.mixed.data(), d});
      project(pass, w.in, ws_.mixed.data(), ws_.in.data());
    } else {
      project(pass, w.in, ws_.h.data(), ws_.in.data());
      const Rows convolved{ws_.conv.data(), spec.qkv_width()};
      convolve(pass, i, spec, w, {qkv.data, qkv.stride}, convolved);
      qkv = convolved;
    }
    delta_rule(pass, i, spec, w, qkv, states_past_caches_);
    observe(pass, i, qkv);
    if (spec.gated_norm) {
      gate_output(pass, spec, w);
    }
    project(pass, w.out, ws_.h.data(), ws_.mixed.data());
  }

  // mixed = out(attend(in(h)))
  void mix(const Pass& pass, std::size_t i, const AttentionSpec& spec) {
    const auto& w = std::get<AttentionWeights>(stack_.layers[i].mixer);
    project(pass, w.in, ws_.h.data(), ws_.in.data());
    attend(pass, i, spec, w, ropes_[i].get());
    project(pass, w.out, ws_.h.data(), ws_.mixed.data());
  }

  // mixed = down(silu(gate(h)) * up(h))
  void feed_forward(const Pass& pass, std::size_t i) {
    const LayerWeights& layer = stack_.layers[i];
    const std::size_t ff = stack_.spec.layers[i].d_ff;
    project(pass, layer.gate_up, ws_.h.data(), ws_.gate_up.data());
    pass.for_rows([&](std::size_t row) {
      const float* gate = &ws_.gate_up[row * 2 * ff];
      kernels_.silu_mul(gate, gate + ff, ff, &ws_.act[row * ff]);
    });
    project(pass, layer.down, ws_.act.data(), ws_.mixed.data());
  }

  // y = w x for every row of the pass.
  void project(const Pass& pass, const kernels::Matrix& w, const float* x, float* y) {
    std::visit([&](const auto& matrix) { multiply(pass, matrix, x, y); }, w);
  }
  void multiply(const Pass& pass, const kernels::DenseMatrix& w, const float* x, float* y) {
    const kernels::BlasMatrix* fast = pass.rows > 1 ? fast_.find(w) : nullptr;
    if (fast != nullptr) {
      fast->matmul(x, w.cols(), pass.rows, y, w.rows());
    } else {
      kernels_.matmul(pool_, w, x, w.cols(), pass.rows, y, w.rows());
    }
  }
  void multiply(const Pass& pass, const kernels::Int8Matrix& w, const float* x, float* y) {
    kernels_.matmul(pool_, w, quantize(pass, x, w.cols()), pass.rows, y, w.rows());
  }
  void multiply(const Pass& pass, const kernels::TernaryMatrix& w, const float* x, float* y) {
    kernels_.matmul(pool_, w, quantize(pass, x, w.cols()), pass.rows, y, w.rows(),
                    options_.ternary);
  }

  kernels::QuantizedRows quantize(const Pass& pass, const float* x, std::size_t cols) {
    const std::size_t stride = round_up(cols, 64);
    const kernels::QuantizedRows out{ws_.quantized.data(), ws_.quantized_scales.data(), stride};
    pass.for_rows([&](std::size_t row) {
      kernels_.quantize_row(x + row * cols, cols, out.values + row * stride, stride,
                            out.scales + row);
    });
    return out;
  }

  void observe(const Pass& pass, std::size_t layer, Rows qkv) {
    if (observer_ == nullptr) {
      return;
    }
    std::size_t first = 0;
    for (std::size_t i = 0; i < pass.items.size(); ++i) {
      const std::size_t tokens = pass.items[i].tokens.size();
      observer_->on_recurrent(layer, i, tokens, qkv[first], qkv.stride);
      first += tokens;
    }
  }

  void write_logits(const Pass& pass) {
    const std::size_t d = stack_.spec.d_model;
    std::size_t wanted = 0;
    std::size_t first = 0;
    for (const ForwardItem& item : pass.items) {
      const std::size_t end = first + item.tokens.size();
      for (std::size_t row = end - logit_rows(item); row < end; ++row, ++wanted) {
        kernels_.rms_norm(&ws_.x[row * d], weights_->shared.final_norm.data(), d,
                          stack_.spec.rms_norm_eps, &ws_.h[wanted * d]);
      }
      first = end;
    }
    if (wanted == 0) {
      return;
    }
    const Pass head{pass.items, wanted, stack_.spec, kernels_, pool_, ws_};
    multiply(head, weights_->shared.lm_head, ws_.h.data(), ws_.logits.data());
    const float* from = ws_.logits.data();
    for (const ForwardItem& item : pass.items) {
      const std::size_t values = logit_rows(item) * stack_.spec.vocab_size;
      if (values > 0) {
        std::memcpy(item.logits, from, values * sizeof(float));
        from += values;
      }
    }
  }

  std::shared_ptr<const ModelWeights> weights_;
  const TransformerWeights& stack_;  ///< Inside weights_.
  bool states_past_caches_;
  const kernels::Kernels& kernels_;
  kernels::ThreadPool& pool_;
  ModelOptions options_;
  StateLayout layout_;
  FastProjections fast_;  ///< Empty unless numerics are fast.
  Workspace ws_;
  std::vector<std::shared_ptr<const RopeTable>> ropes_;  ///< [layers], null where nothing turns.
  ForwardObserver* observer_ = nullptr;
};

}  // namespace

std::unique_ptr<HybridCausalModel> make_target_model(std::shared_ptr<const ModelWeights> weights,
                                                     const kernels::Kernels& kernels,
                                                     kernels::ThreadPool& pool,
                                                     const ModelOptions& options) {
  FastProjections fast;
  if (options.numerics == Numerics::kFast) {
    fast = FastProjections(*weights);
  }
  const TransformerWeights& stack = weights->target;
  return std::make_unique<Transformer>(std::move(weights), stack, kernels, pool, options,
                                       std::move(fast));
}

std::unique_ptr<HybridCausalModel> make_draft_model(std::shared_ptr<const ModelWeights> weights,
                                                    const kernels::Kernels& kernels,
                                                    kernels::ThreadPool& pool,
                                                    const ModelOptions& options) {
  const TransformerWeights& stack = weights->draft.value();
  return std::make_unique<Transformer>(std::move(weights), stack, kernels, pool, options,
                                       FastProjections());
}

}  // namespace spel::engine

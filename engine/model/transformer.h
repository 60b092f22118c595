// The forward pass: a stack of layers between an embedding and a head. Target and draft are the
// same stack over different forms of matrices.
#pragma once

#include <cstddef>
#include <memory>

#include "config/base/limits.h"
#include "engine/model/causal_model.h"
#include "engine/model/weights.h"
#include "kernels/kernels.h"
#include "kernels/thread_pool.h"

namespace spel::engine {

/// Sees the native queries and keys of the recurrent layers as the pass computes them; NoteBank
/// captures its addresses here. Called on the engine thread, once per (recurrent layer, item), and
/// once per layer.
class ForwardObserver {
 public:
  virtual ~ForwardObserver() = default;
  /// `layer` is the stack's layer index, `item` the item's index in the forward() call. Token t's
  /// query is qkv[t * row_stride + key_head * key_dim], its key lies key_heads * key_dim further;
  /// both are L2-normalised. Valid during the call only.
  virtual void on_recurrent(std::size_t layer, std::size_t item, std::size_t tokens,
                            const float* qkv, std::size_t row_stride) = 0;
  /// The stream after a layer: [rows][d_model], all items' tokens in order. Valid during the call.
  virtual void on_layer(std::size_t /*layer*/, std::size_t /*rows*/, const float* /*x*/) {}
};

/// strict: the engine's own kernels, the same bits whatever the company. fast: the target's passes
/// of more than one row go through a BLAS, for comparison; the same tokens as a rule, other bits.
enum class Numerics { kStrict, kFast };

struct ModelOptions {
  std::size_t max_seq = 0;  ///< Positions a state holds; 0: the model's own.
  std::size_t k_max = limits::kSpecKMax;
  std::size_t max_batch_rows = 256;
  /// How ternary rows are multiplied, where there are any.
  kernels::TernaryKernel ternary = kernels::TernaryKernel::kDotprod;
  /// Target only. kFast holds a second copy of the weights, in f32.
  Numerics numerics = Numerics::kStrict;
};

/// A hybrid model with an observer seat.
class HybridCausalModel : public CausalModel {
 public:
  /// nullptr removes it. Not owned.
  virtual void set_observer(ForwardObserver* observer) = 0;
  [[nodiscard]] virtual const ModelSpec& spec() const = 0;
};

/// `kernels` and `pool` are kept by reference and must outlive the model. Throws
/// Error(kInvalidArgument) for options outside limits.h, a max_seq above the weights', or kFast in
/// a build without a BLAS.
[[nodiscard]] std::unique_ptr<HybridCausalModel> make_target_model(
    std::shared_ptr<const ModelWeights> weights, const kernels::Kernels& kernels,
    kernels::ThreadPool& pool, const ModelOptions& options);

/// The same over the draft's layers, of weights that have a draft.
[[nodiscard]] std::unique_ptr<HybridCausalModel> make_draft_model(
    std::shared_ptr<const ModelWeights> weights, const kernels::Kernels& kernels,
    kernels::ThreadPool& pool, const ModelOptions& options);

}  // namespace spel::engine

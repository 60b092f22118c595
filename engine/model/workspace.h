// The buffers of a forward pass.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/model/config.h"
#include "kernels/matrix.h"

namespace spel::engine {

[[nodiscard]] constexpr std::size_t round_up(std::size_t n, std::size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

/// Buffers of one pass, allocated once for the largest batch.
struct Workspace {
  Workspace(const ModelConfig& config, std::size_t rows, std::size_t max_seq)
      : x(rows * config.d_model),
        h(rows * config.d_model),
        mixed(rows * config.d_model),
        qkv(rows * 3 * config.d_model),
        gate_up(rows * 2 * config.d_ff),
        act(rows * config.d_ff),
        logits(rows * config.vocab_size),
        states(rows),
        delta_stride(round_up(16 * config.head_dim, 16)),
        delta(config.n_heads * delta_stride * sizeof(float)),
        attention(config.n_heads * round_up(max_seq, 16)),
        quantized_stride(round_up(std::max(config.d_model, config.d_ff), 64)),
        quantized(rows * quantized_stride),
        quantized_scales(rows) {}

  [[nodiscard]] float* delta_of(std::size_t head) {
    return reinterpret_cast<float*>(delta.data()) + head * delta_stride;
  }

  std::vector<float> x;        ///< [rows][d_model], the residual stream.
  std::vector<float> h;        ///< [rows][d_model], normalised input of a block.
  std::vector<float> mixed;    ///< [rows][d_model], a block's inner or outer result.
  std::vector<float> qkv;      ///< [rows][3 * d_model]
  std::vector<float> gate_up;  ///< [rows][2 * d_ff]
  std::vector<float> act;      ///< [rows][d_ff]
  std::vector<float> logits;   ///< [rows][vocab]
  std::vector<float*> states;  ///< [rows], where a layer's state after each token is kept.
  std::size_t delta_stride;
  kernels::AlignedBuffer delta;  ///< [n_heads][delta_stride] floats, scratch of delta_rule().
  std::vector<float> attention;  ///< [n_heads][max_seq], scratch of attend().
  std::size_t quantized_stride;
  std::vector<std::int8_t> quantized;  ///< [rows][quantized_stride], draft only.
  std::vector<float> quantized_scales;
};

}  // namespace spel::engine

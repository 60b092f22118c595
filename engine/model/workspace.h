// One forward pass: what it runs over, and its buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/causal_model.h"
#include "engine/model/spec.h"
#include "kernels/kernels.h"
#include "kernels/matrix.h"
#include "kernels/thread_pool.h"

namespace spel::engine {

[[nodiscard]] constexpr std::size_t round_up(std::size_t n, std::size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

/// Rows of values, `stride` apart.
struct Rows {
  float* data;
  std::size_t stride;

  [[nodiscard]] float* operator[](std::size_t row) const { return data + row * stride; }
};
struct ConstRows {
  const float* data;
  std::size_t stride;

  [[nodiscard]] const float* operator[](std::size_t row) const { return data + row * stride; }
};

class HybridState;

/// A row that attention in blocks works on, among those it works on at once.
struct AttentionRow {
  HybridState* state;
  std::size_t positions;   ///< Attended to.
  std::size_t first_task;  ///< Its (key-value head, block) pairs begin here.
};

/// Allocated once, for the widest layer and the largest batch. Where a row is narrower than the
/// widest, rows still follow each other without gaps.
struct Workspace {
  Workspace(const ModelSpec& spec, std::size_t rows, std::size_t max_seq);

  /// Scratch of delta_rule() for one key head, and of attend() for one head.
  [[nodiscard]] float* delta_of(std::size_t head);
  [[nodiscard]] float* attention_of(std::size_t head);

  std::vector<float> x;        ///< [rows][d_model], the residual stream.
  std::vector<float> h;        ///< [rows], normalised input of a block, or a mixer's inner result.
  std::vector<float> mixed;    ///< [rows], the convolved input of a mixer, or a block's output.
  std::vector<float> in;       ///< [rows][in_width]
  std::vector<float> conv;     ///< [rows][qkv_width], where the projection is convolved.
  std::vector<float> decay;    ///< [rows][value_heads], where gates come from the input.
  std::vector<float> write;    ///< The same.
  std::vector<float> gate_up;  ///< [rows][2 * d_ff]
  std::vector<float> act;      ///< [rows][d_ff]
  std::vector<float> logits;   ///< [rows][vocab]
  std::vector<float*> states;  ///< [rows], where a layer's state after each token is kept.
  std::vector<float> zeros;    ///< [conv_width]: what a convolution sees before the text.
  std::size_t delta_stride = 0;
  kernels::AlignedBuffer delta;  ///< [key_heads][delta_stride] floats
  std::size_t attention_stride = 0;
  std::vector<float> attention;              ///< [heads][attention_stride], all at once.
  std::vector<AttentionRow> attention_rows;  ///< As many as have room for their parts at once.
  std::vector<float> attention_parts;        ///< [those rows][heads][blocks][head_dim + 2]
  std::vector<std::int8_t> quantized;        ///< [rows], each as wide as the widest input, padded.
  std::vector<float> quantized_scales;       ///< [rows]
};

/// What the parts of a forward pass share.
struct Pass {
  std::span<const ForwardItem> items;
  std::size_t rows = 0;  ///< Over all items.
  const ModelSpec& spec;
  const kernels::Kernels& kernels;
  kernels::ThreadPool& pool;
  Workspace& ws;

  /// Calls body(row) for every row, over the pool where that pays.
  template <typename Body>
  void for_rows(const Body& body) const {
    // Fewer rows than this are done before other threads have woken up.
    constexpr std::size_t kRowsWorthSplitting = 16;
    if (rows < kRowsWorthSplitting) {
      for (std::size_t row = 0; row < rows; ++row) {
        body(row);
      }
    } else {
      pool.parallel_for(rows, body);
    }
  }
};

}  // namespace spel::engine

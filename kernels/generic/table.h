// The table of the including file, built from its own copies of the generic bodies.
#pragma once

#include "kernels/generic/attention_blocks.h"
#include "kernels/generic/choose.h"
#include "kernels/generic/dense.h"
#include "kernels/generic/low_bit.h"
#include "kernels/generic/mixers.h"
#include "kernels/generic/search.h"

namespace spel::kernels {
namespace {

constexpr FunctionTable make_table() {
  return {.dense_tile_rows = kDenseTileRows,
          .ternary_tile_rows = kTernaryTileRows,
          .dense_panel_group = dense_panel_group,
          .ternary_panel_group = ternary_panel_group,
          .pack_rows = pack_rows,
          .sum_int8 = sum_int8,
          .matmul_f32 = matmul_f32,
          .matmul_bf16 = matmul_bf16,
          .matmul_int8 = matmul_int8,
          .matmul_ternary_dotprod = matmul_ternary_dotprod,
          .matmul_ternary_addsub = matmul_ternary_addsub,
          .matmul_ternary_scalar = matmul_ternary_scalar,
          .quantize_row = quantize_row,
          .rms_norm = rms_norm,
          .l2_normalize = l2_normalize,
          .rope = rope,
          .rope_halves = rope_halves,
          .short_conv = short_conv,
          .silu = silu,
          .silu_mul = silu_mul,
          .add = add_rows,
          .sigmoid = sigmoid,
          .sigmoid_mul = sigmoid_mul,
          .exp_sum = exp_sum,
          .argmax = argmax,
          .delta_rule = delta_rule,
          .store_key = store_key,
          .attend = attend,
          .delta_gates = delta_gates,
          .attend_block = attend_block,
          .merge_attention = merge_attention,
          .bf16_dots = bf16_dots,
          .bf16_alignment = bf16_alignment,
          .coarse_alignments = coarse_alignments,
          .ordered_dots = ordered_dots,
          .unit_rows = unit_rows,
          .project = project,
          .block_max = block_max,
          .places_at_least = places_at_least,
          .race = race,
          .softmax_sum = softmax_sum,
          .exp_f64 = exp_f64};
}

}  // namespace
}  // namespace spel::kernels

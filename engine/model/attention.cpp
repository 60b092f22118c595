#include "engine/model/attention.h"

#include <algorithm>
#include <cstring>

#include "engine/state/hybrid_state.h"

namespace spel::engine {
namespace {

/// A token of the pass, the memory it belongs to and its place there.
struct Token {
  HybridState& state;
  std::size_t position;
};

/// body(row, token) for the rows [begin, end) of the pass.
template <typename Body>
void for_tokens(const Pass& pass, std::size_t begin, std::size_t end, const Body& body) {
  std::size_t row = 0;
  for (const ForwardItem& item : pass.items) {
    HybridState& state = state_of(item);
    const std::size_t last = std::min(end, row + item.tokens.size());
    for (std::size_t at = std::max(begin, row); at < last; ++at) {
      body(at, Token{state, state.position() + at - row});
    }
    row += item.tokens.size();
  }
}

/// q and k of one token, as they come from the projection, to what is compared.
class Preparation {
 public:
  Preparation(const Pass& pass, const AttentionSpec& spec, const AttentionWeights& w,
              const RopeTable* rope)
      : kernels_(pass.kernels), spec_(spec), w_(w), rope_(rope) {}

  /// `heads` heads that follow one another, the first of all at `first`.
  void run(float* x, std::size_t heads, const std::vector<float>& weights,
           std::size_t position) const {
    normalise(x, heads, weights);
    if (rope_ == nullptr) {
      return;
    }
    const float* cos = rope_->cos(position);
    const float* sin = rope_->sin(position);
    if (spec_.rope->pairs == RopePairs::kNeighbours) {
      kernels_.rope(x, heads, spec_.head_dim, cos, sin);
    } else {
      kernels_.rope_halves(x, heads, spec_.head_dim, spec_.rope->dims, cos, sin);
    }
  }
  void queries(float* q, std::size_t heads, std::size_t position) const {
    run(q, heads, w_.q_norm, position);
  }
  void keys(float* k, std::size_t heads, std::size_t position) const {
    run(k, heads, w_.k_norm, position);
  }

 private:
  void normalise(float* x, std::size_t heads, const std::vector<float>& weights) const {
    const std::size_t hd = spec_.head_dim;
    switch (spec_.qk_norm) {
      case QkNorm::kLength:
        kernels_.l2_normalize(x, heads, hd, spec_.qk_norm_eps);
        return;
      case QkNorm::kRmsHead:
        for (std::size_t head = 0; head < heads; ++head) {
          kernels_.rms_norm(x + head * hd, weights.data(), hd, spec_.qk_norm_eps, x + head * hd);
        }
        return;
      case QkNorm::kRmsWidth:
        kernels_.rms_norm(x, weights.data(), heads * hd, spec_.qk_norm_eps, x);
        return;
    }
  }

  const kernels::Kernels& kernels_;
  const AttentionSpec& spec_;
  const AttentionWeights& w_;
  const RopeTable* rope_;
};

void store(const Pass& pass, std::size_t layer, const AttentionSpec& spec, std::size_t head,
           const Token& token, const float* k, const float* v) {
  const std::size_t hd = spec.head_dim;
  pass.kernels.store_key(token.state.keys(layer, head), token.position, hd, k);
  std::memcpy(token.state.values(layer, head) + token.position * hd, v, hd * sizeof(float));
}

/// One head after the other, each over all positions at once: as many threads as heads.
void attend_whole(const Pass& pass, std::size_t layer, const AttentionSpec& spec,
                  const Preparation& prepare) {
  Workspace& ws = pass.ws;
  const std::size_t hd = spec.head_dim;
  const std::size_t width = spec.queries_width();
  const std::size_t stride = in_width(spec);
  pass.pool.parallel_for(spec.heads, [&](std::size_t head) {
    float* scratch = ws.attention_of(head);
    for_tokens(pass, 0, pass.rows, [&](std::size_t row, const Token& token) {
      float* q = &ws.in[row * stride + head * hd];
      float* k = q + width;
      prepare.queries(q, 1, token.position);
      prepare.keys(k, 1, token.position);
      store(pass, layer, spec, head, token, k, k + width);
      const kernels::AttentionHead view{token.state.keys(layer, head),
                                        token.state.values(layer, head), token.position + 1, hd,
                                        spec.logit_scale};
      pass.kernels.attend(view, q, scratch, &ws.h[row * width + head * hd]);
    });
  });
}

std::size_t blocks_of(std::size_t positions) {
  return (positions + kernels::kAttentionBlock - 1) / kernels::kAttentionBlock;
}

/// The rows [begin, end), as many as have room for their parts at once.
void attend_rows(const Pass& pass, std::size_t layer, const AttentionSpec& spec, std::size_t begin,
                 std::size_t end) {
  Workspace& ws = pass.ws;
  const std::size_t hd = spec.head_dim;
  const std::size_t width = spec.queries_width();
  const std::size_t stride = in_width(spec);
  const std::size_t group = spec.heads / spec.kv_heads;
  const std::size_t part = hd + 2;
  // Parts are [row][head][block]. A task is one block of one key-value head for all of its queries.
  std::size_t tasks = 0;
  for_tokens(pass, begin, end, [&](std::size_t row, const Token& token) {
    ws.attention_rows[row - begin] = {&token.state, token.position + 1, tasks};
    tasks += blocks_of(token.position + 1) * spec.kv_heads;
  });
  const std::span<const AttentionRow> rows = std::span(ws.attention_rows).first(end - begin);
  const auto parts_of = [&](std::size_t row, std::size_t head) {
    return &ws.attention_parts[(rows[row].first_task * group +
                                head * blocks_of(rows[row].positions)) *
                               part];
  };
  pass.pool.parallel_for(tasks, [&](std::size_t task) {
    const auto after = std::ranges::upper_bound(rows, task, {}, &AttentionRow::first_task);
    const auto row = static_cast<std::size_t>(after - rows.begin() - 1);
    const std::size_t blocks = blocks_of(rows[row].positions);
    const std::size_t kv_head = (task - rows[row].first_task) / blocks;
    const std::size_t block = (task - rows[row].first_task) % blocks;
    const std::size_t from = block * kernels::kAttentionBlock;
    const kernels::AttentionBlock view{
        .keys = rows[row].state->keys(layer, kv_head) + from * hd,
        .values = rows[row].state->values(layer, kv_head) + from * hd,
        .positions = std::min(kernels::kAttentionBlock, rows[row].positions - from),
        .head_dim = hd,
        .logit_scale = spec.logit_scale};
    pass.kernels.attend_block(view, &ws.in[(begin + row) * stride + kv_head * group * hd], hd,
                              group, parts_of(row, kv_head * group) + block * part, blocks * part);
  });
  pass.pool.parallel_for((end - begin) * spec.heads, [&](std::size_t task) {
    const std::size_t row = task / spec.heads;
    const std::size_t head = task % spec.heads;
    pass.kernels.merge_attention(parts_of(row, head), part, blocks_of(rows[row].positions), hd,
                                 &ws.h[(begin + row) * width + head * hd]);
  });
}

/// In fixed blocks of positions: work for any number of threads, whatever the number of heads.
void attend_blocks(const Pass& pass, std::size_t layer, const AttentionSpec& spec,
                   const Preparation& prepare) {
  Workspace& ws = pass.ws;
  const std::size_t hd = spec.head_dim;
  const std::size_t stride = in_width(spec);
  for_tokens(pass, 0, pass.rows, [&](std::size_t row, const Token& token) {
    float* q = &ws.in[row * stride];
    float* k = q + spec.queries_width();
    const float* v = k + spec.keys_width();
    prepare.queries(q, spec.heads, token.position);
    prepare.keys(k, spec.kv_heads, token.position);
    for (std::size_t head = 0; head < spec.kv_heads; ++head) {
      store(pass, layer, spec, head, token, k + head * hd, v + head * hd);
    }
  });
  for (std::size_t begin = 0; begin < pass.rows; begin += ws.attention_rows.size()) {
    attend_rows(pass, layer, spec, begin, std::min(pass.rows, begin + ws.attention_rows.size()));
  }
}

}  // namespace

void attend(const Pass& pass, std::size_t layer, const AttentionSpec& spec,
            const AttentionWeights& w, const RopeTable* rope) {
  const Preparation prepare(pass, spec, w, rope);
  if (spec.in_blocks) {
    attend_blocks(pass, layer, spec, prepare);
  } else {
    attend_whole(pass, layer, spec, prepare);
  }
  if (!spec.output_gate) {
    return;
  }
  const std::size_t width = spec.queries_width();
  const std::size_t stride = in_width(spec);
  pass.for_rows([&](std::size_t row) {
    float* out = &pass.ws.h[row * width];
    pass.kernels.sigmoid_mul(&pass.ws.in[(row + 1) * stride - width], out, width, out);
  });
}

}  // namespace spel::engine

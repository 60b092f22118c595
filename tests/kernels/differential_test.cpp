// Every function of the table on random shapes, lengths, alignments and values, subnormals,
// infinities and NaN among them: each set must give the bits of the scalar one.
//
// SPEL_FUZZ_SECONDS makes it run longer, SPEL_FUZZ_SEED begin with another case.
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory>
#include <set>

#include "kernels/function_table.h"
#include "tests/kernels/support.h"

namespace spel::kernels {
namespace {

constexpr double kSecondsDefault = 2.0;
/// Of what lies around an output, to see that nothing is written there.
constexpr std::size_t kGuard = 17;
constexpr std::uint32_t kGuardWord = 0xABADCAFE;

/// What a function wrote. Of a NaN neither sign nor payload is promised.
class Output {
 public:
  void add(float value) {
    words_.push_back(std::isnan(value) ? std::bit_cast<std::uint32_t>(std::nanf(""))
                                       : std::bit_cast<std::uint32_t>(value));
  }
  template <class T>
  void add_integer(T value) {
    words_.push_back(static_cast<std::uint32_t>(value));
  }
  friend bool operator==(const Output&, const Output&) = default;

  /// The first place two outputs differ at.
  [[nodiscard]] std::string difference(const Output& found) const {
    for (std::size_t i = 0; i < std::min(words_.size(), found.words_.size()); ++i) {
      if (words_[i] != found.words_[i]) {
        return "word " + std::to_string(i) + ": expected " + word(words_[i]) + ", found " +
               word(found.words_[i]);
      }
    }
    return "sizes differ";
  }

 private:
  static std::string word(std::uint32_t bits) {
    return std::to_string(bits) + " (" + std::to_string(std::bit_cast<float>(bits)) + ")";
  }
  std::vector<std::uint32_t> words_;
};

/// Values at any alignment of their type; the allocation ends with the last one, so that a
/// sanitizer sees a read beyond it.
template <class T>
class Values {
 public:
  Values(std::size_t offset, std::size_t size)
      : offset_(offset), size_(size), all_(new T[offset + size]()) {}
  [[nodiscard]] T* data() { return all_.get() + offset_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return all_[offset_ + i]; }

 private:
  std::size_t offset_;
  std::size_t size_;
  std::unique_ptr<T[]> all_;  // NOLINT(*-avoid-c-arrays)
};

/// The inputs of one case: the same for every set, whatever it has done before.
class Draw {
 public:
  explicit Draw(std::uint32_t seed) : random_(seed), kind_(random_.integer(0, 2)) {}

  std::size_t size(std::size_t low, std::size_t high) {
    return static_cast<std::size_t>(random_.integer(static_cast<int>(low), static_cast<int>(high)));
  }
  /// Often a multiple of 16 or next to one, where vectors end.
  std::size_t length(std::size_t low, std::size_t high) {
    std::size_t n = size(low, high);
    if (size(0, 1) == 0) {
      n = n / 16 * 16 + size(0, 2);
      n = n == 0 ? 1 : n - 1;
    }
    return std::clamp(n, low, high);
  }
  bool coin() { return size(0, 1) == 0; }
  int integer(int low, int high) { return random_.integer(low, high); }

  /// By case ordinary, of all magnitudes, or special ones in between.
  float value() {
    const float ordinary = random_.normal();
    if (kind_ == 0) {
      return ordinary;
    }
    if (kind_ == 1 || random_.integer(0, 7) > 0) {
      return std::ldexp(ordinary, random_.integer(-40, 40));
    }
    static constexpr float kInf = std::numeric_limits<float>::infinity();
    static constexpr std::array kSpecial{
        0.0F,   -0.0F,   kInf,     -kInf,   std::numeric_limits<float>::quiet_NaN(),
        1e-45F, -1e-40F, 1.2e-38F, 3.4e38F, -3.4e38F,
        88.5F,  -103.9F, 127.0F,   0.5F,    1.5F};
    return kSpecial[size(0, kSpecial.size() - 1)];
  }
  Values<float> values(std::size_t n) {
    Values<float> result(size(0, 15), n);
    for (std::size_t i = 0; i < n; ++i) {
      result[i] = value();
    }
    return result;
  }
  std::vector<float> bf16_exact(std::size_t n) {
    std::vector<float> result(n);
    for (float& v : result) {
      v = to_bf16_exact(value());
    }
    return result;
  }
  Values<std::uint16_t> bf16(std::size_t n) {
    Values<std::uint16_t> result(size(0, 31), n);
    for (std::size_t i = 0; i < n; ++i) {
      result[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value()) >> 16);
    }
    return result;
  }
  template <class T>
  Values<T> integers(std::size_t n, int low, int high) {
    Values<T> result(size(0, 63), n);
    for (std::size_t i = 0; i < n; ++i) {
      result[i] = static_cast<T>(random_.integer(low, high));
    }
    return result;
  }

 private:
  Random random_;
  int kind_;
};

/// Where a function writes `n` floats, with guards around them.
class Written {
 public:
  Written(Draw& draw, std::size_t n) : before_(kGuard + draw.size(0, 15)), values_(before_ + n) {
    values_.resize(before_ + n + kGuard);
    std::fill(values_.begin(), values_.end(), std::bit_cast<float>(kGuardWord));
  }
  /// Beginning with what is there.
  Written(Draw& draw, Values<float>& from) : Written(draw, from.size()) {
    std::copy_n(from.data(), from.size(), data());
  }
  [[nodiscard]] float* data() { return values_.data() + before_; }
  void add_to(Output& out) const {
    for (const float value : values_) {
      out.add(value);
    }
  }

 private:
  std::size_t before_;
  std::vector<float> values_;
};

/// Activation rows as the products take them.
class Packed {
 public:
  Packed(const FunctionTable& table, const void* x, std::size_t stride_bytes, std::size_t rows,
         std::size_t words, std::size_t tile_rows)
      : words_(rows * words), rows_{x, rows, tile_rows} {
    if (rows > 1) {
      table.pack_rows(x, stride_bytes, rows, words, tile_rows, words_.data());
      rows_.words = words_.data();
    }
  }
  [[nodiscard]] const PackedRows& rows() const { return rows_; }

 private:
  std::vector<std::uint32_t> words_;
  PackedRows rows_;
};

// --- One function each: draw inputs, call it, keep what it wrote --------------------------------

void pack_rows(const FunctionTable& table, Draw& draw, Output& out) {
  const std::size_t rows = draw.size(1, 30);
  const std::size_t words = draw.length(1, 70);
  const std::size_t stride = words + draw.size(0, 3);
  auto x = draw.integers<std::uint32_t>(rows * stride, 0, std::numeric_limits<int>::max());
  std::vector<std::uint32_t> packed(rows * words + kGuard, kGuardWord);
  table.pack_rows(x.data(), 4 * stride, rows, words, draw.size(1, 12), packed.data());
  for (const std::uint32_t word : packed) {
    out.add_integer(word);
  }
}

void sum_int8(const FunctionTable& table, Draw& draw, Output& out) {
  auto x = draw.integers<std::int8_t>(draw.length(1, 300), -128, 127);
  out.add_integer(table.sum_int8(x.data(), x.size()));
}

void dense(const FunctionTable& table, DenseFn fn, DenseType type, Draw& draw, Output& out) {
  const std::size_t rows = draw.length(1, 150);
  const std::size_t cols = draw.length(1, 200);
  const std::size_t m = draw.size(1, 20);
  const DenseMatrix w(draw.bf16_exact(rows * cols), rows, cols, type);
  auto x = draw.values(m * cols);
  const std::size_t y_stride = rows + draw.size(0, 3);
  Written y(draw, m * y_stride);
  const Packed packed(table, x.data(), 4 * cols, m, cols, table.dense_tile_rows);
  const DenseJob job{.panels = w.panel(0),
                     .panel_bytes = w.panel_bytes(),
                     .rows = rows,
                     .cols = cols,
                     .x = packed.rows(),
                     .y = y.data(),
                     .y_stride = y_stride};
  const std::size_t middle = draw.size(0, w.panels());
  fn(job, 0, middle);
  fn(job, middle, w.panels());
  y.add_to(out);
}
void matmul_f32(const FunctionTable& table, Draw& draw, Output& out) {
  dense(table, table.matmul_f32, DenseType::kF32, draw, out);
}
void matmul_bf16(const FunctionTable& table, Draw& draw, Output& out) {
  dense(table, table.matmul_bf16, DenseType::kBf16, draw, out);
}

/// `words` of each row are read.
template <class Matrix>
void low_bit(const FunctionTable& table, LowBitFn fn, std::size_t tile_rows, const Matrix& w,
             std::size_t groups, std::size_t words, Draw& draw, Output& out) {
  const std::size_t m = draw.size(1, 20);
  const std::size_t stride = (4 * words + 63) / 64 * 64;
  auto x = draw.integers<std::int8_t>(m * stride, -127, 127);
  for (std::size_t i = 0; i < m; ++i) {
    std::fill(x.data() + i * stride + w.cols(), x.data() + (i + 1) * stride, std::int8_t{0});
  }
  std::vector<std::int32_t> sums(m);
  for (std::size_t i = 0; i < m; ++i) {
    sums[i] = table.sum_int8(x.data() + i * stride, stride);
  }
  auto scales = draw.values(m);
  const std::size_t y_stride = w.rows() + draw.size(0, 3);
  Written y(draw, m * y_stride);
  const Packed packed(table, x.data(), stride, m, words, tile_rows);
  const LowBitJob job{.panels = w.packed().data(),
                      .groups = groups,
                      .rows = w.rows(),
                      .x = packed.rows(),
                      .x_sums = sums.data(),
                      .x_scales = scales.data(),
                      .row_scales = w.scales(),
                      .y = y.data(),
                      .y_stride = y_stride};
  const std::size_t panels = (w.rows() + kLanes - 1) / kLanes;
  const std::size_t middle = draw.size(0, panels);
  fn(job, 0, middle);
  fn(job, middle, panels);
  y.add_to(out);
}
void matmul_int8(const FunctionTable& table, Draw& draw, Output& out) {
  const std::size_t rows = draw.length(1, 150);
  const std::size_t cols = draw.length(1, 200);
  auto weights = draw.integers<std::int8_t>(rows * cols, -127, 127);
  auto scales = draw.values(rows);
  const Int8Matrix w({weights.data(), weights.size()}, {scales.data(), rows}, rows, cols);
  const std::size_t groups = (cols + 3) / 4;
  low_bit(table, table.matmul_int8, table.dense_tile_rows, w, groups, groups, draw, out);
}
void ternary(const FunctionTable& table, LowBitFn fn, Draw& draw, Output& out) {
  const std::size_t rows = draw.length(1, 150);
  const std::size_t cols = 4 * draw.size(1, 50);
  auto codes = draw.integers<std::uint8_t>(rows * cols / 4, 0, 255);
  auto scales = draw.values(rows);
  const TernaryMatrix w({codes.data(), codes.size()}, {scales.data(), rows}, rows, cols);
  const std::size_t groups = (cols + 15) / 16;
  low_bit(table, fn, table.ternary_tile_rows, w, groups, 4 * groups, draw, out);
}
void matmul_ternary_dotprod(const FunctionTable& table, Draw& draw, Output& out) {
  ternary(table, table.matmul_ternary_dotprod, draw, out);
}
void matmul_ternary_addsub(const FunctionTable& table, Draw& draw, Output& out) {
  ternary(table, table.matmul_ternary_addsub, draw, out);
}
void matmul_ternary_scalar(const FunctionTable& table, Draw& draw, Output& out) {
  ternary(table, table.matmul_ternary_scalar, draw, out);
}

void quantize_row(const FunctionTable& table, Draw& draw, Output& out) {
  const std::size_t n = draw.length(1, 300);
  const std::size_t stride = (n + 63) / 64 * 64;
  auto x = draw.values(n);
  auto q = draw.integers<std::int8_t>(stride + kGuard, 1, 1);
  float scale = 0.0F;
  table.quantize_row(x.data(), n, q.data(), stride, &scale);
  out.add(scale);
  for (std::size_t i = 0; i < q.size(); ++i) {
    out.add_integer(q[i]);
  }
}

void rms_norm(const FunctionTable& table, Draw& draw, Output& out) {
  const std::size_t n = draw.length(1, 300);
  auto x = draw.values(n);
  auto w = draw.values(n);
  Written y(draw, x);
  table.rms_norm(draw.coin() ? x.data() : y.data(), w.data(), n, 1e-5F, y.data());
  y.add_to(out);
}

void l2_normalize(const FunctionTable& table, Draw& draw, Output& out) {
  const std::size_t heads = draw.size(1, 5);
  const std::size_t dim = draw.length(1, 150);
  auto from = draw.values(heads * dim);
  Written x(draw, from);
  table.l2_normalize(x.data(), heads, dim, 1e-6F);
  x.add_to(out);
}

void rope(const FunctionTable& table, Draw& draw, Output& out) {
  const std::size_t heads = draw.size(1, 5);
  const std::size_t dim = 2 * draw.length(1, 70);
  auto from = draw.values(heads * dim);
  auto cosines = draw.values(dim / 2);
  auto sines = draw.values(dim / 2);
  Written x(draw, from);
  table.rope(x.data(), heads, dim, cosines.data(), sines.data());
  x.add_to(out);
}

void short_conv(const FunctionTable& table, Draw& draw, Output& out) {
  const std::size_t taps = draw.size(1, 5);
  const std::size_t n = draw.length(1, 200);
  std::vector<Values<float>> inputs;
  std::vector<const float*> rows;
  for (std::size_t tap = 0; tap < taps; ++tap) {
    inputs.push_back(draw.values(n));
    rows.push_back(inputs.back().data());
  }
  auto w = draw.values(taps * n);
  Written y(draw, n);
  table.short_conv(rows.data(), w.data(), taps, n, y.data());
  y.add_to(out);
}

void silu(const FunctionTable& table, Draw& draw, Output& out) {
  auto x = draw.values(draw.length(1, 300));
  Written y(draw, x.size());
  table.silu(x.data(), x.size(), y.data());
  y.add_to(out);
}

void silu_mul(const FunctionTable& table, Draw& draw, Output& out) {
  auto gate = draw.values(draw.length(1, 300));
  auto up = draw.values(gate.size());
  Written y(draw, gate.size());
  table.silu_mul(gate.data(), up.data(), gate.size(), y.data());
  y.add_to(out);
}

void add(const FunctionTable& table, Draw& draw, Output& out) {
  auto from = draw.values(draw.length(1, 300));
  auto y = draw.values(from.size());
  Written x(draw, from);
  table.add(x.data(), y.data(), y.size());
  x.add_to(out);
}

void sigmoid(const FunctionTable& table, Draw& draw, Output& out) {
  auto x = draw.values(draw.length(1, 300));
  Written y(draw, x.size());
  table.sigmoid(x.data(), x.size(), y.data());
  y.add_to(out);
}

void exp_sum(const FunctionTable& table, Draw& draw, Output& out) {
  auto x = draw.values(draw.length(1, 300));
  Written p(draw, x.size());
  float max = 0.0F;
  out.add(table.exp_sum(x.data(), x.size(), p.data(), &max));
  out.add(max);
  p.add_to(out);
}

void argmax(const FunctionTable& table, Draw& draw, Output& out) {
  auto x = draw.values(draw.length(1, 300));
  if (draw.coin()) {
    x[draw.size(0, x.size() - 1)] = x[draw.size(0, x.size() - 1)];
  }
  out.add_integer(table.argmax(x.data(), x.size()));
}

void delta_rule(const FunctionTable& table, Draw& draw, Output& out) {
  const auto dim = [&] { return draw.coin() ? 32 * draw.size(2, 4) : draw.length(1, 70); };
  const DeltaRule rule{.head_dim_k = dim(),
                       .head_dim_v = dim(),
                       .read_scale = draw.value(),
                       .decay_before_read = draw.coin()};
  const std::size_t count = draw.size(1, 4);
  const std::size_t stride = std::max(rule.head_dim_k, rule.head_dim_v) + draw.size(0, 5);
  const std::size_t state_size = rule.head_dim_k * rule.head_dim_v;
  auto q = draw.values(count * stride);
  auto k = draw.values(count * stride);
  auto v = draw.values(count * stride);
  auto decay = draw.values(count * 3);
  auto write = draw.values(count * 3);
  auto from = draw.values(state_size);
  Written to_from(draw, from);
  Written y(draw, count * stride);
  Written work(draw, 16 * rule.head_dim_k);
  // Lines of their own for half of the cases: only those may be written past the caches.
  std::vector<AlignedBuffer> states;
  std::vector<float*> to;
  const std::size_t offset = draw.coin() ? 0 : 3;
  for (std::size_t t = 0; t < count; ++t) {
    states.emplace_back((state_size + offset) * sizeof(float));
    const bool kept = t + 1 == count || draw.coin();
    to.push_back(kept ? reinterpret_cast<float*>(states.back().data()) : nullptr);
  }
  const bool in_place = offset == 0 && draw.coin();
  if (in_place) {
    to.back() = to_from.data();
  }
  table.delta_rule(rule, {.count = count,
                          .q = q.data(),
                          .k = k.data(),
                          .v = v.data(),
                          .stride = stride,
                          .decay = decay.data(),
                          .write = write.data(),
                          .gate_stride = draw.coin() ? 0U : 3U,
                          .out = y.data(),
                          .out_stride = stride,
                          .from = to_from.data(),
                          .to = to.data(),
                          .to_offset = offset,
                          .work = work.data(),
                          .past_caches = draw.coin()});
  y.add_to(out);
  to_from.add_to(out);
  for (AlignedBuffer& state : states) {
    const auto* values = reinterpret_cast<const float*>(state.data());
    std::for_each_n(values, state_size + offset, [&](float value) { out.add(value); });
  }
}

void store_key(const FunctionTable& table, Draw& draw, Output& out) {
  const std::size_t dim = draw.length(1, 130);
  const std::size_t position = draw.size(0, 40);
  auto k = draw.values(dim);
  Written keys(draw, (position / kLanes + 1) * kLanes * dim);
  table.store_key(keys.data(), position, dim, k.data());
  keys.add_to(out);
}

void attend(const FunctionTable& table, Draw& draw, Output& out) {
  const std::size_t dim = draw.length(1, 130);
  const std::size_t positions = draw.length(1, 200);
  const std::size_t padded = (positions + kLanes - 1) / kLanes * kLanes;
  auto keys = draw.values(padded * dim);
  auto values = draw.values(positions * dim);
  auto q = draw.values(dim);
  Values<float> scratch(draw.size(0, 15), padded);
  Written y(draw, dim);
  table.attend({keys.data(), values.data(), positions, dim, draw.value()}, q.data(), scratch.data(),
               y.data());
  y.add_to(out);
}

void rope_halves(const FunctionTable& table, Draw& draw, Output& out) {
  const std::size_t half = draw.length(1, 70);
  const std::size_t heads = draw.size(1, 4);
  const std::size_t stride = 2 * half + draw.size(0, 40);
  auto from = draw.values(heads * stride);
  auto cos = draw.values(half);
  auto sin = draw.values(half);
  Written x(draw, from);
  table.rope_halves(x.data(), heads, stride, 2 * half, cos.data(), sin.data());
  x.add_to(out);
}

void sigmoid_mul(const FunctionTable& table, Draw& draw, Output& out) {
  auto gate = draw.values(draw.length(1, 200));
  auto x = draw.values(gate.size());
  Written y(draw, gate.size());
  table.sigmoid_mul(gate.data(), x.data(), gate.size(), y.data());
  y.add_to(out);
}

void delta_gates(const FunctionTable& table, Draw& draw, Output& out) {
  auto a = draw.values(draw.length(1, 70));
  auto b = draw.values(a.size());
  auto rate = draw.values(a.size());
  auto bias = draw.values(a.size());
  Written decay(draw, a.size());
  Written write(draw, a.size());
  table.delta_gates(a.data(), b.data(), rate.data(), bias.data(), a.size(), draw.value(),
                    decay.data(), write.data());
  decay.add_to(out);
  write.add_to(out);
}

void attend_block(const FunctionTable& table, Draw& draw, Output& out) {
  const std::size_t dim = draw.length(1, 130);
  const std::size_t positions = draw.length(1, kAttentionBlock);
  const std::size_t queries = draw.size(1, 9);
  const std::size_t q_stride = dim + draw.size(0, 3);
  const std::size_t part_stride = dim + 2 + draw.size(0, 3);
  auto keys = draw.values((positions + kLanes - 1) / kLanes * kLanes * dim);
  auto values = draw.values(positions * dim);
  auto q = draw.values(queries * q_stride);
  Written parts(draw, queries * part_stride);
  table.attend_block({keys.data(), values.data(), positions, dim, draw.value()}, q.data(), q_stride,
                     queries, parts.data(), part_stride);
  parts.add_to(out);
}

void merge_attention(const FunctionTable& table, Draw& draw, Output& out) {
  const std::size_t dim = draw.length(1, 130);
  const std::size_t blocks = draw.size(1, 6);
  const std::size_t stride = dim + 2 + draw.size(0, 3);
  auto parts = draw.values(blocks * stride);
  Written y(draw, dim);
  table.merge_attention(parts.data(), stride, blocks, dim, y.data());
  y.add_to(out);
}

void bf16_dots(const FunctionTable& table, Draw& draw, Output& out) {
  const std::size_t dim = draw.size(1, 70);
  const std::size_t count = draw.size(1, 20);
  auto panel = draw.bf16(dim * kLanes);
  auto queries = draw.values(count * dim);
  Written dots(draw, count * kLanes);
  table.bf16_dots(panel.data(), queries.data(), count, dim, dots.data());
  dots.add_to(out);
}

void bf16_alignment(const FunctionTable& table, Draw& draw, Output& out) {
  const std::size_t dim = draw.size(1, 70);
  const std::size_t tokens = draw.size(1, kLanes);
  auto panel = draw.bf16(dim * kLanes);
  auto queries = draw.values(tokens * dim);
  out.add(table.bf16_alignment(panel.data(), queries.data(), tokens, dim));
}

void coarse_alignments(const FunctionTable& table, Draw& draw, Output& out) {
  const std::size_t count = draw.size(1, 40);
  auto panels = draw.integers<std::uint8_t>(count * kCoarseCoordinates * kLanes, 1, 255);
  auto query = draw.integers<std::int8_t>(kCoarseTokens * kCoarseCoordinates, -127, 127);
  std::vector<std::int32_t> scores(count + kGuard, -1);
  table.coarse_alignments(panels.data(), count, query.data(), scores.data());
  for (const std::int32_t score : scores) {
    out.add_integer(score);
  }
}

void ordered_dots(const FunctionTable& table, Draw& draw, Output& out) {
  const std::size_t n = draw.length(1, 200);
  const std::size_t count = draw.length(1, 50);
  const std::size_t stride = n + draw.size(0, 5);
  // The last row ends with its last element.
  auto rows = draw.values((count - 1) * stride + n);
  auto x = draw.values(n);
  Written dots(draw, count);
  table.ordered_dots(rows.data(), stride, count, x.data(), n, dots.data());
  dots.add_to(out);
}

void unit_rows(const FunctionTable& table, Draw& draw, Output& out) {
  const std::size_t rows = draw.size(1, 5);
  const std::size_t n = draw.length(1, 150);
  auto from = draw.values(rows * n);
  Written x(draw, from);
  table.unit_rows(x.data(), rows, n);
  x.add_to(out);
}

void project(const FunctionTable& table, Draw& draw, Output& out) {
  const std::size_t outputs = draw.size(1, 40);
  auto x = draw.values(draw.length(1, 300));
  std::vector<ProjectedTo> places(x.size());
  for (ProjectedTo& place : places) {
    place = {static_cast<std::uint32_t>(draw.size(0, outputs - 1)), draw.coin() ? 1.0F : -1.0F};
  }
  auto from = draw.values(outputs);
  Written y(draw, from);
  table.project(x.data(), places.data(), x.size(), y.data());
  y.add_to(out);
}

void block_max(const FunctionTable& table, Draw& draw, Output& out) {
  auto x = draw.values(draw.length(1, 300));
  Written largest(draw, (x.size() + kMaxBlock - 1) / kMaxBlock);
  table.block_max(x.data(), x.size(), largest.data());
  largest.add_to(out);
}

void add_places(const std::vector<std::uint32_t>& places, std::size_t count, Output& out) {
  out.add_integer(count);
  for (std::size_t i = 0; i < count; ++i) {
    out.add_integer(places[i]);
  }
  out.add_integer(places.back());
}

void places_at_least(const FunctionTable& table, Draw& draw, Output& out) {
  auto x = draw.values(draw.length(1, 300));
  const float least = draw.coin() ? x[draw.size(0, x.size() - 1)] : draw.value();
  std::vector<std::uint32_t> places(x.size() + 1, kGuardWord);
  const std::size_t count = table.places_at_least(x.data(), x.size(), least, places.data());
  add_places(places, count, out);
}

void race(const FunctionTable& table, Draw& draw, Output& out) {
  auto x = draw.values(draw.length(1, 300));
  const auto word = [&] {
    return static_cast<std::uint64_t>(draw.integer(0, std::numeric_limits<int>::max()));
  };
  const Race rules{.stream = word() << 33 ^ word(),
                   .first = word(),
                   .top = x[draw.size(0, x.size() - 1)],
                   .slope = std::ldexp(std::fabs(draw.value()), 20),
                   .level = std::ldexp(static_cast<float>(draw.integer(1020, 1080)), 20)};
  std::vector<std::uint32_t> places(x.size() + 1, kGuardWord);
  const std::size_t count = table.race(x.data(), x.size(), rules, places.data());
  add_places(places, count, out);
}

void add_wide(double value, Output& out) {
  const auto bits = std::bit_cast<std::uint64_t>(std::isnan(value) ? std::nan("") : value);
  out.add_integer(bits >> 32);
  out.add_integer(bits);
}

void softmax_sum(const FunctionTable& table, Draw& draw, Output& out) {
  auto x = draw.values(draw.length(1, 300));
  const double temperature = draw.coin() ? 1.0 : static_cast<double>(std::fabs(draw.value()));
  const auto top = static_cast<double>(x[draw.size(0, x.size() - 1)]);
  const double sum = table.softmax_sum(x.data(), x.size(), temperature, top / temperature);
  add_wide(sum, out);
}

void exp_f64(const FunctionTable& table, Draw& draw, Output& out) {
  Values<double> x(draw.size(0, 7), draw.length(1, 100));
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = 20.0 * static_cast<double>(draw.value());
  }
  std::vector<double> y(x.size() + 1, 1.25);
  table.exp_f64(x.data(), x.size(), y.data());
  for (const double value : y) {
    add_wide(value, out);
  }
}

// --- All of them ---------------------------------------------------------------------------------

struct Case {
  const char* name;
  std::size_t place;  ///< Of the function in the table.
  void (*run)(const FunctionTable&, Draw&, Output&);
};
#define SPEL_CASE(name) \
  Case { #name, offsetof(FunctionTable, name), &(name) }
constexpr Case kCases[] = {SPEL_CASE(pack_rows),
                           SPEL_CASE(sum_int8),
                           SPEL_CASE(matmul_f32),
                           SPEL_CASE(matmul_bf16),
                           SPEL_CASE(matmul_int8),
                           SPEL_CASE(matmul_ternary_dotprod),
                           SPEL_CASE(matmul_ternary_addsub),
                           SPEL_CASE(matmul_ternary_scalar),
                           SPEL_CASE(quantize_row),
                           SPEL_CASE(rms_norm),
                           SPEL_CASE(l2_normalize),
                           SPEL_CASE(rope),
                           SPEL_CASE(rope_halves),
                           SPEL_CASE(short_conv),
                           SPEL_CASE(silu),
                           SPEL_CASE(silu_mul),
                           SPEL_CASE(add),
                           SPEL_CASE(sigmoid),
                           SPEL_CASE(sigmoid_mul),
                           SPEL_CASE(exp_sum),
                           SPEL_CASE(argmax),
                           SPEL_CASE(delta_rule),
                           SPEL_CASE(store_key),
                           SPEL_CASE(attend),
                           SPEL_CASE(delta_gates),
                           SPEL_CASE(attend_block),
                           SPEL_CASE(merge_attention),
                           SPEL_CASE(bf16_dots),
                           SPEL_CASE(bf16_alignment),
                           SPEL_CASE(coarse_alignments),
                           SPEL_CASE(ordered_dots),
                           SPEL_CASE(unit_rows),
                           SPEL_CASE(project),
                           SPEL_CASE(block_max),
                           SPEL_CASE(places_at_least),
                           SPEL_CASE(race),
                           SPEL_CASE(softmax_sum),
                           SPEL_CASE(exp_f64)};
#undef SPEL_CASE

/// How a set cuts its work is its own; the products above go by it.
constexpr std::size_t kTuning[] = {
    offsetof(FunctionTable, dense_tile_rows), offsetof(FunctionTable, ternary_tile_rows),
    offsetof(FunctionTable, dense_panel_group), offsetof(FunctionTable, ternary_panel_group)};

static_assert(sizeof(FunctionTable) == (std::size(kCases) + std::size(kTuning)) * sizeof(void*),
              "every function of the table is one of the cases");

double number_from(const char* variable, double fallback) {
  const char* text = std::getenv(variable);
  return text == nullptr ? fallback : std::atof(text);
}

TEST(Differential, TheCasesAreTheTable) {
  std::set<std::size_t> places(std::begin(kTuning), std::end(kTuning));
  for (const Case& one : kCases) {
    EXPECT_TRUE(places.insert(one.place).second) << one.name << " is there twice";
  }
  EXPECT_EQ(places.size() * sizeof(void*), sizeof(FunctionTable));
}

TEST(Differential, EverySetGivesTheScalarBitsOnRandomInputs) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(number_from(
                                                            "SPEL_FUZZ_SECONDS", kSecondsDefault));
  auto seed = static_cast<std::uint32_t>(number_from("SPEL_FUZZ_SEED", 1.0));
  // Whole rounds, so that a slow machine tries every function too.
  do {
    for (const Case& one : kCases) {
      const auto output_of = [&](const Kernels& kernels) {
        Draw draw(seed);
        Output out;
        one.run(KernelRegistry::table_of(kernels), draw, out);
        return out;
      };
      const Output expected = output_of(reference_kernels());
      for (const Kernels& kernels : KernelRegistry::attainable()) {
        const Output found = output_of(kernels);
        ASSERT_TRUE(found == expected)
            << one.name << " on " << kernels.variant() << ", " << expected.difference(found)
            << "; again with SPEL_FUZZ_SEED=" << seed;
      }
    }
    ++seed;
  } while (std::chrono::steady_clock::now() < until);
  RecordProperty("rounds", static_cast<int>(seed));
}

}  // namespace
}  // namespace spel::kernels

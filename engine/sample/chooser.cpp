#include "engine/sample/chooser.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "kernels/scalar_math.h"

namespace spel::engine {
namespace {

using kernels::kMaxBlock;

constexpr float kInf = std::numeric_limits<float>::infinity();

/// The best of those considered so far.
class Winner {
 public:
  explicit Winner(const PositionNoise& noise) : noise_(noise) {}

  void consider(const ScoredToken& candidate) {
    const auto id = static_cast<std::uint64_t>(candidate.token);
    // Rounding keeps the order of sums: who cannot reach the best with more noise cannot with less.
    if (best_.token >= 0 && (candidate.score + PositionNoise::kMost < best_.score ||
                             candidate.score + noise_.at_most(id) < best_.score)) {
      return;
    }
    const ScoredToken drawn{candidate.score + noise_.gumbel(id), candidate.token};
    if (best_.token < 0 || precedes(drawn, best_)) {
      best_ = drawn;
    }
  }
  [[nodiscard]] const ScoredToken& best() const { return best_; }

 private:
  const PositionNoise& noise_;
  ScoredToken best_{0.0, -1};
};

// --- Who can still win, in f32 -------------------------------------------------------------------
//
// Element i, of logit x <= the row's largest X, can win against `best` only if its score plus its
// noise reach it. With v = 1 - u of its draw, noise <= -log v (noise.h), so only if
//
//   log2(2^52 v) <= 52 + log2(e) (x/T - best)
//
// whose left side is at least h / 2^20 - 1023, h the upper word of the bits of 2^52 v. Times 2^20:
//
//   h <= (x - X) slope + level,  slope = 2^20 log2(e) / T,
//                                level = 2^20 (1075 + log2(e) (X/T - best))
//
// h is in [1022, 1075] 2^20. kernels::Race evaluates this in f32, off by at most, in units of 1:
// - 32 for h, below 2^31, in f32;
// - 64 for the rounding of the right side where it is no less than 1022 2^20, and for level's;
// - 16 for those of x - X, slope and their product: 2^-22 of at most 60 2^20, as beyond that the
//   element is far from winning (best >= X/T - 4: the largest itself has been considered);
// - 100 for the roundings of the scores in f64: 2^-52 of less than 2^37 each, within the limits
//   below, which also keep slope far from both ends of f32; and for those of the noise.
// kSlack is more than ten times the sum. It lets a few in 10,000 more through to be drawn exactly.
constexpr double kLog2E = 0x1.71547652b82fep+0;
constexpr double kSlack = 4096.0;
constexpr double kRaceTemperatureMin = 0x1p-60;
constexpr double kRaceTemperatureMax = 0x1p60;
constexpr double kRaceScoreMax = 0x1p36;
/// No h is smaller.
constexpr float kLevelMin = 1022.0F * 0x1p20F;

float race_level(double top, double best) {
  const double level = (1023.0 + 52.0 + kLog2E * (top - best)) * 0x1p20 + kSlack;
  return static_cast<float>(std::max(level, 0.0));
}

/// The largest f32 that is not above x.
float round_down(double x) {
  if (x < static_cast<double>(std::numeric_limits<float>::lowest())) {
    return -kInf;
  }
  const auto rounded =
      static_cast<float>(std::min(x, static_cast<double>(std::numeric_limits<float>::max())));
  return static_cast<double>(rounded) > x ? std::nextafter(rounded, -kInf) : rounded;
}

bool filters_nothing(const SamplingParams& params, std::size_t vocab_size) {
  const bool by_rank = params.top_k > 0 && static_cast<std::size_t>(params.top_k) < vocab_size;
  return !by_rank && params.top_p >= 1.0F && params.min_p <= 0.0F;
}

}  // namespace

Chooser::Chooser(std::size_t vocab_size, const kernels::Kernels& kernels,
                 std::shared_ptr<const TokenMask> mask)
    : vocab_size_(vocab_size),
      kernels_(kernels),
      mask_(std::move(mask)),
      copy_(vocab_size),
      block_max_((vocab_size + kMaxBlock - 1) / kMaxBlock),
      sorted_(block_max_.size()) {
  listed_.reserve(vocab_size);
}

void Chooser::begin(std::span<const float> logits, std::span<const ScoredToken> edited) {
  const std::size_t size = mask_ ? mask_->end() : vocab_size_;
  row_ = logits.first(size);
  const bool holes = mask_ && mask_->has_holes();
  if (!edited.empty() || holes) {
    std::copy(row_.begin(), row_.end(), copy_.begin());
    const std::span<float> copy = std::span(copy_).first(size);
    if (holes) {
      mask_->blank(copy);
    }
    for (const ScoredToken& token : edited) {
      if (static_cast<std::size_t>(token.token) < size) {
        copy[static_cast<std::size_t>(token.token)] = std::numeric_limits<float>::quiet_NaN();
      }
    }
    row_ = copy;
  }
  blocks_ = (size + kMaxBlock - 1) / kMaxBlock;
  kernels_.block_max(row_.data(), size, block_max_.data());
}

// The first of the row in the order of candidates, with its logit.
std::optional<ScoredToken> Chooser::top_of_row() const {
  const std::size_t block = kernels_.argmax(block_max_.data(), blocks_);
  if (blocks_ == 0) {
    return std::nullopt;
  }
  std::size_t id = block * kMaxBlock;
  if (block_max_[block] == -kInf) {
    // Any number left is -inf, and a block of none looks the same.
    const auto found = std::find(row_.begin(), row_.end(), -kInf);
    if (found == row_.end()) {
      return std::nullopt;
    }
    id = static_cast<std::size_t>(found - row_.begin());
  } else {
    id += kernels_.argmax(row_.data() + id, std::min(kMaxBlock, row_.size() - id));
  }
  return ScoredToken{static_cast<double>(row_[id]), static_cast<TokenId>(id)};
}

// So many logits of the row, at least, are no smaller. -inf where the blocks are too few to tell.
float Chooser::kth_block_max(std::size_t k) {
  if (k > blocks_) {
    return -kInf;
  }
  const auto begin = sorted_.begin();
  std::copy_n(block_max_.begin(), blocks_, begin);
  const auto kth = begin + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(begin, kth, begin + static_cast<std::ptrdiff_t>(blocks_), std::greater<>());
  return *kth;
}

/// Calls use(id) for every number of the row that is at least `least`, ids rising.
template <class Use>
void Chooser::for_each_at_least(float least, Use use) const {
  std::array<std::uint32_t, kMaxBlock> places;
  for (std::size_t block = 0; block < blocks_; ++block) {
    if (block_max_[block] < least) {
      continue;
    }
    const std::size_t first = block * kMaxBlock;
    const std::size_t count = kernels_.places_at_least(
        row_.data() + first, std::min(kMaxBlock, row_.size() - first), least, places.data());
    for (std::size_t i = 0; i < count; ++i) {
      use(first + places[i]);
    }
  }
}

void Chooser::list_edited(std::span<const ScoredToken> edited, double temperature) {
  listed_.clear();
  for (const ScoredToken& token : edited) {
    if (!std::isnan(token.score) && (!mask_ || mask_->allows(token.token))) {
      listed_.push_back({token.score / temperature, token.token});
    }
  }
}

void Chooser::list_at_least(float least, double temperature) {
  for_each_at_least(least, [&](std::size_t id) {
    listed_.push_back({static_cast<double>(row_[id]) / temperature, static_cast<TokenId>(id)});
  });
}

TokenId Chooser::choose(std::span<const float> logits, std::span<const ScoredToken> edited,
                        const SamplingParams& params, std::size_t position) {
  const bool greedy = params.temperature == 0.0F;
  const double temperature = greedy ? 1.0 : static_cast<double>(params.temperature);
  begin(logits, edited);
  list_edited(edited, temperature);
  std::optional<ScoredToken> top_row = top_of_row();
  std::optional<ScoredToken> top;
  if (top_row) {
    top_row->score /= temperature;
    top = top_row;
  }
  for (const ScoredToken& candidate : listed_) {
    if (!top || precedes(candidate, *top)) {
      top = candidate;
    }
  }
  if (!top) {
    return -1;
  }
  // Next to an infinite score noise is nothing; and no filter drops the first.
  if (greedy || !std::isfinite(top->score)) {
    return top->token;
  }
  const PositionNoise noise(params.seed, position);
  if (filters_nothing(params, vocab_size_)) {
    return race_all(noise, temperature, top_row);
  }
  filter(edited, params, top->score);
  return race_listed(noise);
}

// Leaves in listed_ what the filters do.
void Chooser::filter(std::span<const ScoredToken> edited, const SamplingParams& params,
                     double top) {
  const double temperature = params.temperature;
  const auto top_k = static_cast<std::size_t>(std::max(params.top_k, 0));
  const bool by_rank = top_k > 0 && top_k < vocab_size_;
  if (by_rank) {
    list_at_least(kth_block_max(top_k), temperature);
    keep_top_k(listed_, top_k);
    if (params.top_p < 1.0F) {
      const double total = add_weights(kernels_, listed_, top, 0.0);
      if (!keep_top_p(kernels_, listed_, {params.top_p, top, total, listed_.size(), true})) {
        keep_top_p_in_order(kernels_, listed_, params.top_p);
      }
    }
  } else {
    filter_by_mass(edited, params, top);
  }
  if (params.min_p > 0.0F) {
    keep_min_p(listed_, params.min_p, top);
  }
}

// top_p of the whole row and its edited tokens, or what min_p may keep of them. listed_ holds the
// edited ones.
void Chooser::filter_by_mass(std::span<const ScoredToken> edited, const SamplingParams& params,
                             double top) {
  const double temperature = params.temperature;
  const std::size_t members = row_.size() + listed_.size();
  double total = 0.0;
  // How far below the first a candidate may be.
  double depth = std::numeric_limits<double>::infinity();
  if (params.top_p < 1.0F) {
    total = add_weights(kernels_, listed_, top,
                        kernels_.softmax_sum(row_.data(), row_.size(), temperature, top));
    // Those that weigh at most (1 - p) total / members are last in order and weigh at most
    // (1 - p) total together: what comes before them reaches p total.
    const double share =
        (1.0 - static_cast<double>(params.top_p)) * total / static_cast<double>(members);
    depth = std::max(-kernels::log_f64(share), 0.0);
  }
  if (params.min_p > 0.0F) {
    depth = std::min(depth, std::max(-kernels::log_f64(static_cast<double>(params.min_p)), 0.0));
  }
  // More than the roundings of logarithm, exponential, score and threshold.
  depth += 1e-6 + std::abs(top) * 0x1p-48;
  list_at_least(round_down((top - depth) * temperature), temperature);
  if (params.top_p < 1.0F &&
      !keep_top_p(kernels_, listed_, {params.top_p, top, total, members, false})) {
    list_edited(edited, temperature);
    list_at_least(-kInf, temperature);
    keep_top_p_in_order(kernels_, listed_, params.top_p);
  }
}

TokenId Chooser::race_listed(const PositionNoise& noise) const {
  Winner winner(noise);
  for (const ScoredToken& candidate : listed_) {
    winner.consider(candidate);
  }
  return winner.best().token;
}

// The whole row and the edited tokens, listed. `top` is the row's first, with its score.
TokenId Chooser::race_all(const PositionNoise& noise, double temperature,
                          const std::optional<ScoredToken>& top) const {
  Winner winner(noise);
  for (const ScoredToken& candidate : listed_) {
    winner.consider(candidate);
  }
  if (!top || top->score == -std::numeric_limits<double>::infinity()) {
    return winner.best().token;
  }
  winner.consider(*top);
  const auto score = [&](std::size_t id) {
    return ScoredToken{static_cast<double>(row_[id]) / temperature, static_cast<TokenId>(id)};
  };
  if (temperature < kRaceTemperatureMin || temperature > kRaceTemperatureMax ||
      std::abs(top->score) > kRaceScoreMax) {
    for_each_at_least(-kInf, [&](std::size_t id) { winner.consider(score(id)); });
    return winner.best().token;
  }
  kernels::Race rules{.stream = noise.stream(),
                      .first = 0,
                      .top = row_[static_cast<std::size_t>(top->token)],
                      .slope = static_cast<float>(0x1p20 * kLog2E / temperature),
                      .level = race_level(top->score, winner.best().score)};
  std::array<std::uint32_t, kMaxBlock> places;
  for (std::size_t block = 0; block < blocks_; ++block) {
    if (!((block_max_[block] - rules.top) * rules.slope + rules.level >= kLevelMin)) {
      continue;
    }
    rules.first = block * kMaxBlock;
    const std::size_t count =
        kernels_.race(row_.data() + rules.first, std::min(kMaxBlock, row_.size() - rules.first),
                      rules, places.data());
    for (std::size_t i = 0; i < count; ++i) {
      winner.consider(score(rules.first + places[i]));
    }
    if (count > 0) {
      rules.level = race_level(top->score, winner.best().score);
    }
  }
  return winner.best().token;
}

void Chooser::logprobs(std::span<const float> logits, TokenId token, std::size_t top,
                       float* logprob, TopLogprobs* top_logprobs) {
  begin(logits, {});
  top_logprobs->clear();
  const std::size_t wanted = std::min({top, row_.size(), TopLogprobs::capacity()});
  if (wanted > 0) {
    for_each_at_least(kth_block_max(wanted), [&](std::size_t id) {
      top_logprobs->insert({static_cast<TokenId>(id), row_[id]}, wanted);
    });
  }
  double max = -std::numeric_limits<double>::infinity();
  for (std::size_t block = 0; block < blocks_; ++block) {
    max = std::max(max, static_cast<double>(block_max_[block]));
  }
  // One sum in f64, ids rising: the exponentials are taken side by side, not added so.
  double sum = 0.0;
  std::array<double, kMaxBlock> terms;
  for (std::size_t first = 0; first < row_.size(); first += kMaxBlock) {
    const std::size_t count = std::min(kMaxBlock, row_.size() - first);
    for (std::size_t i = 0; i < count; ++i) {
      terms[i] = static_cast<double>(row_[first + i]) - max;
    }
    kernels_.exp_f64(terms.data(), count, terms.data());
    for (std::size_t i = 0; i < count; ++i) {
      sum += terms[i];
    }
  }
  const double log_total = max + kernels::log_f64(sum);
  const auto log_of = [&](float logit) {
    return static_cast<float>(static_cast<double>(logit) - log_total);
  };
  const bool allowed = !mask_ || mask_->allows(token);
  *logprob = allowed ? log_of(logits[static_cast<std::size_t>(token)]) : -kInf;
  for (TokenLogprob& entry : *top_logprobs) {
    entry.logprob = log_of(entry.logprob);
  }
}

}  // namespace spel::engine

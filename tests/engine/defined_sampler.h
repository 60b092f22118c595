// The definition of a choice written out: every score in f64, everything sorted, every sum in
// order. What engine/sample does instead must choose the same.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "engine/request/request.h"
#include "engine/sample/token_mask.h"
#include "kernels/scalar_math.h"

namespace spel::engine {

inline double defined_uniform(std::uint64_t seed, std::uint64_t position, std::uint64_t token) {
  const auto mix = [](std::uint64_t x) {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
  };
  const std::uint64_t bits = mix(mix(mix(seed) ^ position) ^ token);
  return (static_cast<double>(bits >> 12) + 0.5) * 0x1.0p-52;
}

class DefinedSampler {
 public:
  explicit DefinedSampler(std::size_t vocab_size, const TokenMask* mask = nullptr)
      : vocab_size_(vocab_size), mask_(mask), output_counts_(vocab_size), in_prompt_(vocab_size) {}

  void reset(const SamplingParams& params, std::span<const TokenId> prompt,
             std::size_t min_tokens = 0, std::span<const TokenId> ends = {}) {
    params_ = params;
    output_size_ = 0;
    min_tokens_ = min_tokens;
    ends_.assign(ends.begin(), ends.end());
    penalties_ = params.repetition_penalty != 1.0F || params.presence_penalty != 0.0F ||
                 params.frequency_penalty != 0.0F;
    std::fill(output_counts_.begin(), output_counts_.end(), 0U);
    std::fill(in_prompt_.begin(), in_prompt_.end(), std::uint8_t{0});
    for (const TokenId token : prompt) {
      in_prompt_[static_cast<std::size_t>(token)] = 1;
    }
  }
  void push(TokenId token) {
    ++output_counts_[static_cast<std::size_t>(token)];
    ++output_size_;
  }
  void pop(TokenId token) {
    --output_counts_[static_cast<std::size_t>(token)];
    --output_size_;
  }

  TokenId choose(std::span<const float> logits, std::size_t position) {
    collect_scores(logits);
    if (candidates_.empty()) {
      return -1;
    }
    const bool greedy = params_.temperature == 0.0F;
    if (!greedy) {
      for (Candidate& c : candidates_) {
        c.score /= static_cast<double>(params_.temperature);
      }
      filter();
    }
    double best_score = -std::numeric_limits<double>::infinity();
    TokenId best = -1;
    for (const Candidate& c : candidates_) {
      const auto id = static_cast<std::uint64_t>(c.token);
      const double score = greedy ? c.score
                                  : c.score - kernels::log_f64(-kernels::log_f64(
                                                  defined_uniform(params_.seed, position, id)));
      if (best < 0 || score > best_score || (score == best_score && c.token < best)) {
        best_score = score;
        best = c.token;
      }
    }
    return best;
  }

 private:
  struct Candidate {
    double score;
    TokenId token;
  };

  void penalise(Candidate& candidate) const {
    const auto id = static_cast<std::size_t>(candidate.token);
    const std::uint32_t count = output_counts_[id];
    if (count > 0 || in_prompt_[id] != 0) {
      const double penalty = params_.repetition_penalty;
      candidate.score =
          candidate.score > 0.0 ? candidate.score / penalty : candidate.score * penalty;
    }
    if (count > 0) {
      candidate.score -= static_cast<double>(params_.presence_penalty) +
                         static_cast<double>(params_.frequency_penalty) * count;
    }
  }

  void collect_scores(std::span<const float> logits) {
    candidates_.clear();
    candidates_.reserve(vocab_size_);
    for (std::size_t i = 0; i < vocab_size_; ++i) {
      candidates_.push_back({static_cast<double>(logits[i]), static_cast<TokenId>(i)});
    }
    for (const auto& [token, bias] : params_.logit_bias) {
      candidates_[static_cast<std::size_t>(token)].score += static_cast<double>(bias);
    }
    if (penalties_) {
      for (Candidate& candidate : candidates_) {
        penalise(candidate);
      }
    }
    if (output_size_ < min_tokens_) {
      for (const TokenId end : ends_) {
        candidates_[static_cast<std::size_t>(end)].score = std::numeric_limits<double>::quiet_NaN();
      }
    }
    std::erase_if(candidates_, [&](const Candidate& c) {
      return std::isnan(c.score) || (mask_ != nullptr && !mask_->allows(c.token));
    });
  }

  // top_k, top_p and min_p over softmax(score), at least one candidate left.
  void filter() {
    const auto order = [](const Candidate& a, const Candidate& b) {
      return a.score > b.score || (a.score == b.score && a.token < b.token);
    };
    const auto top_k = static_cast<std::size_t>(params_.top_k);
    if (top_k > 0 && top_k < candidates_.size()) {
      std::nth_element(candidates_.begin(), candidates_.begin() + params_.top_k, candidates_.end(),
                       order);
      candidates_.resize(top_k);
    }
    if (params_.top_p >= 1.0F && params_.min_p <= 0.0F) {
      return;
    }
    std::sort(candidates_.begin(), candidates_.end(), order);
    const double max = candidates_.front().score;
    if (params_.top_p < 1.0F) {
      double total = 0.0;
      for (const Candidate& c : candidates_) {
        total += kernels::exp_f64(c.score - max);
      }
      const double wanted = static_cast<double>(params_.top_p) * total;
      double mass = 0.0;
      std::size_t kept = 0;
      while (kept < candidates_.size() && (kept == 0 || mass < wanted)) {
        mass += kernels::exp_f64(candidates_[kept].score - max);
        ++kept;
      }
      candidates_.resize(kept);
    }
    if (params_.min_p > 0.0F) {
      std::size_t kept = 1;
      while (kept < candidates_.size() && kernels::exp_f64(candidates_[kept].score - max) >=
                                              static_cast<double>(params_.min_p)) {
        ++kept;
      }
      candidates_.resize(kept);
    }
  }

  std::size_t vocab_size_;
  const TokenMask* mask_;
  SamplingParams params_;
  bool penalties_ = false;
  std::vector<std::uint32_t> output_counts_;
  std::vector<std::uint8_t> in_prompt_;
  std::size_t output_size_ = 0;
  std::size_t min_tokens_ = 0;
  std::vector<TokenId> ends_;
  std::vector<Candidate> candidates_;
};

inline void defined_logprobs(std::span<const float> logits, TokenId token, std::size_t top,
                             float* logprob, TopLogprobs* top_logprobs) {
  double max = -std::numeric_limits<double>::infinity();
  for (const float logit : logits) {
    max = std::max(max, static_cast<double>(logit));
  }
  double sum = 0.0;
  for (const float logit : logits) {
    sum += kernels::exp_f64(static_cast<double>(logit) - max);
  }
  const double log_total = max + kernels::log_f64(sum);
  const auto log_of = [&](std::size_t id) {
    return static_cast<float>(static_cast<double>(logits[id]) - log_total);
  };
  *logprob = log_of(static_cast<std::size_t>(token));
  top_logprobs->clear();
  const std::size_t wanted = std::min({top, logits.size(), TopLogprobs::capacity()});
  for (std::size_t i = 0; i < logits.size() && wanted > 0; ++i) {
    top_logprobs->insert({static_cast<TokenId>(i), logits[i]}, wanted);
  }
  for (TokenLogprob& entry : *top_logprobs) {
    entry.logprob = log_of(static_cast<std::size_t>(entry.token));
  }
}

}  // namespace spel::engine

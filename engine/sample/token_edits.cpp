#include "engine/sample/token_edits.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace spel::engine {

void TokenEdits::reset(const SamplingParams& params, std::span<const TokenId> prompt,
                       std::span<const TokenId> ends, std::size_t pushes) {
  repetition_ = params.repetition_penalty;
  presence_ = params.presence_penalty;
  frequency_ = params.frequency_penalty;
  penalties_ = params.repetition_penalty != 1.0F || params.presence_penalty != 0.0F ||
               params.frequency_penalty != 0.0F;
  // Only a repetition penalty asks what the prompt holds.
  if (params.repetition_penalty == 1.0F) {
    prompt = {};
  }
  entries_.clear();
  slots_.clear();
  biases_.clear();
  make_room(params.logit_bias.size() + ends.size() + prompt.size() + (penalties_ ? pushes : 0));

  auto bias = params.logit_bias;
  std::stable_sort(bias.begin(), bias.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [token, value] : bias) {
    Entry& e = entry(token);
    if (e.bias_count++ == 0) {
      e.bias_begin = static_cast<std::uint32_t>(biases_.size());
    }
    biases_.push_back(value);
  }
  for (const TokenId token : ends) {
    entry(token).is_end = true;
  }
  for (const TokenId token : prompt) {
    entry(token).in_prompt = true;
  }
}

void TokenEdits::make_room(std::size_t tokens) {
  entries_.reserve(tokens);
  scores_.reserve(tokens);
  slots_.assign(std::bit_ceil(2 * tokens + 2), 0U);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    slots_[slot_of(entries_[i].token)] = static_cast<std::uint32_t>(i + 1);
  }
}

// Where the token is, or would be put.
std::size_t TokenEdits::slot_of(TokenId token) const {
  const std::size_t last = slots_.size() - 1;
  std::size_t slot = static_cast<std::size_t>(token) * 0x9e3779b97f4a7c15ULL >> 32 & last;
  while (slots_[slot] != 0 && entries_[slots_[slot] - 1].token != token) {
    slot = (slot + 1) & last;
  }
  return slot;
}

TokenEdits::Entry& TokenEdits::entry(TokenId token) {
  if (const std::uint32_t found = slots_[slot_of(token)]; found != 0) {
    return entries_[found - 1];
  }
  if (2 * (entries_.size() + 1) > slots_.size()) {
    make_room(2 * (entries_.size() + 1));
  }
  entries_.push_back({.token = token});
  slots_[slot_of(token)] = static_cast<std::uint32_t>(entries_.size());
  return entries_.back();
}

void TokenEdits::push(TokenId token) {
  if (penalties_) {
    ++entry(token).count;
  }
}

void TokenEdits::pop(TokenId token) {
  if (!penalties_) {
    return;
  }
  const std::size_t slot = slot_of(token);
  Entry& e = entries_[slots_[slot] - 1];
  --e.count;
  if (e.count == 0 && e.bias_count == 0 && !e.in_prompt && !e.is_end) {
    // It came with the push taken back, after all others.
    slots_[slot] = 0;
    entries_.pop_back();
  }
}

std::span<const ScoredToken> TokenEdits::scores(std::span<const float> logits, bool ends_allowed) {
  scores_.clear();
  for (const Entry& e : entries_) {
    if (e.is_end && !ends_allowed) {
      scores_.push_back({std::numeric_limits<double>::quiet_NaN(), e.token});
      continue;
    }
    const bool penalised = penalties_ && (e.count > 0 || e.in_prompt);
    if (!penalised && e.bias_count == 0) {
      continue;
    }
    double score = logits[static_cast<std::size_t>(e.token)];
    for (std::uint32_t i = 0; i < e.bias_count; ++i) {
      score += static_cast<double>(biases_[e.bias_begin + i]);
    }
    if (penalised) {
      score = score > 0.0 ? score / repetition_ : score * repetition_;
      if (e.count > 0) {
        score -= presence_ + frequency_ * e.count;
      }
    }
    scores_.push_back({score, e.token});
  }
  return scores_;
}

}  // namespace spel::engine

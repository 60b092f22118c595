// Choosing one token among as many as published models have.
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/sample/sampler.h"
#include "engine/tools/bench/bench_context.h"
#include "engine/tools/prompts.h"

namespace spel::engine::tools {
namespace {

constexpr std::size_t kVocabulary = 248320;
constexpr std::size_t kHistory = 500;  ///< Tokens of output that penalties know.

/// A few hundred tokens in question, falling off as words do, over a bell of all the others: the
/// few hold nine tenths of the probability.
std::vector<float> language_like_logits() {
  std::mt19937 random(1);
  std::normal_distribution<float> bell(0.0F, 2.0F);
  std::vector<float> logits(kVocabulary);
  for (float& logit : logits) {
    logit = bell(random);
  }
  for (std::size_t rank = 0; rank < 300; ++rank) {
    logits[random() % kVocabulary] = 18.0F - 2.0F * std::log(1.0F + static_cast<float>(rank));
  }
  return logits;
}

struct Entry {
  std::string name;
  std::string figure;
  std::function<void()> body;
};

}  // namespace

void bench_sampling(const BenchContext& context) {
  context.report.progress("sampling");
  const std::vector<float> logits = language_like_logits();
  const std::vector<TokenId> history = random_prompt(kHistory, kVocabulary, 2);
  const auto chooser = std::make_shared<Chooser>(kVocabulary, context.kernels);
  std::vector<Entry> entries;
  const auto add = [&](const std::string& name, const std::string& figure,
                       const SamplingParams& params) {
    const auto sampler = std::make_shared<Sampler>(chooser);
    sampler->reset(params, history, 0, {}, kHistory);
    for (const TokenId token : history) {
      sampler->push(token);
    }
    entries.push_back({name, figure, [&logits, sampler, position = std::size_t{0}]() mutable {
                         (void)sampler->choose(logits, position++);
                       }});
  };
  SamplingParams params;
  params.temperature = 0.0F;
  add("greedy", "greedy", params);
  params.temperature = 1.0F;
  add("T 1", "t1", params);
  params.top_p = 0.95F;
  add("T 1, top_p 0.95", "top_p", params);
  params.top_k = 20;
  params.presence_penalty = 1.5F;
  add("as above, top_k 20, presence penalty", "top_k_top_p_presence", params);
  params = {};
  params.top_k = 20;
  add("T 1, top_k 20", "top_k", params);
  entries.push_back({"20 logprobs", "logprobs", [&] {
                       float logprob = 0.0F;
                       TopLogprobs top;
                       chooser->logprobs(logits, history[0], TopLogprobs::capacity(), &logprob,
                                         &top);
                     }});

  std::vector<std::function<void()>> bodies;
  bodies.reserve(entries.size());
  for (const Entry& entry : entries) {
    bodies.push_back(entry.body);
  }
  const auto seconds = take_turns(bodies, context.options.runs, context.options.min_seconds);
  const std::string isa(context.kernels.variant());
  context.report.table("sampling among 248,320 ids, 500 of them with a history (" + isa + ")",
                       {{"choice", 38}, {"ms", 20}});
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Spread ms = spread_of(scaled(seconds[i], 1e3));
    context.report.row({entries[i].name, with_range(ms, 3)});
    context.report.figure({"choose_" + entries[i].figure, ms, "ms", {{"isa", isa}}});
  }
}

}  // namespace spel::engine::tools

#include "server/tools/local_memory.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <cmath>
#include <exception>
#include <functional>
#include <optional>
#include <utility>

#include "server/recall.h"

namespace spel::server::tools {
namespace {

using engine::TokenId;

constexpr std::size_t kPieceTokens = 128;
/// Room left behind a replayed prompt.
constexpr std::size_t kAnswerTokens = 16;

engine::EngineConfig one_at_a_time() {
  engine::EngineConfig config;
  config.sequences = 1;
  config.prefix_cache_entries = 0;
  config.calibrate = false;
  return config;
}

/// What `work` comes to. Answers come from other threads; waiting for one keeps the loop running.
template <typename T>
T wait_for(net::io_context& io, const std::function<Task<T>(const Executor&)>& work) {
  const Executor strand(io.get_executor());
  std::optional<T> value;
  std::exception_ptr error;
  net::co_spawn(strand, work(strand), [&](std::exception_ptr thrown, T result) {
    error = std::move(thrown);
    value = std::move(result);
  });
  io.restart();
  io.run();
  if (error) {
    std::rethrow_exception(error);
  }
  return std::move(*value);
}

}  // namespace

LocalMemory::LocalMemory(const std::shared_ptr<const engine::ModelWeights>& weights,
                         const kernels::Kernels& kernels, std::size_t target_threads,
                         const std::string& identity)
    : served_(weights, kernels, target_threads, 1, {}, one_at_a_time()),
      models_(engine::tools::assemble_rig(weights, kernels, target_threads, 1, {})),
      state_(models_.target->make_state()),
      notes_(*served_.engine, kernels, {}, identity) {}

std::string LocalMemory::text(std::span<const TokenId> tokens) const {
  std::string bytes;
  for (const TokenId token : tokens) {
    bytes += served_.engine->tokenizer().bytes(token);
  }
  return bytes;
}

LocalMemory::Written LocalMemory::write(const std::string& bank, std::string_view text,
                                        NoteMaking making) {
  const auto times = [this] {
    const NoteCounters& counters = notes_.counters();
    return Written{0, counters.capture_seconds, counters.choose_seconds, counters.store_seconds};
  };
  const Written before = times();
  proto::NoteWriteRequest request;
  request.text = text;
  const auto result = wait_for<proto::NoteWriteResult>(io_, [&](const Executor& executor) {
    return notes_.write(executor, bank, std::move(request), {}, making);
  });
  const Written after = times();
  return {result.count, after.capture_seconds - before.capture_seconds,
          after.choose_seconds - before.choose_seconds, after.store_seconds - before.store_seconds};
}

std::vector<memory::Note> LocalMemory::address(const std::string& bank, const Tokens& query,
                                               Ranker ranker, std::size_t top) {
  const double before = notes_.counters().search_seconds;
  auto notes = wait_for<std::vector<memory::Note>>(io_, [&](const Executor& executor) {
    return notes_.address(executor, bank, query, ranker, top);
  });
  search_seconds_ = notes_.counters().search_seconds - before;
  return notes;
}

LocalMemory::Tokens LocalMemory::replay(std::span<const memory::Note> notes,
                                        const Tokens& query) const {
  proto::ReplayReport report;
  return recall(notes, query, {kAnswerTokens, served_.engine->max_seq()}, report);
}

Expectation LocalMemory::expect(std::span<const TokenId> prompt,
                                std::span<const TokenId> expected) {
  std::vector<TokenId> tokens(prompt.begin(), prompt.end());
  tokens.insert(tokens.end(), expected.begin(), expected.end());
  state_->reset();
  const std::vector<float> logits = engine::tools::feed(target(), *state_, tokens, kPieceTokens);
  const std::size_t vocab = target().vocab_size();
  Expectation result{1, 1.0};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto row = std::span(logits).subspan((prompt.size() + i - 1) * vocab, vocab);
    const auto token = static_cast<std::size_t>(expected[i]);
    std::size_t rank = 1;
    double sum = 0.0;
    for (std::size_t other = 0; other < vocab; ++other) {
      rank += row[other] > row[token] || (row[other] == row[token] && other < token) ? 1U : 0U;
      sum += std::exp(static_cast<double>(row[other]) - static_cast<double>(row[token]));
    }
    result.rank = std::max(result.rank, rank);
    result.probability /= sum;
  }
  return result;
}

}  // namespace spel::server::tools

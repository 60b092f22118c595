#include "server/tools/local_memory.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "memory/passages.h"

namespace spel::server::tools {
namespace {

using engine::Clock;
using engine::seconds_between;
using engine::TokenId;

constexpr std::size_t kPieceTokens = 128;
constexpr std::size_t kContextTokens = 32;
/// As the server captures: two chunks after a little context, from an empty state.
constexpr std::size_t kWindowTokens = 2 * memory::kChunkTokens;

}  // namespace

LocalMemory::LocalMemory(engine::tools::ModelRig& rig, const engine::Tokenizer& tokenizer,
                         memory::NoteBank& bank)
    : model_(*rig.target),
      tokenizer_(tokenizer),
      bank_(bank),
      observer_(model_.spec()),
      state_(model_.make_state()) {}

std::string LocalMemory::text(const std::vector<TokenId>& tokens) const {
  std::string bytes;
  for (const TokenId token : tokens) {
    bytes += tokenizer_.bytes(token);
  }
  return bytes;
}

engine::Capture LocalMemory::capture(std::span<const TokenId> tokens, std::size_t keep,
                                     bool queries) {
  engine::Capture result;
  state_->reset();
  const std::size_t first_kept = tokens.size() - std::min(keep, tokens.size());
  for (std::size_t at = 0; at < tokens.size();) {
    const std::size_t count = std::min(kPieceTokens, tokens.size() - at);
    const std::size_t skip = first_kept > at ? std::min(first_kept - at, count) : 0;
    const engine::ForwardItem item{state_.get(), tokens.subspan(at, count), false,
                                   engine::LogitRows::kNone, nullptr};
    observer_.aim(&result, skip, queries);
    model_.set_observer(&observer_);
    model_.forward({&item, 1});
    model_.set_observer(nullptr);
    result.tokens += count - skip;
    at += count;
  }
  return result;
}

LocalMemory::Written LocalMemory::write(const std::string& bank, std::span<const TokenId> tokens,
                                        const memory::WriterOptions& options, Passages passages) {
  Written written;
  const std::size_t width = bank_.projection().shape().width();
  memory::Writer writer(bank_.projection(), options);
  std::vector<memory::NoteDraft> drafts;
  for (std::size_t at = 0; at < tokens.size();) {
    const std::size_t count = std::min(kWindowTokens, tokens.size() - at);
    const std::size_t context = std::min(kContextTokens, at);
    const auto begin = Clock::now();
    const engine::Capture captured =
        capture(tokens.subspan(at - context, context + count), count, false);
    const auto read = Clock::now();
    for (std::size_t t = 0; t < count; t += memory::kChunkTokens) {
      const std::size_t chunk = std::min(memory::kChunkTokens, count - t);
      writer.add({tokens.subspan(at + t, chunk),
                  std::span(captured.keys).subspan(t * width, chunk * width)},
                 drafts);
    }
    written.capture_seconds += seconds_between(begin, read);
    written.choose_seconds += seconds_between(read, Clock::now());
    at += count;
  }
  writer.finish(drafts);
  if (passages == Passages::kStored) {
    const auto token_bytes = [this](TokenId token) { return std::string(tokenizer_.bytes(token)); };
    (void)memory::add_passages(tokens, 0, true, token_bytes, drafts);
  }
  for (memory::NoteDraft& draft : drafts) {
    draft.text = text(draft.tokens);
  }
  const auto begin = Clock::now();
  written.notes = bank_.append(bank, drafts).size();
  written.store_seconds = seconds_between(begin, Clock::now());
  return written;
}

std::vector<memory::Note> LocalMemory::address(const std::string& bank,
                                               std::span<const TokenId> query,
                                               memory::Ranker ranker, std::size_t top) {
  engine::Capture captured;
  if (ranker != memory::Ranker::kText) {
    captured = capture(query, memory::kQueryTokens,
                       ranker == memory::Ranker::kNative || ranker == memory::Ranker::kVotes);
  }
  const std::string asked = text({query.begin(), query.end()});
  const auto begin = Clock::now();
  std::vector<memory::Note> notes =
      bank_.address(bank, {captured.keys, captured.queries, asked}, ranker, top);
  search_seconds_ = seconds_between(begin, Clock::now());
  return notes;
}

Expectation LocalMemory::expect(std::span<const TokenId> before, std::span<const TokenId> wanted) {
  std::vector<TokenId> tokens(before.begin(), before.end());
  tokens.insert(tokens.end(), wanted.begin(), wanted.end());
  state_->reset();
  const std::vector<float> logits = engine::tools::feed(model_, *state_, tokens, kPieceTokens);
  const std::size_t vocab = model_.vocab_size();
  Expectation result{1, 1.0};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto row = std::span(logits).subspan((before.size() + i - 1) * vocab, vocab);
    const auto token = static_cast<std::size_t>(wanted[i]);
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

// [4] of `spel selftest`: the document's table of its memory, and what of it must hold.
#include <algorithm>
#include <iomanip>
#include <sstream>

#include "engine/tools/model_rig.h"
#include "engine/tools/selftest/suites.h"
#include "server/tools/haystack.h"
#include "server/tools/local_memory.h"
#include "server/tools/tools.h"

namespace spel::server::tools {
namespace {

using engine::TokenId;
using engine::tools::Checks;
using engine::tools::Subject;
using engine::tools::SuiteContext;
using Tokens = std::vector<TokenId>;

constexpr const char* kBank = "selftest";
// As the document's: three chunks, a needle in each.
constexpr std::size_t kCharacters = 384;
constexpr TokenId kNeedles = 3;
constexpr std::uint64_t kSeed = 4;
constexpr std::size_t kTop = 2;
constexpr std::size_t kPiece = 128;
/// For the text, and a query or what follows it.
constexpr std::size_t kPositionsMin = kCharacters + 32;

/// Characters as tokens of any vocabulary: different ones stay different from 96 tokens on, and in
/// ASCII each is its own code.
Tokens tokens_of(const std::string& text, std::size_t vocab) {
  Tokens tokens;
  for (const char c : text) {
    tokens.push_back(static_cast<TokenId>(static_cast<unsigned char>(c) % vocab));
  }
  return tokens;
}

bool holds(const memory::Note& note, const Tokens& needle) {
  return std::search(note.tokens.begin(), note.tokens.end(), needle.begin(), needle.end()) !=
         note.tokens.end();
}

struct Table {
  LocalMemory::Written written;
  std::uint64_t note_bytes = 0;
  double address_ms = 0.0;
  TokenId contained = 0;
  TokenId found_by_sum = 0;
  TokenId found_by_votes = 0;
  TokenId found_by_default = 0;
  std::string ranks;  ///< Of the planted value, without and with replay.
  std::uint64_t dense_kv = 0;
  std::uint64_t hybrid_kv = 0;
};

/// Cached keys and values of the text, in f32: in every layer, and in the attention layers alone.
void count_kv(const engine::ModelSpec& spec, Table& table) {
  for (const engine::LayerSpec& layer : spec.layers) {
    const std::uint64_t bytes =
        std::uint64_t{2} * kCharacters * engine::inner_width(layer.mixer) * sizeof(float);
    table.dense_kv += bytes;
    table.hybrid_kv += engine::is_attention(layer.mixer) ? bytes : 0;
  }
}

Table measure(const SuiteContext& context, const Subject& subject, Checks& checks) {
  const engine::ModelSpec& spec = subject.weights->target.spec;
  LocalMemory memory(subject.weights, context.kernels, 1, subject.name);
  engine::CausalModel& target = memory.target();
  const auto encode = [&](const std::string& text) { return tokens_of(text, spec.vocab_size); };

  const Haystack haystack = make_haystack(kCharacters, kNeedles, 2, kSeed);
  const Tokens text = encode(haystack.text);
  Table table;
  // The document's notes alone, as its table has them.
  table.written = memory.write(kBank, memory.text(text), {.passages = false});
  table.note_bytes = memory.bank().bank(kBank).bytes;
  count_kv(spec, table);

  // A live sequence: the retrieval branch reads the query on it and puts it back.
  const auto live = target.make_state();
  const auto untouched = target.make_state();
  const auto snapshot = target.make_state();
  (void)engine::tools::feed(target, *live, text, kPiece);
  (void)engine::tools::feed(target, *untouched, text, kPiece);
  snapshot->copy_from(*live);
  for (const PlantedFact& fact : haystack.facts) {
    const Tokens needle = encode(fact.text());
    for (memory::NoteId id = 1; id <= static_cast<memory::NoteId>(table.written.notes); ++id) {
      if (holds(memory.bank().note(kBank, id), needle)) {
        ++table.contained;
        break;
      }
    }
    const Tokens query = encode(fact.query());
    (void)engine::tools::feed(target, *live, query, kPiece);
    live->copy_from(*snapshot);
    const auto found = [&](Ranker ranker) {
      const auto notes = memory.address(kBank, query, ranker, kTop);
      return std::pair(notes,
                       std::any_of(notes.begin(), notes.end(),
                                   [&](const memory::Note& note) { return holds(note, needle); }));
    };
    table.found_by_votes += found(Ranker::kVotes).second ? 1 : 0;
    table.found_by_default += found(Ranker::kFused).second ? 1 : 0;
    const auto [notes, hit] = found(Ranker::kSum);
    table.found_by_sum += hit ? 1 : 0;
    table.address_ms = std::max(table.address_ms, memory.search_seconds() * 1e3);
    const Tokens replayed = memory.replay(notes, query);
    const Tokens value = encode(fact.value);
    table.ranks += (table.ranks.empty() ? "" : ", ") +
                   std::to_string(memory.expect(query, value).rank) + " -> " +
                   std::to_string(memory.expect(replayed, value).rank);
  }
  const Tokens next = encode("the ");
  checks.same_bits(subject.name + ": the live sequence after the retrieval branch",
                   engine::tools::feed(target, *live, next, kPiece),
                   engine::tools::feed(target, *untouched, next, kPiece));
  return table;
}

std::string times(std::uint64_t bytes, std::uint64_t of) {
  std::ostringstream text;
  text << bytes << " B (" << std::fixed << std::setprecision(1)
       << static_cast<double>(bytes) / static_cast<double>(of) << "x)";
  return text.str();
}

void print(const Subject& subject, const Table& table, Checks& checks) {
  const auto row = [&](const char* name, const std::string& value) {
    std::ostringstream line;
    line << "  " << std::left << std::setw(32) << name << value;
    checks.row(line.str());
  };
  const auto milliseconds = [](double ms) {
    std::ostringstream text;
    text << std::fixed << std::setprecision(3) << ms << " ms";
    return text.str();
  };
  const auto of_needles = [](TokenId count) {
    return std::to_string(count) + "/" + std::to_string(kNeedles);
  };
  checks.row(subject.name);
  row("context / chunks / notes", std::to_string(kCharacters) + " / " +
                                      std::to_string(kCharacters / memory::kChunkTokens) + " / " +
                                      std::to_string(table.written.notes));
  row("capture time", milliseconds(table.written.capture_seconds * 1e3));
  row("writer time",
      milliseconds((table.written.choose_seconds + table.written.store_seconds) * 1e3));
  row("address time (Q=8, R=2)", milliseconds(table.address_ms));
  row("writer needle containment", of_needles(table.contained));
  row("summed-similarity recall@2", of_needles(table.found_by_sum));
  row("vote-ranker recall@2", of_needles(table.found_by_votes));
  row("default ranker recall@2", of_needles(table.found_by_default));
  row("note storage", std::to_string(table.note_bytes) + " B");
  row("dense KV, all layers", times(table.dense_kv, table.note_bytes));
  row("hybrid attention KV", times(table.hybrid_kv, table.note_bytes));
  row("value rank, before -> replayed", table.ranks);
}

void check_notebank(const SuiteContext& context, Checks& checks) {
  for (const Subject& subject : context.subjects) {
    if (subject.weights->target.spec.max_seq < kPositionsMin) {
      checks.note(subject.name + ": its context of " +
                  std::to_string(subject.weights->target.spec.max_seq) + " is too short, " +
                  std::to_string(kPositionsMin) + " are needed");
      continue;
    }
    const Table table = measure(context, subject, checks);
    const auto all_found = [&](const char* what, TokenId count) {
      const TokenId expected = kNeedles;
      (void)checks.same_tokens(subject.name + ": " + what, {&count, 1}, {&expected, 1});
    };
    all_found("needles contained", table.contained);
    // What random weights find is luck; it is told and not asked for.
    if (!subject.random) {
      all_found("needles among the two notes most alike", table.found_by_sum);
      all_found("needles among the default ranker's first two", table.found_by_default);
    }
    checks.note("needles " + std::to_string(table.contained) + "/" + std::to_string(kNeedles) +
                ", similarity recall@2 " + std::to_string(table.found_by_sum) + "/" +
                std::to_string(kNeedles) + ", storage " + std::to_string(table.note_bytes) + " B");
    print(subject, table, checks);
  }
}

}  // namespace

int selftest_main(std::span<const std::string> args, engine::tools::ToolStreams streams) {
  return engine::tools::run_selftest(args, streams, &check_notebank);
}

}  // namespace spel::server::tools

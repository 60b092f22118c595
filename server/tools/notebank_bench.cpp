// What the memory finds in long texts, and what replaying it changes.
#include <algorithm>
#include <array>
#include <iomanip>
#include <ostream>
#include <random>
#include <utility>

#include "config/base/error.h"
#include "config/json/value.h"
#include "engine/tools/model_rig.h"
#include "engine/tools/shape.h"
#include "server/tools/haystack.h"
#include "server/tools/local_memory.h"
#include "server/tools/search_bench.h"
#include "server/tools/sentence_bench.h"
#include "server/tools/tools.h"

namespace spel::server::tools {
namespace {

using engine::tools::Options;

constexpr std::uint64_t kSeed = 20;
constexpr const char* kBank = "bench";
constexpr std::size_t kTop = 2;
constexpr std::size_t kDepth = 8;
constexpr std::size_t kSearchNotesMax = 1'000'000;
constexpr auto& kRankers = kNames<Ranker>;

/// Shares of the questions asked.
struct Recall {
  double at_1 = 0.0;
  double at_2 = 0.0;
  double at_8 = 0.0;
};

struct Answers {
  double rank_1 = 0.0;
  double probability = 0.0;
};

struct Figures {
  std::size_t questions = 0;
  std::uint64_t notes = 0;
  std::uint64_t bytes = 0;
  double contained = 0.0;
  std::array<Recall, kRankers.size()> recalls;
  Answers none;
  Answers random_note;
  Answers gold;
  Answers retrieved;
  LocalMemory::Written written;
};

bool holds(const memory::Note& note, const PlantedFact& fact) {
  return note.text.find(fact.text()) != std::string::npos;
}

void count_recall(const std::vector<memory::Note>& notes, const PlantedFact& fact, double share,
                  Recall& recall) {
  for (std::size_t i = 0; i < notes.size(); ++i) {
    if (holds(notes[i], fact)) {
      recall.at_1 += i < 1 ? share : 0.0;
      recall.at_2 += i < 2 ? share : 0.0;
      recall.at_8 += share;
      return;
    }
  }
}

void count_answer(const Expectation& expectation, double share, Answers& answers) {
  answers.rank_1 += expectation.rank == 1 ? share : 0.0;
  answers.probability += expectation.probability * share;
}

Figures measure(LocalMemory& memory, const Haystack& haystack, std::size_t questions,
                NoteMaking making) {
  Figures figures;
  memory::NoteBank& bank = memory.bank();
  figures.written = memory.write(kBank, haystack.text, making);
  figures.notes = figures.written.notes;
  figures.bytes = bank.bank(kBank).bytes;
  std::vector<memory::Note> all;
  for (memory::NoteId id = 1; id <= static_cast<memory::NoteId>(figures.notes); ++id) {
    all.push_back(bank.note(kBank, id));
  }
  for (const PlantedFact& fact : haystack.facts) {
    const bool contained = std::any_of(all.begin(), all.end(),
                                       [&](const memory::Note& note) { return holds(note, fact); });
    figures.contained += contained ? 1.0 / static_cast<double>(haystack.facts.size()) : 0.0;
  }
  figures.questions = std::min(questions, haystack.facts.size());
  const double share = 1.0 / static_cast<double>(figures.questions);
  std::mt19937_64 random(kSeed);
  for (std::size_t i = 0; i < figures.questions; ++i) {
    const PlantedFact& fact = haystack.facts[i * haystack.facts.size() / figures.questions];
    const std::string query = fact.query();
    std::vector<memory::Note> found;
    for (std::size_t ranker = 0; ranker < kRankers.size(); ++ranker) {
      auto notes = memory.address(kBank, query, kRankers[ranker].first, kDepth);
      count_recall(notes, fact, share, figures.recalls[ranker]);
      if (ranker == 0) {
        found = std::move(notes);
      }
    }
    found.resize(std::min(kTop, found.size()));
    const std::size_t gold_from = fact.at - std::min<std::size_t>(fact.at, 16);
    count_answer(memory.expect(query, fact.value), share, figures.none);
    count_answer(memory.expect(all[random() % all.size()].text + query, fact.value), share,
                 figures.random_note);
    count_answer(memory.expect(haystack.text.substr(gold_from, 48) + query, fact.value), share,
                 figures.gold);
    count_answer(
        memory.expect(memory.replay(found, memory.encode(query)), memory.encode(fact.value)), share,
        figures.retrieved);
  }
  return figures;
}

void print(const Figures& figures, const SearchFigures& search, std::ostream& out) {
  const auto recall = [&](std::string_view name, const Recall& r) {
    out << "  recall @1/@2/@8, " << std::setw(8) << std::left << name << r.at_1 << " / " << r.at_2
        << " / " << r.at_8 << "\n";
  };
  const auto answers = [&](const char* name, const Answers& a) {
    out << "  rank 1, probability, " << std::setw(10) << std::left << name << a.rank_1 << ", "
        << a.probability << "\n";
  };
  out << std::fixed << std::setprecision(3) << figures.notes << " notes, " << figures.questions
      << " questions; facts contained whole: " << figures.contained << "\n";
  for (std::size_t ranker = 0; ranker < kRankers.size(); ++ranker) {
    recall(kRankers[ranker].second, figures.recalls[ranker]);
  }
  answers("no replay", figures.none);
  answers("random", figures.random_note);
  answers("gold", figures.gold);
  answers("retrieved", figures.retrieved);
  out << "  write: capture " << figures.written.capture_seconds << " s, choose "
      << figures.written.choose_seconds << " s, store " << figures.written.store_seconds << " s; "
      << figures.bytes / figures.notes << " bytes a note\n";
  for (const SearchFigure& size : search.searches) {
    out << "  search of " << size.notes << " notes: " << size.milliseconds << " ms, "
        << size.bytes_per_second / 1e9 << " GB/s; by text " << size.text_milliseconds << " ms, "
        << size.text_bytes_per_note << " bytes a note\n";
  }
  out << "  one core reads memory at " << search.read_bytes_per_second / 1e9 << " GB/s\n";
}

void print_json(const Figures& figures, const SearchFigures& search, std::ostream& out) {
  JsonValue json{{"notebank_notes", figures.notes},
                 {"notebank_questions", figures.questions},
                 {"notebank_contained", figures.contained},
                 {"notebank_recall_at_1", figures.recalls[0].at_1},
                 {"notebank_recall_at_2", figures.recalls[0].at_2},
                 {"notebank_recall_at_8", figures.recalls[0].at_8}};
  for (std::size_t ranker = 1; ranker < kRankers.size(); ++ranker) {
    json["notebank_recall_at_2_" + std::string(kRankers[ranker].second)] =
        figures.recalls[ranker].at_2;
  }
  const auto answers = [&](const std::string& name, const Answers& a) {
    json["notebank_rank1_" + name] = a.rank_1;
    json["notebank_probability_" + name] = a.probability;
  };
  answers("none", figures.none);
  answers("random", figures.random_note);
  answers("gold", figures.gold);
  answers("replay", figures.retrieved);
  json["notebank_bytes_per_note"] = figures.bytes / figures.notes;
  json["notebank_capture_seconds"] = figures.written.capture_seconds;
  json["notebank_choose_seconds"] = figures.written.choose_seconds;
  json["notebank_store_seconds"] = figures.written.store_seconds;
  for (const SearchFigure& size : search.searches) {
    json["notebank_address_ms_" + size.name] = size.milliseconds;
    json["notebank_address_gb_s_" + size.name] = size.bytes_per_second / 1e9;
    json["notebank_text_address_ms_" + size.name] = size.text_milliseconds;
    json["notebank_text_bytes_per_note_" + size.name] = size.text_bytes_per_note;
  }
  json["memory_read_gb_s"] = search.read_bytes_per_second / 1e9;
  out << dump_json(json) << "\n";
}

}  // namespace

int notebank_bench(const Options& options, std::ostream& out) {
  const auto number = [&](const char* name, std::uint64_t fallback, std::uint64_t max) {
    const auto text = options.value(name);
    return static_cast<std::size_t>(
        text ? engine::tools::parse_unsigned(std::string("--") + name, *text, max) : fallback);
  };
  const auto path = engine::tools::find_model(options);
  if (!path) {
    throw Error(ErrorCode::kInvalidArgument, "no model: give --model PATH");
  }
  const std::size_t sentences = number("sentences", 0, kSentencesMax);
  const Haystack haystack = make_haystack(number("characters", 4096, 16U << 20U),
                                          number("facts", 3, 1000), number("digits", 2, 3), kSeed);
  const engine::LoadedModel loaded = engine::load_text_model(*path, engine::WeightsDtype::kBf16);
  engine::tools::require_shape(loaded.config, std::nullopt);
  const auto& weights = loaded.weights;
  const kernels::Kernels& kernels = engine::tools::kernels_from_environment();
  LocalMemory memory(weights, kernels, std::max<std::size_t>(number("threads", 1, 64), 1),
                     weights->sha256);
  if (sentences > 0) {
    print_sentences(measure_sentences(memory, sentences), sentences, options.has("json"), out);
    return engine::tools::kToolOk;
  }
  NoteMaking making;
  making.score = options.value("score").value_or("window") == "peak" ? memory::SpanScore::kPeak
                                                                     : memory::SpanScore::kWindow;
  const Figures figures = measure(memory, haystack, number("questions", 300, 1000), making);
  const SearchFigures search =
      measure_search(kernels, number("search-notes", kSearchNotesMax, kSearchNotesMax));
  if (options.has("json")) {
    print_json(figures, search, out);
  } else {
    print(figures, search, out);
  }
  return engine::tools::kToolOk;
}

}  // namespace spel::server::tools

// The document's story on one screen: branch, retrieve, restore, replay, decode speculatively.
#include <iomanip>
#include <ostream>

#include "config/base/error.h"
#include "engine/tools/model_rig.h"
#include "engine/tools/shape.h"
#include "server/tools/haystack.h"
#include "server/tools/local_memory.h"
#include "server/tools/tools.h"

namespace spel::server::tools {
namespace {

using engine::tools::Options;
using engine::tools::ToolStreams;

constexpr const char* kUsage = "usage: spel demo [--model PATH]\n";
constexpr const char* kBank = "demo";
constexpr std::size_t kCharacters = 4096;
constexpr std::size_t kFacts = 3;
constexpr std::uint64_t kSeed = 7;

void say(std::ostream& out, const char* what, const Expectation& expectation) {
  out << "  " << std::setw(24) << std::left << what << "rank " << expectation.rank
      << ", probability " << expectation.probability << "\n";
}

void show_decoding(LocalMemory& memory, const LocalMemory::Tokens& prompt, std::ostream& out) {
  engine::GenerationRequest request;
  request.prompt = prompt;
  request.max_tokens = 5;
  request.sampling.temperature = 0.0F;
  request.speculation.governor = engine::GovernorKind::kOff;
  const engine::tools::Generated answer = memory.generate(std::move(request));
  const engine::GenerationStats& stats = answer.finish.stats;
  out << "  decoded speculatively:  \"" << memory.text(answer.tokens) << "\" (" << stats.accepted
      << " of " << stats.proposed << " proposals accepted in " << stats.rounds << " rounds)\n";
}

int run(const Options& options, std::ostream& out) {
  const auto path = engine::tools::find_model(options);
  if (!path) {
    throw Error(ErrorCode::kInvalidArgument, "no model: give --model PATH");
  }
  out << "loading " << path->string() << std::endl;
  const engine::LoadedModel loaded = engine::load_text_model(*path, engine::WeightsDtype::kBf16);
  engine::tools::require_shape(loaded.config, std::nullopt);
  const auto& weights = loaded.weights;
  LocalMemory memory(weights, engine::tools::kernels_from_environment(), 1, weights->sha256);
  engine::CausalModel& target = memory.target();

  const Haystack haystack = make_haystack(kCharacters, kFacts, 2, kSeed);
  out << "reading a text of " << kCharacters << " characters and writing its notes" << std::endl;
  const auto written = memory.write(kBank, haystack.text);
  out << "wrote " << kCharacters << " characters: " << written.notes << " notes, "
      << memory.bank().bank(kBank).bytes << " bytes; capture " << std::fixed << std::setprecision(3)
      << written.capture_seconds << " s, choice " << written.choose_seconds << " s, store "
      << written.store_seconds << " s\n";

  // A live sequence: the retrieval branch must leave it as it was.
  const auto live = target.make_state();
  const auto snapshot = target.make_state();
  const auto context = memory.encode(haystack.text.substr(0, 256));
  (void)engine::tools::feed(target, *live, context, 128);
  snapshot->copy_from(*live);

  for (const PlantedFact& fact : haystack.facts) {
    const std::string query = fact.query();
    out << "question " << query << " (planted: " << fact.value << " at " << fact.at << ")"
        << std::endl;
    // Branch: the query is read on the live state, which is then put back.
    const auto read = memory.encode(query);
    const auto value = memory.encode(fact.value);
    (void)engine::tools::feed(target, *live, read, 128);
    live->copy_from(*snapshot);
    const auto notes = memory.address(kBank, query, Ranker::kFused, 2);
    for (const memory::Note& note : notes) {
      out << "  note " << note.id << " at " << note.start << ", likeness " << note.score << ": \""
          << note.text << "\"\n";
    }
    out << "  search took " << memory.search_seconds() * 1e3 << " ms\n";
    say(out, "value before replay:", memory.expect(read, value));
    const LocalMemory::Tokens replayed = memory.replay(notes, read);
    say(out, "value after replay:", memory.expect(replayed, value));
    show_decoding(memory, replayed, out);
  }

  // The restored state and one that never branched go on with the same bits.
  const auto next = memory.encode("the ");
  const bool same = engine::tools::feed(target, *live, next, 128) ==
                    engine::tools::feed(target, *snapshot, next, 128);
  out << "the live sequence after all this: " << (same ? "same bits" : "DIFFERENT") << "\n";
  return same ? engine::tools::kToolOk : engine::tools::kToolFailed;
}

}  // namespace

int demo_main(std::span<const std::string> args, ToolStreams streams) {
  return engine::tools::run_subcommand(
      {"spel demo", kUsage, {{"model"}, {}, 0}}, args, streams,
      [&](const Options& options) { return run(options, streams.out); });
}

}  // namespace spel::server::tools

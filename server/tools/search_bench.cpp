#include "server/tools/search_bench.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <span>
#include <string>

#include "engine/tools/bench/timing.h"
#include "engine/types.h"
#include "memory/bf16.h"
#include "memory/index.h"
#include "memory/note_bank.h"
#include "memory/text_index.h"

namespace spel::server::tools {
namespace {

struct Size {
  const char* name;
  std::size_t notes;
  std::size_t runs;
};
constexpr std::array<Size, 3> kSizes{
    {{"10k", 10'000, 101}, {"100k", 100'000, 31}, {"1m", 1'000'000, 11}}};
constexpr std::size_t kTop = 2;
constexpr std::size_t kReadBytes = 512U << 20;
constexpr std::size_t kReadRuns = 5;
constexpr std::size_t kSketch = memory::kSketchCoordinates * memory::kAnchors;

/// Sketches are windows into a pool: a million of them cost no million times the drawing.
class Sketches {
 public:
  Sketches() : pool_(kPool) {
    // About the spread of a coordinate of a unit vector of so many.
    std::normal_distribution<float> value(0.0F, 0.18F);
    for (std::uint16_t& coordinate : pool_) {
      coordinate = memory::to_bf16(value(random_));
    }
  }
  [[nodiscard]] std::span<const std::uint16_t> next() {
    return std::span(pool_).subspan(random_() % (kPool - kSketch), kSketch);
  }

 private:
  static constexpr std::size_t kPool = 1U << 20;
  std::mt19937 random_{11};
  std::vector<std::uint16_t> pool_;
};

/// Sentences that differ in a number: the hardest case, where every note has most of the query.
std::string text_of(std::size_t number, bool with_answer) {
  const std::string question = "The price of item " + std::to_string(number) + " is ";
  return with_answer ? question + std::to_string(number * 7919 % 10007) + " coins." : question;
}

double median(std::vector<double> values) {
  return engine::tools::spread_of(std::move(values)).median;
}

}  // namespace

SearchFigures measure_search(const kernels::Kernels& kernels, std::size_t notes_max) {
  SearchFigures figures;
  Sketches sketches;
  std::vector<float> query;
  for (const std::uint16_t coordinate :
       sketches.next().first(memory::kQueryTokens * memory::kSketchCoordinates)) {
    query.push_back(memory::from_bf16(coordinate));
  }
  memory::SketchIndex index(kernels);
  memory::TextIndex texts;
  const std::string asked = text_of(17, false);
  for (const Size& size : kSizes) {
    if (size.notes > notes_max) {
      break;
    }
    while (index.size() < size.notes) {
      const std::size_t number = index.size() + 1;
      index.add(static_cast<memory::NoteId>(number), number, sketches.next());
      texts.add(static_cast<memory::NoteId>(number), number, text_of(number, true));
    }
    const auto time = [&](const auto& search) {
      std::vector<double> seconds;
      for (std::size_t run = 0; run < size.runs; ++run) {
        const auto begin = engine::Clock::now();
        search();
        seconds.push_back(engine::seconds_between(begin, engine::Clock::now()));
      }
      return median(std::move(seconds));
    };
    const double typical = time([&] { (void)index.search(query, kTop); });
    const double by_text = time([&] { (void)texts.search(asked, kTop); });
    const double bytes = static_cast<double>(size.notes * memory::kCoarseBytes +
                                             memory::SketchIndex::kRerank * kSketch * 2);
    figures.searches.push_back(
        {size.name, size.notes, typical * 1e3, bytes / typical, by_text * 1e3,
         static_cast<double>(texts.bytes()) / static_cast<double>(size.notes)});
  }
  const engine::tools::ReadBandwidth memory_read(kReadBytes);
  std::vector<double> rates;
  for (std::size_t run = 0; run < kReadRuns; ++run) {
    const auto begin = engine::Clock::now();
    (void)memory_read.read();
    rates.push_back(static_cast<double>(memory_read.bytes()) /
                    engine::seconds_between(begin, engine::Clock::now()));
  }
  figures.read_bytes_per_second = median(std::move(rates));
  return figures;
}

}  // namespace spel::server::tools

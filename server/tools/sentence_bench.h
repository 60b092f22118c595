// What the memory finds in ordinary sentences: facts in one form, asked for by the characters right
// before the answer.
#pragma once

#include <array>
#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include "server/tools/local_memory.h"

namespace spel::server::tools {

/// A hundred names there are.
inline constexpr std::size_t kSentencesMax = 100;

/// Shares of the facts whose key and answer stand whole in the first note, or one of the first two.
struct SentenceRecall {
  double at_1 = 0.0;
  double at_2 = 0.0;
};

struct SentenceFigures {
  std::string form;
  bool one_text = false;  ///< All facts in one write, or each in its own.
  std::size_t notes = 0;
  double bytes_per_note = 0.0;
  SentenceRecall sum;
  SentenceRecall text;
  SentenceRecall fused;
};

/// `facts` of each form, up to kSentencesMax, at the default notes a chunk.
[[nodiscard]] std::vector<SentenceFigures> measure_sentences(LocalMemory& memory,
                                                             std::size_t facts);
void print_sentences(const std::vector<SentenceFigures>& figures, std::size_t facts, bool json,
                     std::ostream& out);

}  // namespace spel::server::tools

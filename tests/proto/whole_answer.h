// A whole answer in one text.
#pragma once

#include <string>
#include <vector>

#include "proto/responses.h"

namespace spel::proto {

inline std::string whole_answer(WholeAnswer::Kind kind, const ResponseHead& head,
                                const std::vector<Choice>& choices, const Receipt& receipt) {
  std::string text;
  WholeAnswer answer(kind, head);
  answer.begin(text);
  for (const Choice& choice : choices) {
    answer.add(choice, text);
  }
  WholeAnswer::end(receipt, text);
  return text;
}

inline std::string completion_response(const ResponseHead& head, const std::vector<Choice>& choices,
                                       const Receipt& receipt) {
  return whole_answer(WholeAnswer::Kind::kCompletion, head, choices, receipt);
}

inline std::string chat_response(const ResponseHead& head, const std::vector<Choice>& choices,
                                 const Receipt& receipt) {
  return whole_answer(WholeAnswer::Kind::kChat, head, choices, receipt);
}

}  // namespace spel::proto

// Token bytes: however the output is cut into tokens and held back, the pieces joined are the valid
// UTF-8 of the whole, and every token is given out once. Of each three bytes of input the first
// says where tokens end, the second how much is held, the third is output; the first input byte
// says where the text is cut.
#include <algorithm>
#include <cstdint>
#include <string>

#include "proto/text_assembler.h"
#include "tests/fuzz/require.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using spel::fuzz::require;
  if (size == 0) {
    return 0;
  }
  std::string whole;
  for (std::size_t i = 3; i < size; i += 3) {
    whole += static_cast<char>(data[i]);
  }
  const std::size_t text_bytes = std::min<std::size_t>(data[0], whole.size());

  spel::proto::TextAssembler assembler;
  std::string joined;
  std::string token;
  std::size_t pushed = 0;
  std::size_t tokens = 0;
  std::size_t in_text = 0;
  std::size_t given = 0;
  const auto take = [&](const spel::proto::TextAssembler::Piece& piece) {
    require(spel::proto::is_valid_utf8(piece.text), "a piece is valid UTF-8");
    joined += piece.text;
    given += piece.tokens;
    require(given <= tokens, "no more tokens than were pushed");
  };
  const auto push = [&](std::size_t more_held) {
    in_text += text_bytes == whole.size() || pushed < text_bytes ? 1U : 0U;
    ++tokens;
    pushed += token.size();
    const std::size_t beyond = pushed > text_bytes ? pushed - text_bytes : 0;
    take(assembler.push(token, beyond + more_held));
    token.clear();
  };
  for (std::size_t i = 3; i < size; i += 3) {
    token += static_cast<char>(data[i]);
    if (data[i - 2] % 3 == 0) {
      push(data[i - 1] % 8);
    }
    if (data[i - 2] % 16 == 0) {
      push(0);  // A token without bytes.
    }
  }
  push(0);
  take(assembler.finish(text_bytes));
  require(joined == spel::proto::to_valid_utf8(std::string_view(whole).substr(0, text_bytes)),
          "the pieces are the text");
  require(given == in_text, "every token of the text was given out");
  return 0;
}

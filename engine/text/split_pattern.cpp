#define PCRE2_CODE_UNIT_WIDTH 8
#include "engine/text/split_pattern.h"

#include <array>
#include <pcre2.h>
#include <utility>

#include "config/base/error.h"
#include "config/base/limits.h"

namespace spel::engine {
namespace {

/// What one match may cost: beyond it lies a pattern that backtracks without end.
constexpr std::uint32_t kMatchStepsMax = 10'000'000;
constexpr std::uint32_t kHeapKibMax = 64 * 1024;
/// Bytes of a pattern that a message repeats.
constexpr std::size_t kShownMax = 32;

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
struct FreeData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

static_assert(PCRE2_MAJOR > 10 || PCRE2_MINOR >= 40, "PCRE2 knows White_Space from 10.40 on");

/// `pattern` with its blanks spelled as Unicode's. PCRE2's own \s goes by an older list that has
/// U+180E, the Mongolian vowel separator, among them; Oniguruma, which the files are written for,
/// goes by this property.
std::string with_unicode_blanks(std::string_view pattern) {
  std::string out;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    out += pattern[at];
    if (pattern[at] != '\\' || at + 1 == pattern.size()) {
      continue;
    }
    const char escaped = pattern[++at];
    if (escaped == 's' || escaped == 'S') {
      out += escaped == 's' ? 'p' : 'P';
      out += "{White_Space}";
    } else {
      out += escaped;
    }
  }
  return out;
}

}  // namespace

struct SplitPattern::Compiled {
  std::unique_ptr<pcre2_code, FreeCode> code;
  std::unique_ptr<pcre2_match_context, FreeContext> context;
};

SplitPattern::SplitPattern(const std::string& pattern, const std::string& where)
    : compiled_(std::make_unique<Compiled>()) {
  if (pattern.size() > limits::kSplitPatternBytesMax) {
    throw Error(ErrorCode::kCorrupt, where + " has " + std::to_string(pattern.size()) +
                                         " bytes; expected at most " +
                                         std::to_string(limits::kSplitPatternBytesMax));
  }
  const std::string spelled = with_unicode_blanks(pattern);
  int error = 0;
  std::size_t offset = 0;
  compiled_->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(spelled.data()), spelled.size(),
                                      PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error,
                                      &offset, nullptr));
  if (!compiled_->code) {
    throw Error(ErrorCode::kCorrupt, where + " cannot be compiled: " + message_of(error) +
                                         " before \"" + spelled.substr(offset, kShownMax) + "\"");
  }
  compiled_->context.reset(pcre2_match_context_create(nullptr));
  if (!compiled_->context) {
    throw std::bad_alloc();
  }
  pcre2_set_match_limit(compiled_->context.get(), kMatchStepsMax);
  pcre2_set_heap_limit(compiled_->context.get(), kHeapKibMax);
  // Without one, as on a processor PCRE2 has none for, patterns are interpreted: the same matches.
  (void)pcre2_jit_compile(compiled_->code.get(), PCRE2_JIT_COMPLETE);
}

SplitPattern::~SplitPattern() = default;
SplitPattern::SplitPattern(SplitPattern&&) noexcept = default;
SplitPattern& SplitPattern::operator=(SplitPattern&&) noexcept = default;

void SplitPattern::split(std::string_view text,
                         const std::function<void(std::string_view)>& piece) const {
  const std::unique_ptr<pcre2_match_data, FreeData> data(pcre2_match_data_create(1, nullptr));
  if (!data) {
    throw std::bad_alloc();
  }
  std::size_t done = 0;
  std::size_t from = 0;
  while (from < text.size()) {
    const int found = pcre2_match(compiled_->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                                  text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY,
                                  data.get(), compiled_->context.get());
    if (found == PCRE2_ERROR_NOMATCH) {
      break;
    }
    if (found < 0) {
      throw Error(ErrorCode::kInvalidArgument,
                  "the text cannot be cut into words: " + message_of(found) + " at byte " +
                      std::to_string(from));
    }
    const PCRE2_SIZE* match = pcre2_get_ovector_pointer(data.get());
    if (match[0] > done) {
      piece(text.substr(done, match[0] - done));
    }
    piece(text.substr(match[0], match[1] - match[0]));
    done = from = match[1];
  }
  if (done < text.size()) {
    piece(text.substr(done));
  }
}

}  // namespace spel::engine

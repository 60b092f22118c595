#include "engine/template/marked_text.h"

#include <algorithm>
#include <utility>

namespace spel::engine {
namespace {

void mark(std::vector<ByteRange>& ranges, std::size_t begin, std::size_t end) {
  if (begin == end) {
    return;
  }
  if (!ranges.empty() && ranges.back().end == begin) {
    ranges.back().end = end;
  } else {
    ranges.push_back({begin, end});
  }
}

}  // namespace

MarkedText::MarkedText(std::string of, bool is_foreign) : text(std::move(of)) {
  if (is_foreign) {
    mark(foreign, 0, text.size());
  }
}

void MarkedText::append(std::string_view more, bool is_foreign) {
  const std::size_t begin = text.size();
  text += more;
  if (is_foreign) {
    mark(foreign, begin, text.size());
  }
}

void MarkedText::append(const MarkedText& more) { append(more, 0, more.text.size()); }

void MarkedText::append(const MarkedText& more, std::size_t begin, std::size_t end) {
  const std::size_t at = text.size();
  text.append(more.text, begin, end - begin);
  auto range = std::ranges::upper_bound(more.foreign, begin, {}, &ByteRange::end);
  for (; range != more.foreign.end() && range->begin < end; ++range) {
    mark(foreign, at + std::max(range->begin, begin) - begin,
         at + std::min(range->end, end) - begin);
  }
}

MarkedText MarkedText::part(std::size_t begin, std::size_t end) const {
  MarkedText result;
  result.append(*this, begin, end);
  return result;
}

bool MarkedText::is_foreign(std::size_t byte) const {
  const auto range = std::ranges::upper_bound(foreign, byte, {}, &ByteRange::end);
  return range != foreign.end() && range->begin <= byte;
}

}  // namespace spel::engine

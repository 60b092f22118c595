// A template's source as tokens. Internal to engine/template.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spel::engine {

/// Where something stands in the source, both from 1.
struct TemplatePlace {
  std::size_t line = 1;
  std::size_t column = 1;
};

struct TemplateToken {
  enum class Kind {
    kData,        ///< Text between tags, what surrounds it taken off already.
    kBlockBegin,  ///< {%
    kBlockEnd,
    kPrintBegin,  ///< {{
    kPrintEnd,
    kName,
    kText,  ///< A string literal, its escapes resolved.
    kInt,
    kFloat,
    kSign,  ///< An operator or a bracket, in `text`.
    kEnd,
  };
  Kind kind = Kind::kEnd;
  std::string text;
  std::int64_t integer = 0;
  double real = 0.0;
  TemplatePlace place;
};

/// As Jinja with trim_blocks and lstrip_blocks on: the newline behind a block tag goes with it, and
/// so do the blanks before one that begins its line; "-" takes all blanks on its side, "+" leaves
/// them. Throws TemplateSyntaxError naming `name`, line and column.
[[nodiscard]] std::vector<TemplateToken> template_tokens(std::string_view source,
                                                         const std::string& name);

/// Throws TemplateSyntaxError.
[[noreturn]] void refuse_template(const std::string& name, TemplatePlace place,
                                  const std::string& why);

}  // namespace spel::engine

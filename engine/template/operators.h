// What Python's operators and conversions do. Internal to engine/template.
#pragma once

#include <cstddef>
#include <string_view>

#include "engine/template/render.h"
#include "engine/template/value.h"

namespace spel::engine {

/// str(value): what a print tag writes.
[[nodiscard]] MarkedText text_of_value(const TemplateValue& value, TemplateWork& work);

/// json.dumps(value, ensure_ascii=False): keys in order, ", " and ": " between them. `indent`: 0
/// for one line.
[[nodiscard]] MarkedText json_of_value(const TemplateValue& value, std::size_t indent,
                                       TemplateWork& work);

/// + - * / // % **
[[nodiscard]] TemplateValue binary(std::string_view sign, const TemplateValue& a,
                                   const TemplateValue& b, TemplateWork& work);
/// == != < <= > >= in, not in
[[nodiscard]] bool compare(std::string_view sign, const TemplateValue& a, const TemplateValue& b,
                           TemplateWork& work);
/// a < b.
[[nodiscard]] bool is_less(const TemplateValue& a, const TemplateValue& b, TemplateWork& work);

/// The elements of a list, the keys of a mapping, the characters of a string.
[[nodiscard]] TemplateValue::List elements(const TemplateValue& value, TemplateWork& work);

/// object[index]; undefined where there is none.
[[nodiscard]] TemplateValue item(const TemplateValue& object, const TemplateValue& index,
                                 TemplateWork& work);
/// object.name, methods apart; undefined where there is none.
[[nodiscard]] TemplateValue attribute(const TemplateValue& object, std::string_view name,
                                      TemplateWork& work);
/// object[begin:end:step]; an absent one is none.
[[nodiscard]] TemplateValue slice(const TemplateValue& object, const TemplateValue& begin,
                                  const TemplateValue& end, const TemplateValue& step,
                                  TemplateWork& work);

/// Where each character of a text begins, and its end behind them.
[[nodiscard]] std::vector<std::size_t> character_offsets(std::string_view text);

}  // namespace spel::engine

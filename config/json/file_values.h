// The values of a file that someone else wrote: each of the kind its form asks for, or an
// Error(kCorrupt) that says where, what was found and what was expected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "config/json/reader.h"
#include "config/json/value.h"

namespace spel {

/// `text` as JSON for a message, cut where it is long.
[[nodiscard]] std::string shown_text(std::string_view text);

/// "WHERE is FOUND; expected EXPECTED".
[[noreturn]] void refuse_value(const JsonValue& found, const std::string& where,
                               const std::string& expected);

/// The object that `text`, the content of `source`, must hold; a byte order mark is refused.
[[nodiscard]] JsonObject read_file_object(std::string_view text, const std::string& source,
                                          const JsonLimits& limits);
/// A member of it, which must be there. It is built anew and not kept: a file with many costs the
/// memory of one at a time.
[[nodiscard]] JsonValue file_member(const JsonObject& object, std::string_view name,
                                    const std::string& source);

/// A number written without fraction, exponent or sign, at most `max`.
[[nodiscard]] std::uint64_t whole_number(const JsonValue& value, const std::string& where,
                                         std::uint64_t max);
/// A number; all that JSON can spell and a double can hold.
[[nodiscard]] double real_number(const JsonValue& value, const std::string& where);
[[nodiscard]] bool true_or_false(const JsonValue& value, const std::string& where);
[[nodiscard]] const std::string& text_of(const JsonValue& value, const std::string& where);
/// At most `max` elements.
[[nodiscard]] std::span<const JsonValue> elements_of(const JsonValue& value,
                                                     const std::string& where, std::size_t max);
[[nodiscard]] std::span<const JsonValue::Member> members_of(const JsonValue& value,
                                                            const std::string& where);

}  // namespace spel

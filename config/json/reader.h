// Untrusted text to JSON, within limits.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "config/base/error.h"
#include "config/base/limits.h"
#include "config/json/value.h"

namespace spel {

/// What a text may cost before it is refused. All are counted while it is read, before anything is
/// built.
struct JsonLimits {
  std::size_t bytes = limits::kBodyBytesDefault;
  std::size_t depth = limits::kJsonDepthDefault;
  std::size_t values = limits::kJsonValuesMax;    ///< In the whole text, of whatever kind.
  std::size_t members = limits::kJsonMembersMax;  ///< Of any one object.
  /// Arrays, objects, members and strings of what is built: those that cost more memory than text.
  std::size_t parts = limits::kJsonPartsMax;
  bool comments = false;  ///< /* … */ and // … count as blanks.
};

/// A text that is not JSON, or goes over a limit. `what()` says so in words for the log.
class JsonError : public Error {
 public:
  enum class Fault { kTooLong, kSyntax, kNotObject, kTooDeep, kDuplicateKey, kTooMuch };

  JsonError(Fault fault, const std::string& message)
      : Error(ErrorCode::kInvalidArgument, message), fault_(fault) {}

  [[nodiscard]] Fault fault() const noexcept { return fault_; }

  std::size_t position = 0;  ///< kSyntax: the byte, from 1.
  /// kDuplicateKey: its beginning. kSyntax: that of the outermost member it stands in or behind.
  std::string key;
  bool top_level = false;  ///< kDuplicateKey: it is a member of the outermost object.

 private:
  Fault fault_;
};

/// Strictly one value: no comments unless allowed, no NaN, no number beyond a double, no invalid
/// UTF-8, no NUL byte, no key twice in an object, nothing after the end. A leading byte order mark
/// is skipped. Throws JsonError.
[[nodiscard]] JsonValue read_json(std::string_view text, const JsonLimits& limits = {});

/// An object of which only the members asked for are built. The whole text is checked at once, as
/// strictly as read_json() does. `text` must outlive it.
class JsonObject {
 public:
  JsonObject(std::string_view text, const JsonLimits& limits);

  /// Valid as long as this is; nullptr where there is none. Throws JsonError (kTooMuch) where this
  /// and those asked for before have too many parts.
  [[nodiscard]] JsonValue* find(std::string_view name);
  /// The same, built anew and not kept: where there are many, only those still wanted take memory.
  [[nodiscard]] std::optional<JsonValue> build(std::string_view name) const;
  [[nodiscard]] bool contains(std::string_view name) const { return members_.contains(name); }
  [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }

  /// Names, and the offsets of what follows them in the text.
  using Members = std::map<std::string, std::size_t, std::less<>>;
  [[nodiscard]] const Members& members() const noexcept { return members_; }

 private:
  [[nodiscard]] JsonValue build_at(std::size_t place, std::size_t& parts) const;

  std::string_view text_;
  JsonLimits limits_;
  std::size_t parts_ = 0;
  Members members_;
  std::map<std::string, JsonValue, std::less<>> built_;
};

}  // namespace spel

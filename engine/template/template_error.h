// What can be wrong with a template, or come of rendering it.
#pragma once

#include <cstddef>
#include <string>

#include "config/base/error.h"

namespace spel::engine {

/// The template uses what this interpreter does not know, or is not well formed: it is never
/// rendered. The message begins with its name, line and column.
class TemplateSyntaxError : public Error {
 public:
  explicit TemplateSyntaxError(const std::string& message) : Error(ErrorCode::kCorrupt, message) {}
};

/// Of a rendering. The message may be shown to whoever asked for it.
class TemplateError : public Error {
 public:
  enum class Kind {
    kRaised,  ///< The template itself refused; the message is its own words.
    kWrong,   ///< An operation that these values do not have; the message names the line.
    kLimit,   ///< More work or memory than a rendering may take.
  };

  TemplateError(Kind kind, const std::string& message)
      : Error(ErrorCode::kInvalidArgument, message), kind_(kind) {}

  [[nodiscard]] Kind kind() const noexcept { return kind_; }

 private:
  Kind kind_;
};

}  // namespace spel::engine

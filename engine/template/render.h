// What a rendering may cost, and how far it is. Internal to engine/template.
#pragma once

#include <cstddef>
#include <string>

#include "engine/template/lexer.h"
#include "engine/template/template_error.h"
#include "engine/template/template_limits.h"

namespace spel::engine {

/// Counts what is done; not thread-safe. Everything that takes time or memory goes through it.
class TemplateWork {
 public:
  TemplateWork(const TemplateLimits& limits, const std::string& name)
      : limits_(limits), name_(name) {}

  /// One thing done at `place`, which later errors name.
  void step(TemplatePlace place) {
    place_ = place;
    steps(1);
  }
  /// So many elements looked at.
  void steps(std::size_t count) {
    steps_ += count;
    if (steps_ > limits_.steps) {
      refuse(TemplateError::Kind::kLimit, "more than " + std::to_string(limits_.steps) + " steps");
    }
  }
  /// So much made: what has been freed again is not given back.
  void bytes(std::size_t count) {
    bytes_ += count;
    if (count > limits_.bytes || bytes_ > limits_.bytes) {
      refuse(TemplateError::Kind::kLimit,
             "more than " + std::to_string(limits_.bytes) + " bytes of text and values");
    }
  }
  [[noreturn]] void wrong(const std::string& what) const {
    refuse(TemplateError::Kind::kWrong, what);
  }

 private:
  [[noreturn]] void refuse(TemplateError::Kind kind, const std::string& what) const {
    throw TemplateError(kind, name_ + ", line " + std::to_string(place_.line) + ": " + what);
  }

  TemplateLimits limits_;
  const std::string& name_;
  TemplatePlace place_;
  std::size_t steps_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace spel::engine

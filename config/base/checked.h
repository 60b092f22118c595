// Size arithmetic that refuses to wrap: sizes read from files and requests go through here.
#pragma once

#include <concepts>
#include <limits>
#include <string>

#include "config/base/error.h"

namespace spel {

/// a * b, or Error(kCorrupt) naming `what` if the product does not fit.
template <std::unsigned_integral T>
[[nodiscard]] T checked_mul(T a, T b, const char* what) {
  T result{};
  if (__builtin_mul_overflow(a, b, &result)) {
    throw Error(ErrorCode::kCorrupt, std::string(what) + ": " + std::to_string(a) + " * " +
                                         std::to_string(b) + " does not fit");
  }
  return result;
}

/// a + b, or Error(kCorrupt) naming `what` if the sum does not fit.
template <std::unsigned_integral T>
[[nodiscard]] T checked_add(T a, T b, const char* what) {
  T result{};
  if (__builtin_add_overflow(a, b, &result)) {
    throw Error(ErrorCode::kCorrupt, std::string(what) + ": " + std::to_string(a) + " + " +
                                         std::to_string(b) + " does not fit");
  }
  return result;
}

}  // namespace spel

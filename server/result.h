// How a generation ended, as metrics label it.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "config/base/names.h"
#include "engine/request/request.h"

namespace spel::server {

enum class Result { kOk, kError, kCancelled };

[[nodiscard]] inline Result result_of(engine::FinishReason reason) {
  switch (reason) {
    case engine::FinishReason::kStop:
    case engine::FinishReason::kLength:
      return Result::kOk;
    case engine::FinishReason::kCancelled:
      return Result::kCancelled;
    case engine::FinishReason::kDeadline:
    case engine::FinishReason::kError:
      break;
  }
  return Result::kError;
}

}  // namespace spel::server

template <>
inline constexpr std::array<std::pair<spel::server::Result, std::string_view>, 3>
    spel::kNames<spel::server::Result>{{{spel::server::Result::kOk, "ok"},
                                        {spel::server::Result::kError, "error"},
                                        {spel::server::Result::kCancelled, "cancelled"}}};

// What a call complains about.
#pragma once

#include <gtest/gtest.h>
#include <string>

#include "config/base/error.h"

namespace spel::config {

/// The message of the Error `call` throws, which must be of `code`.
template <typename Call>
std::string complaint_of(Call&& call, ErrorCode code = ErrorCode::kInvalidArgument) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no complaint";
  return {};
}

}  // namespace spel::config

// What a call refuses a request with.
#pragma once

#include <gtest/gtest.h>

#include "proto/error_body.h"

namespace spel::proto {

/// The error `call` throws; a failure of the test and status 0 when it throws none.
template <typename Call>
ApiError refusal_of(Call&& call) {
  try {
    call();
  } catch (const RequestError& error) {
    return error.error();
  }
  ADD_FAILURE() << "not refused";
  ApiError none;
  none.status = 0;
  return none;
}

}  // namespace spel::proto

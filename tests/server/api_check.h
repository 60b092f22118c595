// Holds every answer the tests get to openapi.json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "support.h"

namespace spel::server::testing {

/// A test failure if the answer to `request`, or its status, is not one the description has.
void expect_as_described(const std::string& request, const Reply& reply);
/// The same for one event of a stream.
void expect_event_as_described(const json& event);

}  // namespace spel::server::testing

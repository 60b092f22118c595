// The description of the HTTP interface.
#pragma once

#include <string>

namespace spel::proto {

/// openapi.json as it was built in, compact. Parses on each call: keep the result.
[[nodiscard]] std::string openapi_json();

}  // namespace spel::proto

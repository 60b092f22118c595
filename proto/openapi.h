// The description of the HTTP interface, from openapi.yaml.
#pragma once

#include <string>
#include <string_view>

namespace spel::proto {

/// openapi.yaml as it was built in.
[[nodiscard]] std::string_view openapi_yaml();
/// The same as compact JSON. Parses on each call: keep the result.
[[nodiscard]] std::string openapi_json();

}  // namespace spel::proto

// As much YAML as openapi.yaml is written in.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace spel::proto {

/// Block mappings and sequences by indentation, flow ones on one line, plain, 'single' and "double"
/// quoted scalars, folded text (>-), whole-line comments. Scalars follow YAML's JSON schema: null,
/// true, false, numbers; everything else is text. Throws Error(kCorrupt) naming the line for
/// anything else.
[[nodiscard]] nlohmann::ordered_json parse_yaml_subset(std::string_view text);

}  // namespace spel::proto

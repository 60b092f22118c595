// Checks a JSON value against a schema of openapi.json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace spel::proto {

/// Where and how `value` breaks `schema`, whose references are into `document`; empty: it does not.
/// Knows the keywords openapi.json uses, and reports others as violations.
[[nodiscard]] std::vector<std::string> violations_of(const nlohmann::json& document,
                                                     const nlohmann::json& schema,
                                                     const nlohmann::json& value);
/// The same with components/schemas/`name`.
[[nodiscard]] std::vector<std::string> schema_violations(const nlohmann::json& document,
                                                         const std::string& name,
                                                         const nlohmann::json& value);

}  // namespace spel::proto

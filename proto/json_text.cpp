#include "proto/json_text.h"

#include <utility>

#include "proto/error_body.h"

namespace spel::proto {

namespace {

constexpr std::string_view kInvalidJson = "invalid_json";

ApiError to_api_error(const JsonError& error, const JsonLimits& limits) {
  switch (error.fault()) {
    case JsonError::Fault::kTooLong:
      return http_error(
          413, "The request body is larger than " + std::to_string(limits.bytes) + " bytes.");
    case JsonError::Fault::kSyntax:
      return invalid_request("The request body is not valid JSON: error at byte " +
                                 std::to_string(error.position) + ".",
                             {}, std::string(kInvalidJson));
    case JsonError::Fault::kNotObject:
      return invalid_request("The request body must be a JSON object.", {},
                             std::string(kInvalidJson));
    case JsonError::Fault::kTooDeep:
      return invalid_request(
          "The request body is nested deeper than " + std::to_string(limits.depth) + " levels.", {},
          "json_too_deep");
    case JsonError::Fault::kDuplicateKey:
      // Only a top-level member is a parameter by its bare name.
      return invalid_request("The key \"" + error.key + "\" appears twice in one object.",
                             error.top_level ? error.key : std::string(), "duplicate_key");
    case JsonError::Fault::kTooMuch:
      break;
  }
  return invalid_request("The request body has too many values: " + std::string(error.what()) + ".",
                         {}, "json_too_large");
}

}  // namespace

JsonObject parse_json_object(std::string_view text, const JsonLimits& limits) {
  try {
    return {text, limits};
  } catch (const JsonError& error) {
    throw RequestError(to_api_error(error, limits));
  }
}

JsonValue* find_member(JsonObject& object, std::string_view name) {
  try {
    return object.find(name);
  } catch (const JsonError& error) {
    throw RequestError(to_api_error(error, {}));
  }
}

}  // namespace spel::proto

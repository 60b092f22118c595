#include "api_check.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <regex>
#include <set>
#include <vector>

#include "proto/openapi.h"
#include "tests/proto/schema_check.h"

namespace spel::server::testing {
namespace {

/// What HTTP itself says, before or beside any operation.
const std::set<int> kOfHttp = {0, 204, 400, 405, 408, 413, 414, 415, 417, 431, 501, 505};

const json& description() {
  static const json kDocument = json::parse(proto::openapi_json());
  return kDocument;
}

const json& resolved(const json& value) {
  return value.contains("$ref")
             ? description().at(json::json_pointer(value["$ref"].get<std::string>().substr(1)))
             : value;
}

struct Path {
  std::regex matcher;
  const json* item;
};

/// Made once: compiling expressions on several threads is a race inside libstdc++.
const std::vector<Path>& paths() {
  static const std::vector<Path> kPaths = [] {
    const std::regex parameter(R"(\{[^}]+\})");
    std::vector<Path> result;
    for (const auto& [pattern, item] : description()["paths"].items()) {
      result.push_back({std::regex(std::regex_replace(pattern, parameter, "[^/]+")), &item});
    }
    return result;
  }();
  return kPaths;
}

/// The operation's responses; nullptr if the path does not have that method.
const json* responses_of(const std::string& method, const std::string& path) {
  for (const Path& candidate : paths()) {
    if (std::regex_match(path, candidate.matcher) && candidate.item->contains(method)) {
      return &(*candidate.item)[method]["responses"];
    }
  }
  return nullptr;
}

void expect_valid(const json& schema, const json& value, const std::string& what) {
  for (const std::string& violation : proto::violations_of(description(), schema, value)) {
    ADD_FAILURE() << what << ": " << violation << "\n" << value.dump();
  }
}

}  // namespace

void expect_as_described(const std::string& request, const Reply& reply) {
  static const std::regex kLine(R"(^(GET|POST|DELETE) (/[^ ?]*)\S* HTTP/1\.[01]\r\n)");
  std::smatch line;
  if (!std::regex_search(request, line, kLine)) {
    return;  // Nothing the description could speak of.
  }
  std::string method = line[1];
  std::transform(method.begin(), method.end(), method.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::string what =
      line[1].str() + " " + line[2].str() + ", status " + std::to_string(reply.status);
  if (reply.status >= 400 && reply.header("content-type") == "application/json") {
    expect_valid({{"$ref", "#/components/schemas/Error"}}, reply.parsed(), what);
  }
  const json* responses = responses_of(method, line[2]);
  if (responses == nullptr || reply.truncated) {
    return;
  }
  const std::string status = std::to_string(reply.status);
  if (!responses->contains(status)) {
    EXPECT_TRUE(kOfHttp.contains(reply.status)) << what << " is not in openapi.json";
    return;
  }
  const json& response = resolved((*responses)[status]);
  const auto content = response.find("content");
  if (content == response.end()) {
    return;
  }
  const std::string type = reply.header("content-type");
  const std::string media = type.substr(0, type.find(';'));
  ASSERT_TRUE(content->contains(media)) << what << " has " << media;
  if (media == "application/json") {
    expect_valid((*content)[media]["schema"], reply.parsed(), what);
  }
}

void expect_event_as_described(const json& event) {
  const char* schema = event.contains("error")                          ? "Error"
                       : event.value("object", "") == "text_completion" ? "CompletionChunk"
                                                                        : "ChatChunk";
  expect_valid({{"$ref", std::string("#/components/schemas/") + schema}}, event, schema);
}

}  // namespace spel::server::testing

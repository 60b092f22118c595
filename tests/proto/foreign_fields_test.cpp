#include "proto/foreign_fields.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "proto/chat.h"
#include "proto/completion.h"
#include "tests/proto/refusal.h"

namespace spel::proto {
namespace {

using nlohmann::json;

std::vector<Endpoints> endpoints_of(const ForeignField& field) {
  return field.endpoints == Endpoints::kBoth
             ? std::vector<Endpoints>{Endpoints::kCompletions, Endpoints::kChat}
             : std::vector<Endpoints>{field.endpoints};
}

/// The options of a request that has `name` beside what its endpoint needs.
GenerationOptions parse_with(Endpoints endpoint, std::string_view name, const json& value) {
  json body = endpoint == Endpoints::kChat
                  ? json{{"messages", {{{"role", "user"}, {"content", "hi"}}}}}
                  : json{{"prompt", "hi"}};
  body[std::string(name)] = value;
  return endpoint == Endpoints::kChat ? parse_chat_request(body.dump()).options
                                      : parse_completion_request(body.dump()).options;
}

/// Values of every kind, the neutral ones of all fields among them.
const json& probes() {
  static const json values = json::parse(
      R"([true,false,0,1,-1,2,7.5,-7,"","x","none","auto","medium",[],["x"],["text"],[1],{},{"a":1}])");
  return values;
}

bool accepts(const ForeignField& field, const json& value) {
  if (field.accepted == kAnything) {
    return true;
  }
  if (field.accepted == kNothing) {
    return value == json(false) || value == json("") || value == json::array() ||
           value == json::object();
  }
  const json list = json::parse(field.accepted);
  return std::find(list.begin(), list.end(), value) != list.end();
}

TEST(ForeignFields, AreTakenWhereTheyChangeNothingAndRefusedByNameWhereTheyWould) {
  EXPECT_GT(foreign_fields().size(), 150U);
  std::size_t refused = 0;
  for (const ForeignField& field : foreign_fields()) {
    for (const Endpoints endpoint : endpoints_of(field)) {
      EXPECT_EQ(parse_with(endpoint, field.name, nullptr).unknown_fields, 0U) << field.name;
      for (const json& value : probes()) {
        if (accepts(field, value)) {
          EXPECT_NO_THROW(EXPECT_EQ(parse_with(endpoint, field.name, value).unknown_fields, 0U)
                          << field.name)
              << field.name << " " << value;
          continue;
        }
        const ApiError error =
            refusal_of([&] { static_cast<void>(parse_with(endpoint, field.name, value)); });
        EXPECT_EQ(error.status, 400) << field.name << " " << value;
        EXPECT_EQ(error.param, field.name) << value;
        EXPECT_EQ(error.code, "unsupported_parameter") << field.name << " " << value;
        EXPECT_NE(error.message.find(field.advice), std::string::npos) << error.message;
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 2000U);
}

TEST(ForeignFields, EachIsInTheTableOnceForAnEndpoint) {
  for (const Endpoints endpoint : {Endpoints::kCompletions, Endpoints::kChat}) {
    std::set<std::string_view> names;
    for (const ForeignField& field : foreign_fields()) {
      if (field.endpoints == Endpoints::kBoth || field.endpoints == endpoint) {
        EXPECT_TRUE(names.insert(field.name).second) << field.name;
      }
    }
  }
}

TEST(ForeignFields, AdviceNamesMembersOfOurs) {
  static const std::regex quoted(R"re("([a-z_]+)")re");
  std::set<std::string> foreign;
  for (const ForeignField& field : foreign_fields()) {
    foreign.insert(std::string(field.name));
  }
  // Each belongs to the other endpoint as well.
  for (const char* name :
       {"prompt", "messages", "echo", "system", "reasoning_effort", "enable_thinking"}) {
    foreign.erase(name);
  }
  for (const ForeignField& field : foreign_fields()) {
    const std::string advice(field.advice);
    for (std::sregex_iterator match(advice.begin(), advice.end(), quoted), end; match != end;
         ++match) {
      EXPECT_FALSE(foreign.contains((*match)[1])) << field.name << ": " << advice;
    }
  }
}

}  // namespace
}  // namespace spel::proto

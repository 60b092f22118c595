// The small parts, each alone.
#include <gtest/gtest.h>

#include "config/base/error.h"
#include "server/auth.h"
#include "server/cors.h"
#include "server/host_check.h"
#include "server/log.h"
#include "server/message.h"
#include "server/pipeline.h"
#include "server/router.h"

namespace spel::server {
namespace {

TEST(ResponseFields, NothingThatEndsALineGetsIn) {
  Response response;
  EXPECT_THROW(response.add_header("X", "a\r\nSet-Cookie: b"), Error);
  EXPECT_THROW(response.add_header("X\n", "a"), Error);
  EXPECT_THROW(response.add_header("X", std::string("a\0b", 3)), Error);
  response.add_header("X", "plain");
  EXPECT_EQ(response.headers().size(), 1U);
}

TEST(LogLines, CannotBeForged) {
  const std::string text = format_log_line(
      false, LogLevel::kInfo, 0, "a\nb",
      {{"path", std::string_view("/x\r\n2026 info forged")}, {"n", std::int64_t{7}}});
  EXPECT_EQ(text,
            R"(1970-01-01T00:00:00.000Z info a\u000ab path="/x\u000d\u000a2026 info forged" n=7)");
  const std::string json = format_log_line(true, LogLevel::kError, 1'500, "q\"",
                                           {{"x", std::string_view("\x1b[31m\xff")}});
  EXPECT_EQ(json,
            "{\"time\":\"1970-01-01T00:00:01.500Z\",\"level\":\"error\",\"message\":\"q\\\"\","
            "\"x\":\"\\u001b[31m\xEF\xBF\xBD\"}");
}

TEST(HostCheck, KnowsLoopbackTheBoundAddressAndTheList) {
  const HostCheck check("127.0.0.1", {"spel.internal"});
  for (const char* host : {"localhost", "LOCALHOST:8080", "127.0.0.1", "127.0.0.1:1", "[::1]",
                           "[::1]:8080", "localhost.", "spel.internal:8080"}) {
    EXPECT_TRUE(check.allows(host)) << host;
  }
  for (const char* host :
       {"evil.example", "localhost.evil.example", "192.168.1.5", "127.0.0.1.nip", "", "[::2]"}) {
    EXPECT_FALSE(check.allows(host)) << host;
  }
  const HostCheck everywhere("0.0.0.0", {});
  EXPECT_TRUE(everywhere.allows("192.168.1.5:8080"));
  EXPECT_TRUE(everywhere.allows("[fe80::1]"));
  EXPECT_FALSE(everywhere.allows("evil.example"));
}

TEST(ApiKeys, AreComparedWhole) {
  const ApiKeys keys({"key-number-one", "key-number-two"});
  EXPECT_TRUE(keys.allows("Bearer key-number-two"));
  EXPECT_TRUE(keys.allows("bearer key-number-one"));
  for (const char* field : {"", "Bearer", "Bearer ", "Bearer key-number", "Bearer key-number-one2",
                            "Basic key-number-one", "key-number-one"}) {
    EXPECT_FALSE(keys.allows(field)) << field;
  }
  EXPECT_TRUE(ApiKeys().allows(""));
  EXPECT_THROW(ApiKeys(std::vector<std::string>{}), Error);
  EXPECT_THROW(ApiKeys({"short"}), Error);
}

TEST(Router, MatchesWholeSegments) {
  Router router;
  const SyncHandler handler = [](const Request&) { return json_response("{}"); };
  router.add(Verb::get, "/a", {}, handler);
  router.add(Verb::post, "/a", {}, handler);
  router.add(Verb::get, "/a/{id}", {}, handler);
  router.add(Verb::get, "/a/{id}/b/{other}", {}, handler);
  std::vector<std::string> parameters;
  EXPECT_EQ(router.find("/a", parameters)->allow, "GET, HEAD, POST");
  ASSERT_NE(router.find("/a/x", parameters), nullptr);
  EXPECT_EQ(parameters, std::vector<std::string>({"x"}));
  ASSERT_NE(router.find("/a/x/b/y", parameters), nullptr);
  EXPECT_EQ(parameters, std::vector<std::string>({"x", "y"}));
  for (const char* path : {"/", "/b", "/a/", "/a/x/b", "/a/x/c/y", "/a/x/b/y/z", "*", ""}) {
    EXPECT_EQ(router.find(path, parameters), nullptr) << path;
  }
}

TEST(ChoiceSeeds, FirstIsTheClientsAndAllDiffer) {
  EXPECT_EQ(choice_seed(42, 0), 42U);
  std::set<std::uint64_t> seen;
  for (std::size_t i = 0; i < 8; ++i) {
    seen.insert(choice_seed(42, i));
    seen.insert(choice_seed(43, i));
  }
  EXPECT_EQ(seen.size(), 16U);
}

TEST(Cors, ForeignPagesMayReadNothingAndChangeNothing) {
  const Cors cors({"https://app.example"});
  Request request;
  request.host = "localhost:8080";
  request.method = Verb::post;
  EXPECT_TRUE(cors.allows(request)) << "no Origin: not a page";
  request.origin = "http://localhost:8080";
  EXPECT_TRUE(cors.allows(request)) << "the server's own page";
  request.origin = "https://app.example";
  EXPECT_TRUE(cors.allows(request));
  for (const char* origin :
       {"https://evil.example", "null", "https://app.example.evil", "http://app.example"}) {
    request.origin = origin;
    EXPECT_FALSE(cors.allows(request)) << origin;
    Response response;
    cors.decorate(request, response);
    for (const auto& [name, value] : response.headers()) {
      EXPECT_EQ(name, "Vary");
    }
  }
}

}  // namespace
}  // namespace spel::server

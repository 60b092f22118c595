#include "proto/chat.h"

#include <gtest/gtest.h>
#include <string>

#include "tests/proto/refusal.h"

namespace spel::proto {
namespace {

ChatRequest parse(const std::string& members) {
  return parse_chat_request(R"({"messages":[{"role":"user","content":"hi"}])" +
                            (members.empty() ? "" : "," + members) + "}");
}

ApiError refusal(const std::string& members) {
  return refusal_of([&] { static_cast<void>(parse(members)); });
}

ApiError messages_refusal(const std::string& messages) {
  return refusal_of(
      [&] { static_cast<void>(parse_chat_request(R"({"messages":)" + messages + "}")); });
}

TEST(Chat, OneMessageGetsTheDefaults) {
  const auto request = parse("");
  ASSERT_EQ(request.messages.size(), 1U);
  EXPECT_EQ(request.messages[0].role, Role::kUser);
  EXPECT_EQ(request.messages[0].content, "hi");
  EXPECT_FALSE(request.options.max_tokens);
  EXPECT_FALSE(request.options.logprobs);
}

TEST(Chat, ContentMayBeTextParts) {
  const auto request = parse_chat_request(R"({"messages":[
      {"role":"system","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
      {"role":"developer","content":"c"},{"role":"assistant","content":""},
      {"role":"user","content":"d","name":"n"}]})");
  ASSERT_EQ(request.messages.size(), 4U);
  EXPECT_EQ(request.messages[0].content, "ab");
  EXPECT_EQ(request.messages[1].role, Role::kDeveloper);
}

TEST(Chat, AnAssistantsTurnMayBeWithoutText) {
  for (const char* content : {R"(,"content":null)", "", R"(,"content":"")"}) {
    const auto request =
        parse_chat_request(R"({"messages":[{"role":"assistant","refusal":null,"annotations":[])" +
                           std::string(content) + R"(},{"role":"user","content":"hi"}]})");
    EXPECT_EQ(request.messages[0].content, "");
  }
  EXPECT_EQ(messages_refusal(R"([{"role":"user","content":null}])").param, "messages[0].content");
  EXPECT_EQ(messages_refusal(R"([{"role":"system"}])").param, "messages[0].content");
}

TEST(Chat, UnknownMembersOfMessagesAndPartsAreRefused) {
  EXPECT_EQ(messages_refusal(R"([{"role":"user","content":"a","contents":"b"}])").param,
            "messages[0].contents");
  EXPECT_EQ(
      messages_refusal(R"([{"role":"user","content":[{"type":"text","text":"a","txt":"b"}]}])")
          .param,
      "messages[0].content.txt");
  EXPECT_EQ(messages_refusal(R"([{"role":"assistant","content":"a","prefix":true}])").param,
            "messages[0].prefix");
  EXPECT_NO_THROW(static_cast<void>(parse_chat_request(
      R"({"messages":[{"role":"user","name":"n","content":[
          {"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}]})")));
}

TEST(Chat, ThePromptEndsWhereTheTwoSwitchesSay) {
  EXPECT_EQ(parse("").end, PromptEnd::kAssistantTurn);
  EXPECT_EQ(parse(R"("add_generation_prompt":false)").end, PromptEnd::kAfterMessages);
  EXPECT_EQ(parse(R"("continue_final_message":true)").end, PromptEnd::kInLastMessage);
  EXPECT_EQ(parse(R"("continue_final_message":true,"add_generation_prompt":false)").end,
            PromptEnd::kInLastMessage);
  EXPECT_EQ(refusal(R"("continue_final_message":true,"add_generation_prompt":true)").param,
            "continue_final_message");
  const std::vector<ChatMessage> messages = {{Role::kUser, "hi"}, {Role::kAssistant, "Well"}};
  EXPECT_EQ(plain_chat_prompt(messages, PromptEnd::kAfterMessages), "user: hi\nassistant: Well\n");
  EXPECT_EQ(plain_chat_prompt(messages, PromptEnd::kInLastMessage), "user: hi\nassistant: Well");
}

TEST(Chat, MinTokensWithoutAMaximumAreTaken) {
  EXPECT_EQ(parse(R"("min_tokens":500)").options.min_tokens, 500U);
  EXPECT_EQ(refusal(R"("min_tokens":5,"max_completion_tokens":4)").param, "min_tokens");
}

TEST(Chat, RefusesMessagesItCannotRead) {
  for (const char* messages : {"null", "[]", "{}", R"("hi")", "7"}) {
    EXPECT_EQ(messages_refusal(messages).param, "messages") << messages;
  }
  EXPECT_EQ(messages_refusal("[1]").param, "messages[0]");
  EXPECT_EQ(messages_refusal(R"([{"role":"user","content":"a"},"b"])").param, "messages[1]");
  for (const char* role : {R"("tool")", R"("function")", R"("")", "null", "1"}) {
    EXPECT_EQ(messages_refusal(R"([{"role":)" + std::string(role) + R"(,"content":"a"}])").param,
              "messages[0].role");
  }
  for (const char* content :
       {"null", "1", "true", "{}", "[]", "[1]", R"(["a"])",
        R"([{"type":"image_url","image_url":{"url":"http://x"}}])", R"([{"text":"a"}])"}) {
    const ApiError error =
        messages_refusal(R"([{"role":"user","content":)" + std::string(content) + "}]");
    EXPECT_EQ(error.param.rfind("messages[0].content", 0), 0U) << content << error.param;
    EXPECT_EQ(error.status, 400);
  }
  EXPECT_EQ(messages_refusal(R"([{"role":"user","content":[{"type":"text"}]}])").status, 400);
  EXPECT_EQ(
      messages_refusal(R"([{"role":"assistant","content":"a","tool_calls":[{"id":"1"}]}])").param,
      "messages[0].tool_calls");
}

TEST(Chat, MaxCompletionTokensIsTheNewerName) {
  EXPECT_EQ(parse(R"("max_tokens":3)").options.max_tokens, 3U);
  EXPECT_EQ(parse(R"("max_completion_tokens":4)").options.max_tokens, 4U);
  EXPECT_EQ(parse(R"("max_completion_tokens":4,"max_tokens":4)").options.max_tokens, 4U);
  EXPECT_EQ(refusal(R"("max_completion_tokens":4,"max_tokens":5)").param, "max_completion_tokens");
  EXPECT_EQ(refusal(R"("max_completion_tokens":-1)").param, "max_completion_tokens");
}

TEST(Chat, LogprobsAreABooleanAndACount) {
  EXPECT_EQ(parse(R"("logprobs":true)").options.logprobs, 0U);
  EXPECT_EQ(parse(R"("logprobs":true,"top_logprobs":20)").options.logprobs, 20U);
  EXPECT_FALSE(parse(R"("logprobs":false)").options.logprobs);
  EXPECT_EQ(refusal(R"("logprobs":1)").param, "logprobs");
  EXPECT_EQ(refusal(R"("top_logprobs":2)").param, "top_logprobs");
  EXPECT_EQ(refusal(R"("logprobs":true,"top_logprobs":21)").param, "top_logprobs");
  EXPECT_EQ(refusal(R"("logprobs":true,"top_logprobs":true)").param, "top_logprobs");
}

TEST(Chat, RefusesTools) {
  EXPECT_EQ(refusal(R"("tools":[{"type":"function"}])").param, "tools");
  EXPECT_EQ(refusal(R"("response_format":{"type":"json_object"})").param, "response_format");
  EXPECT_NO_THROW(static_cast<void>(parse(R"("tools":[],"tool_choice":"none")")));
}

TEST(Chat, SharesTheOptionsOfCompletions) {
  const auto options = parse(R"("n":2,"stream":true,"stop":"x","seed":-1,"x":1)").options;
  EXPECT_EQ(options.n, 2U);
  EXPECT_TRUE(options.stream);
  EXPECT_EQ(options.seed, -1);
  EXPECT_EQ(options.unknown_fields, 1U);
}

TEST(Chat, ThePlainTemplateIsOneLineForEachMessage) {
  EXPECT_EQ(plain_chat_prompt({{Role::kSystem, "Be brief."}, {Role::kUser, "hi"}}),
            "system: Be brief.\nuser: hi\nassistant:");
  EXPECT_EQ(plain_chat_stop(), "\nuser:");
}

}  // namespace
}  // namespace spel::proto

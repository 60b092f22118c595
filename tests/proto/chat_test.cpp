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
  ASSERT_EQ(request.conversation.messages.size(), 1U);
  EXPECT_EQ(request.conversation.messages[0].role, Role::kUser);
  EXPECT_EQ(request.conversation.messages[0].content, "hi");
  EXPECT_FALSE(request.options.max_tokens);
  EXPECT_FALSE(request.options.logprobs);
}

TEST(Chat, ContentMayBeTextParts) {
  const auto request = parse_chat_request(R"({"messages":[
      {"role":"system","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
      {"role":"developer","content":"c"},{"role":"assistant","content":""},
      {"role":"user","content":"d","name":"n"}]})");
  ASSERT_EQ(request.conversation.messages.size(), 4U);
  EXPECT_EQ(request.conversation.messages[0].content, "ab");
  EXPECT_EQ(request.conversation.messages[1].role, Role::kDeveloper);
}

TEST(Chat, AnAssistantsTurnMayBeWithoutText) {
  for (const char* content : {R"(,"content":null)", "", R"(,"content":"")"}) {
    const auto request =
        parse_chat_request(R"({"messages":[{"role":"assistant","refusal":null,"annotations":[])" +
                           std::string(content) + R"(},{"role":"user","content":"hi"}]})");
    EXPECT_EQ(request.conversation.messages[0].content, "");
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
  EXPECT_EQ(parse("").conversation.end, PromptEnd::kAssistantTurn);
  EXPECT_EQ(parse(R"("add_generation_prompt":false)").conversation.end, PromptEnd::kAfterMessages);
  EXPECT_EQ(parse(R"("continue_final_message":true)").conversation.end, PromptEnd::kInLastMessage);
  EXPECT_EQ(
      parse(R"("continue_final_message":true,"add_generation_prompt":false)").conversation.end,
      PromptEnd::kInLastMessage);
  EXPECT_EQ(refusal(R"("continue_final_message":true,"add_generation_prompt":true)").param,
            "continue_final_message");
  const std::vector<ChatMessage> messages = {{.role = Role::kUser, .content = "hi"},
                                             {.role = Role::kAssistant, .content = "Well"}};
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
  EXPECT_EQ(plain_chat_prompt({{.role = Role::kSystem, .content = "Be brief."},
                               {.role = Role::kUser, .content = "hi"}}),
            "system: Be brief.\nuser: hi\nassistant:");
  EXPECT_EQ(plain_chat_stop(), "\nuser:");
}

TEST(Chat, KeepsWhatAnAssistantThoughtAndWhoSpoke) {
  const auto request = parse_chat_request(R"({"messages":[
      {"role":"user","content":"a","name":"Ann","reasoning_content":"not an assistant's"},
      {"role":"assistant","content":"b","reasoning_content":"older"},
      {"role":"assistant","content":"c","reasoning":"newer"},
      {"role":"assistant","content":"d","reasoning":"same","reasoning_content":"same"},
      {"role":"assistant","content":"e","reasoning":null}]})");
  const auto& messages = request.conversation.messages;
  EXPECT_EQ(messages[0].name, "Ann");
  EXPECT_FALSE(messages[0].reasoning.has_value());
  EXPECT_EQ(messages[1].reasoning, "older");
  EXPECT_EQ(messages[2].reasoning, "newer");
  EXPECT_EQ(messages[3].reasoning, "same");
  EXPECT_FALSE(messages[4].reasoning.has_value());
  EXPECT_EQ(
      messages_refusal(R"([{"role":"assistant","reasoning":"a","reasoning_content":"b"}])").param,
      "messages[0].reasoning");
  EXPECT_EQ(messages_refusal(R"([{"role":"assistant","reasoning":{}}])").param,
            "messages[0].reasoning");
  EXPECT_EQ(messages_refusal(R"([{"role":"user","content":"a","name":1}])").param,
            "messages[0].name");
}

TEST(Chat, ThinkingIsAskedForInSeveralWordsThatMustAgree) {
  EXPECT_FALSE(parse("").conversation.enable_thinking.has_value());
  EXPECT_EQ(parse(R"("enable_thinking":true)").conversation.enable_thinking, true);
  EXPECT_EQ(parse(R"("enable_thinking":false)").conversation.enable_thinking, false);
  const auto inside = parse(R"("chat_template_kwargs":{"enable_thinking":false,"x":1})");
  EXPECT_EQ(inside.conversation.enable_thinking, false);
  EXPECT_EQ(dump_json(inside.conversation.template_arguments), R"({"x":1})");
  EXPECT_EQ(parse(R"("reasoning_effort":"none")").conversation.enable_thinking, false);
  for (const std::string effort : {"minimal", "low", "medium", "high"}) {
    const auto request = parse(R"("reasoning_effort":")" + effort + "\"");
    EXPECT_EQ(request.conversation.enable_thinking, true);
    EXPECT_EQ(request.conversation.reasoning_effort, effort);
  }
  // The switch is stronger: the template may still read the effort.
  EXPECT_EQ(
      parse(R"("reasoning_effort":"low","enable_thinking":false)").conversation.enable_thinking,
      false);
  EXPECT_EQ(parse(R"("enable_thinking":true,"chat_template_kwargs":{"enable_thinking":true})")
                .conversation.enable_thinking,
            true);
  EXPECT_EQ(
      refusal(R"("enable_thinking":true,"chat_template_kwargs":{"enable_thinking":false})").param,
      "enable_thinking");
  EXPECT_EQ(
      refusal(R"("reasoning_effort":"low","chat_template_kwargs":{"reasoning_effort":"high"})")
          .param,
      "reasoning_effort");
  EXPECT_EQ(refusal(R"("reasoning_effort":"none","enable_thinking":true)").param,
            "reasoning_effort");
  EXPECT_EQ(refusal(R"("reasoning_effort":"huge")").param, "reasoning_effort");
  EXPECT_EQ(refusal(R"("reasoning_effort":1)").param, "reasoning_effort");
  EXPECT_EQ(refusal(R"("enable_thinking":"yes")").param, "enable_thinking");
  EXPECT_EQ(refusal(R"("chat_template_kwargs":{"enable_thinking":1})").param,
            "chat_template_kwargs.enable_thinking");
}

TEST(Chat, AThoughtsBudgetHasTwoNames) {
  EXPECT_FALSE(parse("").thinking_budget.has_value());
  EXPECT_EQ(parse(R"("thinking_budget":0)").thinking_budget, 0U);
  EXPECT_EQ(parse(R"("thinking_token_budget":64)").thinking_budget, 64U);
  EXPECT_EQ(parse(R"("thinking_budget":64,"thinking_token_budget":64)").thinking_budget, 64U);
  EXPECT_EQ(refusal(R"("thinking_budget":64,"thinking_token_budget":65)").param,
            "thinking_token_budget");
  EXPECT_EQ(refusal(R"("thinking_budget":-1)").param, "thinking_budget");
  EXPECT_EQ(refusal(R"("thinking_token_budget":2147483648)").param, "thinking_token_budget");
}

TEST(Chat, WhereThoughtsGoIsSaidInTheWordsOfThreeServers) {
  EXPECT_FALSE(parse("").reasoning.has_value());
  EXPECT_FALSE(
      parse(R"("include_reasoning":true,"reasoning_format":"auto")").reasoning.has_value());
  EXPECT_EQ(parse(R"("include_reasoning":false)").reasoning, ReasoningForm::kLeftOut);
  EXPECT_EQ(parse(R"("separate_reasoning":false)").reasoning, ReasoningForm::kInText);
  EXPECT_EQ(parse(R"("separate_reasoning":true)").reasoning, ReasoningForm::kApart);
  EXPECT_EQ(parse(R"("reasoning_format":"none")").reasoning, ReasoningForm::kInText);
  EXPECT_EQ(parse(R"("reasoning_format":"deepseek")").reasoning, ReasoningForm::kApart);
  EXPECT_EQ(refusal(R"("reasoning_format":"xml")").param, "reasoning_format");
  EXPECT_EQ(refusal(R"("stream_reasoning":false)").param, "stream_reasoning");
}

TEST(Chat, ArgumentsOfTheTemplateAreBounded) {
  EXPECT_EQ(dump_json(parse(R"("chat_template_kwargs":{"a":[1,{"b":"c"}],"_B9":null})")
                          .conversation.template_arguments),
            R"({"a":[1,{"b":"c"}],"_B9":null})");
  EXPECT_EQ(dump_json(parse(R"("chat_template_kwargs":null)").conversation.template_arguments),
            "{}");
  for (const std::string value : {"[]", "1", "\"a\"", "true"}) {
    EXPECT_EQ(refusal("\"chat_template_kwargs\":" + value).param, "chat_template_kwargs");
  }
  for (const std::string name : {"", "a b", "a.b", "9a", "\\u00e9", "{{", "a-b"}) {
    EXPECT_EQ(refusal(R"("chat_template_kwargs":{")" + name + R"(":1})").param,
              "chat_template_kwargs")
        << name;
  }
  const auto of = [](const std::string& members) {
    return R"("chat_template_kwargs":{)" + members + "}";
  };
  std::string many;
  for (std::size_t i = 0; i <= limits::kTemplateArgumentsMax; ++i) {
    many += (i == 0 ? "\"n" : ",\"n") + std::to_string(i) + "\":0";
  }
  EXPECT_EQ(refusal(of(many)).param, "chat_template_kwargs");
  EXPECT_NO_THROW(static_cast<void>(parse(of(many.substr(0, many.rfind(','))))));
  EXPECT_EQ(
      refusal(of("\"a\":\"" + std::string(limits::kTemplateArgumentsBytesMax, 'x') + "\"")).param,
      "chat_template_kwargs");
  const auto nested = [](std::size_t depth) {
    return "\"a\":" + std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(refusal(of(nested(limits::kTemplateArgumentsDepthMax))).param, "chat_template_kwargs");
  EXPECT_NO_THROW(static_cast<void>(parse(of(nested(limits::kTemplateArgumentsDepthMax - 1)))));
}

TEST(Chat, NoRequestSetsWhatTheServerSets) {
  for (const std::string name :
       {"messages", "tools", "add_generation_prompt", "continue_final_message", "bos_token",
        "eos_token", "raise_exception", "chat_template", "tokenize", "namespace", "loop"}) {
    const ApiError error = refusal(R"("chat_template_kwargs":{")" + name + R"(":[]})");
    EXPECT_EQ(error.param, "chat_template_kwargs." + name);
    EXPECT_EQ(error.status, 400);
  }
  EXPECT_EQ(refusal(R"("chat_template":"{{ messages }}")").param, "chat_template");
}

TEST(Chat, NamesOfTokensInMessagesAreText) {
  EXPECT_EQ(refusal(R"("parse_special":true)").param, "parse_special");
  EXPECT_NO_THROW(static_cast<void>(parse(R"("parse_special":false)")));
  EXPECT_TRUE(parse("").options.skip_special_tokens);
  EXPECT_FALSE(parse(R"("skip_special_tokens":false)").options.skip_special_tokens);
  EXPECT_EQ(parse(R"("add_special_tokens":true)").options.add_special_tokens, true);
}

}  // namespace
}  // namespace spel::proto

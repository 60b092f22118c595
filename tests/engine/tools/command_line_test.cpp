#include "engine/tools/command_line.h"

#include <gtest/gtest.h>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include "config/base/error.h"
#include "tests/engine/model/model_fixtures.h"
#include "tests/engine/tools/run_tool.h"

namespace spel::engine::tools {
namespace {

using engine::testing::error_of;
using testing::ScopedVariable;
using testing::ToolRun;

const OptionNames kNames = {{"model", "k"}, {"json"}, 2};

Options parsed(const std::vector<std::string>& args) { return {args, kNames}; }

TEST(CommandLine, TakesValuesBesideOrBehindAnEqualsSign) {
  const Options options = parsed({"--model", "a b", "first", "--k=4", "--json", "second"});
  EXPECT_EQ(options.value("model"), "a b");
  EXPECT_EQ(options.value("k"), "4");
  EXPECT_TRUE(options.has("json"));
  EXPECT_EQ(options.positional(), (std::vector<std::string>{"first", "second"}));
  EXPECT_FALSE(parsed({}).has("json"));
  EXPECT_EQ(parsed({}).value("k"), std::nullopt);
}

TEST(CommandLine, TakesAnyTextForAValue) {
  for (const std::string text :
       {"", "-1", "--json", "-", "a=b=", "[1,2]", "{}", "\"", "\xC3\xA9 \n"}) {
    EXPECT_EQ(parsed({"--model", text, "--k", "1"}).value("model"), text);
    EXPECT_EQ(parsed({"--model=" + text, "--k", "1"}).value("model"), text);
  }
  EXPECT_EQ(parsed({"--model", "a,b"}).value("model"), "a,b");
}

TEST(CommandLine, NamesTheArgumentItRefuses) {
  const auto problem = [](const std::vector<std::string>& args) {
    return error_of([&] { (void)parsed(args); });
  };
  EXPECT_EQ(problem({"--modle", "x"}), "unknown option --modle");
  EXPECT_EQ(problem({"--modle=x"}), "unknown option --modle=x");
  EXPECT_EQ(problem({"--model"}), "option --model needs a value");
  EXPECT_EQ(problem({"--k", "1", "--k=1"}), "option --k is given twice");
  EXPECT_EQ(problem({"--json=false"}), "option --json takes no value");
  EXPECT_EQ(problem({"a", "b", "c"}), "unexpected argument c");
}

ToolRun run(const std::vector<std::string>& args, const std::function<int(const Options&)>& body,
            bool needs_environment = true) {
  std::ostringstream out;
  std::ostringstream err;
  const int status =
      run_subcommand({"tool", "usage: tool\n", kNames, needs_environment}, args, {out, err}, body);
  return {status, out.str(), err.str()};
}

TEST(CommandLine, WhatASubcommandThrowsIsPrintedAndBecomesItsStatus) {
  const auto outcome = [](const auto& error) {
    return run({}, [&](const Options&) -> int { throw error; });
  };
  const ToolRun usage = outcome(UsageError("give a model"));
  EXPECT_EQ(usage.status, kToolBadUsage);
  EXPECT_EQ(usage.err, "tool: give a model\nusage: tool\n");
  EXPECT_EQ(outcome(UsageError()).err, "usage: tool\n");
  const ToolRun value = outcome(Error(ErrorCode::kInvalidArgument, "--k is \"x\""));
  EXPECT_EQ(value.status, kToolBadUsage);
  EXPECT_EQ(value.err, "tool: --k is \"x\"\n");
  const ToolRun file = outcome(Error(ErrorCode::kCorrupt, "cut short"));
  EXPECT_EQ(file.status, kToolFailed);
  EXPECT_EQ(file.err, "tool: cut short\n");
  EXPECT_EQ(outcome(std::bad_alloc()).status, kToolFailed);
  EXPECT_EQ(run({}, [](const Options&) { return 1; }).status, 1);
}

TEST(CommandLine, HelpIsAnsweredWhateverTheEnvironmentHolds) {
  const ScopedVariable isa("SPEL_ISA", "mmx");
  const auto never = [](const Options&) -> int {
    ADD_FAILURE() << "it ran";
    return kToolOk;
  };
  const ToolRun help = run({"--help"}, never);
  EXPECT_EQ(help.status, kToolOk);
  EXPECT_EQ(help.out, "usage: tool\n");
  EXPECT_EQ(run({}, never).status, kToolBadUsage);
  EXPECT_EQ(run({}, [](const Options&) { return kToolOk; }, false).status, kToolOk);
}

}  // namespace
}  // namespace spel::engine::tools

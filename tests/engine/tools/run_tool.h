// Runs a tool in this process and keeps what it printed.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "engine/tools/tool.h"

namespace spel::engine::tools::testing {

struct ToolRun {
  int status = 0;
  std::string out;
  std::string err;
};

using Tool = int (*)(std::span<const std::string>, ToolStreams);

inline ToolRun run_tool(Tool tool, const std::vector<std::string>& args) {
  std::ostringstream out;
  std::ostringstream err;
  ToolRun run;
  run.status = tool(args, {out, err});
  run.out = out.str();
  run.err = err.str();
  return run;
}

/// An environment variable for the length of a scope.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~ScopedVariable() { ::unsetenv(name_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
};

inline const std::string kShippedModel = SPEL_SOURCE_DIR "/engine/models/spel-21m";

/// A wrong command line is refused with status 2, naming what is wrong.
struct BadUsage {
  std::vector<std::string> args;
  std::string named;
};

}  // namespace spel::engine::tools::testing

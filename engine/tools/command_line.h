// From a command line to an exit status: what every subcommand but `serve` and `health` runs
// through.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engine/tools/tool.h"
#include "engine/tools/values.h"

namespace spel::engine::tools {

/// What a tool accepts: positional arguments, --name VALUE or --name=VALUE, and flags.
struct OptionNames {
  std::set<std::string> with_value;  ///< Without the dashes.
  std::set<std::string> flags;
  std::size_t positional_max = 0;
};

/// A parsed command line. Throws Error(kInvalidArgument) naming the argument for anything not in
/// `names`, a missing value, or an option given twice.
class Options {
 public:
  Options(std::span<const std::string> args, const OptionNames& names);

  [[nodiscard]] const std::vector<std::string>& positional() const noexcept { return positional_; }
  [[nodiscard]] bool has(const std::string& name) const { return flags_.contains(name); }
  [[nodiscard]] std::optional<std::string> value(const std::string& name) const;

 private:
  std::vector<std::string> positional_;
  std::map<std::string, std::string> values_;
  std::set<std::string> flags_;
};

struct Subcommand {
  const char* name;   ///< Before every message.
  const char* usage;  ///< What --help prints.
  OptionNames options;
  bool needs_environment = true;  ///< Whether it asks the SPEL_… variables anything.
};

/// A command line that the subcommand cannot run with, without being wrong in one of its words: the
/// usage is printed after the message, if there is one.
class UsageError : public std::exception {
 public:
  explicit UsageError(std::string message = {}) : message_(std::move(message)) {}
  [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

/// Parses `args`, answers --help, checks the environment and runs. What that throws is printed to
/// `err` and becomes kToolBadUsage (UsageError, or Error of kInvalidArgument) or kToolFailed.
[[nodiscard]] int run_subcommand(const Subcommand& subcommand, std::span<const std::string> args,
                                 ToolStreams streams,
                                 const std::function<int(const Options&)>& run);

/// The value of --temperature; 0 if it is not given.
[[nodiscard]] float temperature_of(const Options& options);

}  // namespace spel::engine::tools

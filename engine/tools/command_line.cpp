#include "engine/tools/command_line.h"

#include <CLI/CLI.hpp>
#include <ostream>

#include "config/base/error.h"
#include "engine/tools/environment.h"

namespace spel::engine::tools {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

/// CLI11 takes arguments last first, and "--name=" for an option whose value follows.
std::vector<std::string> as_cli11_wants(std::span<const std::string> args) {
  std::vector<std::string> reversed;
  for (auto arg = args.rbegin(); arg != args.rend(); ++arg) {
    if (arg->starts_with("--") && arg->find('=') == arg->size() - 1) {
      reversed.emplace_back();
      reversed.push_back(arg->substr(0, arg->size() - 1));
    } else {
      reversed.push_back(*arg);
    }
  }
  return reversed;
}

}  // namespace

Options::Options(std::span<const std::string> args, const OptionNames& names) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::map<std::string, CLI::Option*> options;
  for (const std::string& name : names.with_value) {
    options[name] = app.add_option("--" + name)
                        ->expected(1)
                        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  for (const std::string& name : names.flags) {
    options[name] = app.add_flag("--" + name);
  }
  try {
    app.parse(as_cli11_wants(args));
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string message = error.what();
    refuse("option " + message.substr(0, message.find(':')) + " needs a value");
  } catch (const CLI::ParseError& error) {
    refuse(error.what());
  }
  for (const std::string& word : app.remaining()) {
    if (word.starts_with("-")) {
      refuse("unknown option " + word);
    }
    if (positional_.size() == names.positional_max) {
      refuse("unexpected argument " + word);
    }
    positional_.push_back(word);
  }
  for (const auto& [name, option] : options) {
    if (option->empty()) {
      continue;
    }
    if (names.flags.contains(name)) {
      if (option->results().front() != "true") {
        refuse("option --" + name + " takes no value");
      }
      flags_.insert(name);
    } else if (option->count() > 1) {
      refuse("option --" + name + " is given twice");
    } else {
      values_.emplace(name, option->results().front());
    }
  }
}

std::optional<std::string> Options::value(const std::string& name) const {
  const auto at = values_.find(name);
  return at == values_.end() ? std::nullopt : std::optional(at->second);
}

int run_subcommand(const Subcommand& subcommand, std::span<const std::string> args,
                   ToolStreams streams, const std::function<int(const Options&)>& run) {
  const auto complain = [&](const char* message) {
    streams.err << subcommand.name << ": " << message << "\n";
  };
  try {
    OptionNames names = subcommand.options;
    names.flags.insert("help");
    const Options options(args, names);
    if (options.has("help")) {
      streams.out << subcommand.usage;
      return kToolOk;
    }
    if (subcommand.needs_environment) {
      check_environment();
    }
    return run(options);
  } catch (const UsageError& error) {
    if (*error.what() != '\0') {
      complain(error.what());
    }
    streams.err << subcommand.usage;
    return kToolBadUsage;
  } catch (const Error& error) {
    complain(error.what());
    return error.code() == ErrorCode::kInvalidArgument ? kToolBadUsage : kToolFailed;
  } catch (const std::exception& error) {
    complain(error.what());
    return kToolFailed;
  }
}

float temperature_of(const Options& options) {
  return parse_from_zero("--temperature", options.value("temperature").value_or("0"));
}

}  // namespace spel::engine::tools

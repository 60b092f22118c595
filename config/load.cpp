#include "config/load.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <optional>
#include <unistd.h>

#include "config/base/error.h"
#include "config/base/shipped_model.h"
#include "config/config_file.h"
#include "config/options.h"

namespace spel::config {

namespace {

using Values = std::map<std::string, std::string, std::less<>>;

/// What the flags said, as text.
struct Flags {
  Values values;
  std::optional<std::string> file;
  bool help = false;
  bool print_config = false;
  bool config_table = false;
};

Flags parse_flags(const std::vector<std::string>& arguments) {
  Flags flags;
  CLI::App app;
  app.set_help_flag();
  app.add_flag("-h,--help", flags.help);
  app.add_flag("--print-config", flags.print_config);
  app.add_flag("--config-table", flags.config_table);
  app.add_option("--config", flags.file);
  Values texts;
  std::vector<std::pair<const Option*, CLI::Option*>> given;
  for (const auto& option : option_table()) {
    std::string& text = texts[std::string(option.key)];
    // A switch may stand alone or take "=false".
    CLI::Option* flag = std::holds_alternative<SwitchOption>(option.kind)
                            ? app.add_flag(option.flag(), text)
                            : app.add_option(option.flag(), text);
    given.emplace_back(&option, flag);
  }
  // CLI11 takes them last first, and "--name=" for a flag without a value.
  std::vector<std::string> reversed;
  for (auto argument = arguments.rbegin(); argument != arguments.rend(); ++argument) {
    reversed.push_back(*argument);
    if (argument->size() > 3 && argument->rfind("--", 0) == 0 && argument->back() == '=') {
      reversed.back().clear();
      reversed.push_back(argument->substr(0, argument->size() - 1));
    }
  }
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorCode::kInvalidArgument,
                std::string(error.what()) + "; spel serve --help lists the flags");
  }
  for (const auto& [option, flag] : given) {
    if (flag->count() > 0) {
      flags.values.emplace(option->key, texts.at(std::string(option->key)));
    }
  }
  return flags;
}

/// The variable that sets an option, by whichever of its names.
std::optional<std::pair<std::string, std::string>> find_variable(const Option& option,
                                                                 const Environment& environment) {
  const auto main = environment.find(option.variable());
  const auto other = environment.find(option.other_variable);
  if (main != environment.end() && other != environment.end() && main->second != other->second) {
    throw Error(ErrorCode::kInvalidArgument, std::string(option.key) + ": " + main->first + "=\"" +
                                                 main->second + "\" and " + other->first + "=\"" +
                                                 other->second +
                                                 "\" contradict each other; set one of them");
  }
  if (main != environment.end()) {
    return *main;
  }
  return other != environment.end() ? std::optional(*other) : std::nullopt;
}

/// Kubernetes sets NAME_PORT=tcp://10.0.0.1:8080 in every pod for a Service called NAME.
bool is_service_link(std::string_view value) {
  constexpr std::array<std::string_view, 3> kSchemes = {"tcp://", "udp://", "sctp://"};
  return std::any_of(kSchemes.begin(), kSchemes.end(),
                     [&](std::string_view scheme) { return value.rfind(scheme, 0) == 0; });
}

void refuse_service_link(const std::string& name, const std::string& value) {
  if (is_service_link(value)) {
    throw Error(
        ErrorCode::kInvalidArgument,
        name + "=\"" + value +
            "\" is not a setting of anybody's: Kubernetes sets it in every pod for a Service "
            "called \"spel\". Set enableServiceLinks: false in the pod's spec, or give the "
            "Service another name");
  }
}

/// Rules between two settings.
void check_together(const ServerConfig& config) {
  if (config.tls_cert.empty() != config.tls_key.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "tls_cert: \"" + config.tls_cert +
                                                 "\" and tls_key: \"" + config.tls_key +
                                                 "\" must be given together");
  }
  if (config.wire_bytes < config.body_bytes) {
    throw Error(ErrorCode::kInvalidArgument,
                "wire_bytes: " + std::to_string(config.wire_bytes) +
                    " must not be less than body_bytes: " + std::to_string(config.body_bytes));
  }
}

bool is_known_variable(std::string_view name) {
  // Read by the command-line tools and by ./run; harmless to a server.
  constexpr std::array kOthers = {
      "SPEL_CONFIG",   "SPEL_CONFIG_FILE", "SPEL_D_MODEL",   "SPEL_N_LAYERS",    "SPEL_N_HEADS",
      "SPEL_HEAD_DIM", "SPEL_D_FF",        "SPEL_VOCAB",     "SPEL_ATTN_PERIOD", "SPEL_DRAFT_MAP",
      "SPEL_BENCH_K",  "SPEL_VERIFY_TOL",  "SPEL_NO_INSTALL"};
  if (std::find(kOthers.begin(), kOthers.end(), name) != kOthers.end()) {
    return true;
  }
  const auto& table = option_table();
  return std::any_of(table.begin(), table.end(), [&](const Option& option) {
    return name == option.variable() || name == option.other_variable;
  });
}

bool lists_any(const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), "*") != names.end();
}

std::vector<std::string> find_warnings(const ServerConfig& config, const Environment& environment) {
  std::vector<std::string> warnings;
  for (const auto& [name, value] : environment) {
    if (!is_known_variable(name)) {
      warnings.push_back(name +
                         " is set and means nothing to spel; spel serve --help lists the "
                         "variables");
    }
  }
  const auto shape = environment.find("SPEL_CONFIG");
  if (shape != environment.end() && shape->second.find('=') == std::string::npos) {
    warnings.emplace_back(
        "SPEL_CONFIG is the shape of a random model; the server's file is named by --config or "
        "SPEL_CONFIG_FILE");
  }
  const bool local = !config.unix_socket.empty() || config.host == "127.0.0.1" ||
                     config.host == "localhost" || config.host == "::1";
  if (!local && config.api_keys_file.empty()) {
    warnings.push_back("listening on " + config.host +
                       " without API keys: whoever reaches the port can use the server");
  }
  const bool any_page = lists_any(config.cors_origins) || lists_any(config.allowed_hosts);
  if (any_page && config.api_keys_file.empty()) {
    warnings.emplace_back(
        "cors_origins or allowed_hosts is * and there are no API keys: every web page that a user "
        "who reaches the port opens can use the server, its note banks included");
  }
  return warnings;
}

}  // namespace

Environment process_environment() {
  Environment environment;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    if (equals != std::string_view::npos && text.rfind("SPEL_", 0) == 0) {
      environment.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return environment;
}

LoadedConfig load_server_config(const std::vector<std::string>& arguments,
                                const Environment& environment) {
  LoadedConfig loaded;
  const Flags flags = parse_flags(arguments);
  if (flags.help || flags.config_table) {
    loaded.action = Action::kPrint;
    loaded.text = flags.help ? config_help() : config_table();
    return loaded;
  }

  std::optional<std::string> path = flags.file;
  if (const auto variable = environment.find("SPEL_CONFIG_FILE");
      !path && variable != environment.end()) {
    path = variable->second;
  }
  const Values file = path ? read_config_file(*path) : Values();

  // From the weakest to the strongest, so that every value given is checked.
  for (const auto& option : option_table()) {
    std::string& source = loaded.sources[std::string(option.key)];
    source = "default";
    if (const auto value = file.find(option.key); value != file.end()) {
      set_option(loaded.config, option, value->second, *path);
      source = "file";
    }
    if (const auto variable = find_variable(option, environment)) {
      refuse_service_link(variable->first, variable->second);
      set_option(loaded.config, option, variable->second, variable->first);
      source = "environment";
    }
    if (const auto value = flags.values.find(option.key); value != flags.values.end()) {
      set_option(loaded.config, option, value->second, option.flag());
      source = "flag";
    }
  }
  if (loaded.sources.at("model") == "default") {
    if (const auto shipped = find_shipped_model()) {
      loaded.config.model = *shipped;
    }
  }
  check_together(loaded.config);
  loaded.warnings = find_warnings(loaded.config, environment);
  if (flags.print_config) {
    loaded.action = Action::kPrint;
    loaded.text = config_listing(loaded.config, loaded.sources);
  }
  return loaded;
}

}  // namespace spel::config

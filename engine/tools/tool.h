// The tools of the command line, as plain functions: the program's main() picks one by name.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

namespace spel::engine::tools {

/// Where a tool writes. Results go to `out`, problems to `err`.
struct ToolStreams {
  std::ostream& out;
  std::ostream& err;
};

// Exit statuses of every tool.
inline constexpr int kToolOk = 0;
inline constexpr int kToolFailed = 1;    ///< The input was understood and is bad.
inline constexpr int kToolBadUsage = 2;  ///< The command line or an environment value is wrong.

/// `spel verify-weights PATH [--config k=v,…] [--no-golden]`: loads a model, runs its golden tokens
/// and compares. `args` are those after the subcommand's name. Never throws.
[[nodiscard]] int verify_weights_main(std::span<const std::string> args, ToolStreams streams);

/// `spel convert SRC DST [--to spelw|directory] [--golden]`, or
/// `spel convert --random DST [--seed N] [--config k=v,…] …`. Never throws; on failure nothing is
/// left at DST that was not there before.
[[nodiscard]] int convert_weights_main(std::span<const std::string> args, ToolStreams streams);

/// `spel generate --model PATH --prompt TEXT …`: streams the output to `out`, the receipt to `err`.
/// Never throws.
[[nodiscard]] int generate_main(std::span<const std::string> args, ToolStreams streams);

struct SuiteContext;
class Checks;
/// Suite [4]: the memory lives above the engine, so whoever has both brings it.
using NoteBankSuite = void (*)(const SuiteContext&, Checks&);

/// `spel selftest [--model PATH] [--config k=v,…] [--only N,…] [--break N]`: the engine's promises,
/// suite by suite; without `notebank` its suite is skipped. kToolOk if all hold. Never throws.
[[nodiscard]] int run_selftest(std::span<const std::string> args, ToolStreams streams,
                               NoteBankSuite notebank);
[[nodiscard]] int selftest_main(std::span<const std::string> args, ToolStreams streams);

/// `spel bench [--json] …`: what the machine does with the engine. Figures to `out`, progress to
/// `err`. Never throws.
[[nodiscard]] int bench_main(std::span<const std::string> args, ToolStreams streams);

}  // namespace spel::engine::tools

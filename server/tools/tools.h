// The subcommands that need engine and memory together, or the note store alone.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

#include "engine/tools/command_line.h"

namespace spel::server::tools {

/// `spel notebank list|show|export|import|delete|bench …`. Never throws.
[[nodiscard]] int notebank_main(std::span<const std::string> args,
                                engine::tools::ToolStreams streams);

/// `spel demo [--model PATH]`: write, address, restore, replay, decode, step by step. Never throws.
[[nodiscard]] int demo_main(std::span<const std::string> args, engine::tools::ToolStreams streams);

/// `spel selftest` with the memory's suite; see engine/tools/tool.h. Never throws.
[[nodiscard]] int selftest_main(std::span<const std::string> args,
                                engine::tools::ToolStreams streams);

/// `spel bench`; with --notebank it is `spel notebank bench`. Never throws.
[[nodiscard]] int bench_main(std::span<const std::string> args, engine::tools::ToolStreams streams);

/// `spel notebank bench`: see notebank_main.
[[nodiscard]] int notebank_bench(const engine::tools::Options& options, std::ostream& out);

}  // namespace spel::server::tools

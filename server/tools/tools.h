// The subcommands that need engine and memory together, or the note store alone.
#pragma once

#include <span>
#include <string>

#include "engine/tools/tool.h"

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
[[nodiscard]] int notebank_bench(std::span<const std::string> args,
                                 engine::tools::ToolStreams streams);

}  // namespace spel::server::tools

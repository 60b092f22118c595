// The `spel` binary: a table of subcommands.
#include <array>
#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "engine/files/sha256.h"
#include "engine/tools/tool.h"
#include "server/constants.h"
#include "server/health_probe.h"
#include "server/last_words.h"
#include "server/serve.h"
#include "server/tools/tools.h"

namespace {

using Arguments = std::vector<std::string>;

struct Subcommand {
  std::string_view name;
  std::string_view summary;
  int (*run)(const Arguments&);
};

template <auto Tool>
int run_tool(const Arguments& arguments) {
  return Tool(arguments, {std::cout, std::cerr});
}

namespace tools = spel::engine::tools;

constexpr std::array kSubcommands{
    Subcommand{"serve", "run the server; see spel serve --help", &spel::server::serve},
    Subcommand{"health", "ask the server with these settings whether it is ready",
               &spel::server::health},
    Subcommand{"generate", "complete one prompt on the terminal", &run_tool<&tools::generate_main>},
    Subcommand{"bench", "measure kernels, verification, decoding and rollback",
               &run_tool<&spel::server::tools::bench_main>},
    Subcommand{"selftest", "check the engine's promises on this machine",
               &run_tool<&spel::server::tools::selftest_main>},
    Subcommand{"verify-weights", "check a model against its golden logits",
               &run_tool<&tools::verify_weights_main>},
    Subcommand{"convert", "turn a model directory into a SPELW001 file or back",
               &run_tool<&tools::convert_weights_main>},
    Subcommand{"notebank", "list, show, export, import, delete and measure banks of notes",
               &run_tool<&spel::server::tools::notebank_main>},
    Subcommand{"demo", "write, address, replay and decode, step by step",
               &run_tool<&spel::server::tools::demo_main>},
};

void print_usage(std::FILE* out) {
  std::fputs("usage: spel SUBCOMMAND [OPTION ...]\n\n", out);
  for (const Subcommand& subcommand : kSubcommands) {
    std::fprintf(out, "  %-16s%s\n", std::string(subcommand.name).c_str(),
                 std::string(subcommand.summary).c_str());
  }
  std::fputs("  --version       print the version\n", out);
}

}  // namespace

int main(int argc, char** argv) {
  spel::server::install_last_words();
  // The library behind it sets itself up at its first use, and crashes if memory runs out just
  // then.
  (void)spel::engine::sha256_hex(std::string_view());
  const Arguments arguments(argv + 1, argv + argc);
  if (arguments.empty()) {
    print_usage(stderr);
    return 2;
  }
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h" || name == "help") {
    print_usage(stdout);
    return 0;
  }
  if (name == "--version") {
    std::printf("spel %s\n", std::string(spel::server::kVersion).c_str());
    return 0;
  }
  for (const Subcommand& subcommand : kSubcommands) {
    if (subcommand.name == name) {
      return subcommand.run(Arguments(arguments.begin() + 1, arguments.end()));
    }
  }
  std::fprintf(stderr, "spel: no subcommand \"%s\"\n\n", name.c_str());
  print_usage(stderr);
  return 2;
}

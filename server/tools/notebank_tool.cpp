#include <algorithm>
#include <map>
#include <ostream>

#include "config/base/error.h"
#include "config/json/value.h"
#include "engine/tools/command_line.h"
#include "memory/store.h"
#include "server/tools/notebank_files.h"
#include "server/tools/tools.h"

namespace spel::server::tools {
namespace {

using engine::tools::Options;
using engine::tools::ToolStreams;
using memory::Store;

constexpr const char* kUsage =
    "usage: spel notebank COMMAND --data-dir DIRECTORY [ARGUMENTS]\n"
    "  list                 the banks\n"
    "  show BANK            its notes, one a line\n"
    "  export BANK          to standard output, as JSON lines\n"
    "  import BANK FILE     what export wrote, into a bank of this name\n"
    "  delete BANK [ID]     the bank, or one note of it\n"
    "                       all or nothing; what the bank has already is left out\n"
    "       spel notebank bench [--model PATH] [--characters N] [--facts N] [--digits N]\n"
    "                     [--questions N] [--search-notes N] [--threads N] [--json]\n"
    "                     [--sentences N]\n"
    "  what the memory of a model finds and what that changes; see memory/README.md.\n"
    "  spel bench --notebank is the same\n"
    "import and delete need the store for themselves: stop the server first.\n";

void list(Store& store, std::ostream& out) {
  for (const memory::BankInfo& bank : store.banks()) {
    out << bank.name << "\t" << bank.notes << " notes\t" << bank.bytes << " bytes\tmodel "
        << bank.model << "\n";
  }
}

memory::BankInfo require_bank(Store& store, const std::string& name) {
  auto bank = store.find_bank(name);
  if (!bank) {
    throw Error(ErrorCode::kNotFound,
                "there is no bank " + name + "; spel notebank list shows them");
  }
  return std::move(*bank);
}

void say_damaged(const std::vector<memory::NoteId>& damaged, std::ostream& err) {
  if (!damaged.empty()) {
    err << "spel notebank: " << damaged.size()
        << " damaged notes are left out, the first of them note " << damaged.front() << "\n";
  }
}

void show(Store& store, const std::string& name, ToolStreams streams) {
  (void)require_bank(store, name);
  const auto damaged = store.visit_notes(name, [&](const memory::Note& note, auto, auto) {
    streams.out << note.id << "\t" << note.start << "\t" << note.score << "\t"
                << dump_json(note.text) << "\t" << note.metadata << "\n";
  });
  say_damaged(damaged, streams.err);
}

void remove(Store& store, const std::vector<std::string>& arguments, std::ostream& out) {
  const std::string& name = arguments[1];
  if (arguments.size() == 2) {
    (void)require_bank(store, name);
    (void)store.remove_bank(name);
    out << "bank " << name << " deleted\n";
    return;
  }
  const auto id = static_cast<memory::NoteId>(
      engine::tools::parse_unsigned("the note's id", arguments[2], 1ULL << 62U));
  if (!store.remove_note(name, id)) {
    throw Error(ErrorCode::kNotFound, "bank " + name + " has no note " + arguments[2]);
  }
  out << "note " << id << " of bank " << name << " deleted\n";
}

int run(const Options& options, ToolStreams streams) {
  const std::vector<std::string>& words = options.positional();
  // How many words each command takes.
  const std::map<std::string, std::pair<std::size_t, std::size_t>> commands{{"list", {1, 1}},
                                                                            {"show", {2, 2}},
                                                                            {"export", {2, 2}},
                                                                            {"import", {3, 3}},
                                                                            {"delete", {2, 3}}};
  const auto command = words.empty() ? commands.end() : commands.find(words[0]);
  if (command == commands.end() || words.size() < command->second.first ||
      words.size() > command->second.second) {
    throw engine::tools::UsageError();
  }
  if (!options.value("data-dir")) {
    throw Error(ErrorCode::kInvalidArgument,
                "--data-dir is missing: the directory that spel serve --data-dir names");
  }
  const bool writes = words[0] == "import" || words[0] == "delete";
  Store store(*options.value("data-dir"), writes ? Store::Mode::kOwner : Store::Mode::kReader);
  for (const std::string& warning : store.warnings()) {
    streams.err << "spel notebank: " << warning << "\n";
  }
  if (words[0] == "list") {
    list(store, streams.out);
  } else if (words[0] == "show") {
    show(store, words[1], streams);
  } else if (words[0] == "export") {
    say_damaged(export_bank(store, require_bank(store, words[1]), streams.out), streams.err);
  } else if (words[0] == "import") {
    const Imported done = import_bank(store, words[1], words[2]);
    streams.out << done.imported << " notes imported into " << words[1];
    if (done.already_there > 0) {
      streams.out << "; " << done.already_there << " were there already and are left out";
    }
    streams.out << "\n";
  } else {
    remove(store, words, streams.out);
  }
  return engine::tools::kToolOk;
}

}  // namespace

int bench_main(std::span<const std::string> args, ToolStreams streams) {
  std::vector<std::string> rest(args.begin(), args.end());
  if (std::erase(rest, "--notebank") == 0) {
    return engine::tools::bench_main(args, streams);
  }
  rest.insert(rest.begin(), "bench");
  return notebank_main(rest, streams);
}

int notebank_main(std::span<const std::string> args, ToolStreams streams) {
  if (!args.empty() && args.front() == "bench") {
    return engine::tools::run_subcommand({"spel notebank",
                                          kUsage,
                                          {{"model", "characters", "facts", "digits", "questions",
                                            "score", "search-notes", "threads", "sentences"},
                                           {"json"},
                                           0}},
                                         args.subspan(1), streams, [&](const Options& options) {
                                           return notebank_bench(options, streams.out);
                                         });
  }
  return engine::tools::run_subcommand(
      {"spel notebank", kUsage, {{"data-dir"}, {}, 3}, false}, args, streams,
      [&](const Options& options) { return run(options, streams); });
}

}  // namespace spel::server::tools

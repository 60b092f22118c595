#include <algorithm>
#include <fstream>
#include <istream>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "config/base/error.h"
#include "engine/tools/options.h"
#include "memory/store.h"
#include "server/tools/tools.h"

namespace spel::server::tools {
namespace {

using engine::tools::Options;
using engine::tools::ToolStreams;
using memory::Store;
using nlohmann::json;

constexpr const char* kUsage =
    "usage: spel notebank COMMAND --data-dir DIRECTORY [ARGUMENTS]\n"
    "  list                 the banks\n"
    "  show BANK            its notes, one a line\n"
    "  export BANK          to standard output, as JSON lines\n"
    "  import BANK FILE     what export wrote, into a bank of this name\n"
    "  delete BANK [ID]     the bank, or one note of it\n"
    "       spel notebank bench [--model PATH] [--characters N] [--facts N] [--digits N]\n"
    "                     [--questions N] [--search-notes N] [--threads N] [--json]\n"
    "  what the memory of a model finds and what that changes; see memory/README.md.\n"
    "  spel bench --notebank is the same\n"
    "import and delete need the store for themselves: stop the server first.\n";

/// Notes imported in one transaction.
constexpr std::size_t kImportBatch = 4096;

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

void show(Store& store, const std::string& name, std::ostream& out) {
  (void)require_bank(store, name);
  store.visit_notes(name, [&](const memory::Note& note, auto, auto) {
    out << note.id << "\t" << note.start << "\t" << note.score << "\t" << json(note.text).dump()
        << "\t" << note.metadata << "\n";
  });
}

void export_bank(Store& store, const std::string& name, std::ostream& out) {
  const memory::BankInfo bank = require_bank(store, name);
  out << json{{"bank", bank.name},
              {"format", memory::kBankFormat},
              {"model", bank.model},
              {"channels", bank.shape.channels},
              {"head_dim", bank.shape.head_dim}}
      << "\n";
  store.visit_notes(name, [&](const memory::Note& note, auto coordinates, auto sketch) {
    out << json{{"start", note.start},
                {"score", note.score},
                {"metadata", note.metadata},
                {"text", note.text},
                {"tokens", note.tokens},
                {"coordinates", std::vector<std::uint16_t>(coordinates.begin(), coordinates.end())},
                {"sketch", std::vector<std::uint16_t>(sketch.begin(), sketch.end())}}
        << "\n";
  });
}

memory::NoteDraft read_note(const json& line) {
  memory::NoteDraft note;
  line.at("start").get_to(note.start);
  line.at("score").get_to(note.score);
  line.at("metadata").get_to(note.metadata);
  line.at("text").get_to(note.text);
  line.at("tokens").get_to(note.tokens);
  line.at("coordinates").get_to(note.coordinates);
  line.at("sketch").get_to(note.sketch);
  return note;
}

void import_bank(Store& store, const std::string& name, const std::string& path,
                 std::ostream& out) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) {
    throw Error(ErrorCode::kIo, "cannot read " + path);
  }
  std::size_t number = 1;
  std::size_t imported = 0;
  try {
    const json head = json::parse(line);
    const std::string model = head.at("model");
    const memory::ChannelShape shape{head.at("channels"), head.at("head_dim")};
    // Exports of the first format did not name it.
    const std::int64_t format = head.value("format", std::int64_t{1});
    if (format != memory::kBankFormat) {
      throw Error(ErrorCode::kCorrupt,
                  path + " has format " + std::to_string(format) + "; this program reads format " +
                      std::to_string(memory::kBankFormat) +
                      ": its coordinates would find nothing; write its texts again");
    }
    std::vector<memory::NoteDraft> notes;
    const auto flush = [&] {
      imported += store.append(name, model, shape, notes).size();
      notes.clear();
    };
    while (std::getline(file, line)) {
      ++number;
      memory::NoteDraft note = read_note(json::parse(line));
      if (note.sketch.size() != memory::kSketchCoordinates * memory::kAnchors ||
          note.coordinates.size() != shape.channels * memory::kChannelCoordinates) {
        throw Error(ErrorCode::kCorrupt, path + ", line " + std::to_string(number) +
                                             ": the coordinates are not those of its model");
      }
      notes.push_back(std::move(note));
      if (notes.size() == kImportBatch) {
        flush();
      }
    }
    flush();
  } catch (const json::exception& error) {
    throw Error(ErrorCode::kCorrupt,
                path + ", line " + std::to_string(number) +
                    ": not a line that spel notebank export writes: " + error.what() + "; " +
                    std::to_string(imported) + " notes before it are imported");
  }
  out << imported << " notes imported into " << name << "\n";
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

int run(std::span<const std::string> args, ToolStreams streams) {
  const Options options(args, {{"data-dir"}, {"help"}, 3});
  if (options.has("help")) {
    streams.out << kUsage;
    return engine::tools::kToolOk;
  }
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
    streams.err << kUsage;
    return engine::tools::kToolBadUsage;
  }
  if (!options.value("data-dir")) {
    throw Error(ErrorCode::kInvalidArgument,
                "--data-dir is missing: the directory that spel serve --data-dir names");
  }
  const bool writes = words[0] == "import" || words[0] == "delete";
  Store store(*options.value("data-dir"), writes ? Store::Mode::kOwner : Store::Mode::kReader);
  if (words[0] == "list") {
    list(store, streams.out);
  } else if (words[0] == "show") {
    show(store, words[1], streams.out);
  } else if (words[0] == "export") {
    export_bank(store, words[1], streams.out);
  } else if (words[0] == "import") {
    import_bank(store, words[1], words[2], streams.out);
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
  try {
    if (!args.empty() && args.front() == "bench") {
      return notebank_bench(args.subspan(1), streams);
    }
    return run(args, streams);
  } catch (const Error& error) {
    streams.err << "spel notebank: " << error.what() << "\n";
    return error.code() == ErrorCode::kInvalidArgument ? engine::tools::kToolBadUsage
                                                       : engine::tools::kToolFailed;
  } catch (const std::exception& error) {
    streams.err << "spel notebank: " << error.what() << "\n";
  }
  return engine::tools::kToolFailed;
}

}  // namespace spel::server::tools

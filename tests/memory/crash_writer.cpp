// crash_writer write DIRECTORY ACKNOWLEDGED: writes notes for ever and appends each one's id and
// text to ACKNOWLEDGED after the store has promised it.
// crash_writer check DIRECTORY ACKNOWLEDGED: 0 if all of those are there.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

#include "memory/store.h"

namespace {

using namespace spel::memory;

constexpr ChannelShape kShape{2, 4};
constexpr const char* kModel = "crash-test";

NoteDraft draft_of(std::uint64_t number) {
  NoteDraft draft;
  draft.text = "note " + std::to_string(number);
  draft.tokens.assign(draft.text.begin(), draft.text.end());
  draft.start = number;
  draft.coordinates.assign(kShape.channels * kChannelCoordinates,
                           static_cast<std::uint16_t>(number));
  draft.sketch.assign(kSketchCoordinates * kAnchors, static_cast<std::uint16_t>(number));
  return draft;
}

int write(const std::string& directory, const std::string& acknowledged) {
  Store store(directory, Store::Mode::kOwner);
  const int log = ::open(acknowledged.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  for (std::uint64_t number = static_cast<std::uint64_t>(::getpid()) << 20U;; ++number) {
    const NoteDraft draft = draft_of(number);
    const NoteId id = store.append("bank", kModel, kShape, {&draft, 1}).front();
    const std::string line = std::to_string(id) + " " + std::to_string(number) + "\n";
    // One write call: a killed process leaves the line whole or not at all.
    if (::write(log, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      return 1;
    }
  }
}

int check(const std::string& directory, const std::string& acknowledged) {
  Store store(directory, Store::Mode::kOwner);
  std::ifstream log(acknowledged);
  NoteId id = 0;
  std::uint64_t number = 0;
  while (log >> id >> number) {
    const auto note = store.find_note("bank", id);
    if (!note || note->text != draft_of(number).text || note->start != number) {
      std::fprintf(stderr, "note %lld is lost or wrong\n", static_cast<long long>(id));
      return 1;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() != 3) {
    return 2;
  }
  try {
    return arguments[0] == "write" ? write(arguments[1], arguments[2])
                                   : check(arguments[1], arguments[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

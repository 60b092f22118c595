// notebank_kill_test KILLS: a writer is killed at random moments; no acknowledged note may be lost.
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <poll.h>
#include <random>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "memory/store.h"

namespace {

using namespace spel::memory;
namespace fs = std::filesystem;

constexpr ChannelShape kShape{2, 4};
constexpr const char* kModel = "crash-test";
constexpr const char* kBank = "bank";
/// Kills between two looks at everything promised so far, and before a new store begins: a look
/// reads every note there is.
constexpr std::uint64_t kKillsPerCheck = 20;
constexpr std::uint64_t kKillsPerStore = 500;
/// A writer lives at most so long after its first promise.
constexpr std::uint64_t kLifeMicroseconds = 30'000;

/// What a writer says of a note once the store has promised it.
struct Promise {
  NoteId id;
  std::uint64_t number;
};

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

/// Writes for ever. A promise is smaller than a pipe's atomic write: it arrives whole or not at
/// all.
[[noreturn]] void write_notes(const fs::path& directory, std::uint64_t first, int pipe) {
  try {
    Store store(directory, Store::Mode::kOwner);
    for (std::uint64_t number = first;; ++number) {
      const NoteDraft draft = draft_of(number);
      const Promise promise{store.append(kBank, kModel, kShape, {&draft, 1}).front(), number};
      if (::write(pipe, &promise, sizeof(promise)) != sizeof(promise)) {
        break;
      }
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "the writer: %s\n", error.what());
  }
  ::_exit(1);
}

/// Starts a writer, kills it, and adds what it promised. False if it ended by itself.
bool run_one(const fs::path& directory, std::uint64_t first, std::mt19937_64& random,
             std::vector<Promise>& promises) {
  int ends[2];
  if (::pipe(ends) != 0) {
    return false;
  }
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    write_notes(directory, first, ends[1]);
  }
  ::close(ends[1]);
  // Every fourth kill may come before the store is open; the others wait for a first promise.
  if (random() % 4 != 0) {
    pollfd ready{.fd = ends[0], .events = POLLIN, .revents = 0};
    (void)::poll(&ready, 1, -1);
  }
  std::this_thread::sleep_for(std::chrono::microseconds(random() % kLifeMicroseconds));
  ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  Promise promise{};
  while (::read(ends[0], &promise, sizeof(promise)) == sizeof(promise)) {
    promises.push_back(promise);
  }
  ::close(ends[0]);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

bool all_there(const fs::path& directory, const std::vector<Promise>& promises) {
  Store store(directory, Store::Mode::kOwner);
  for (const Promise& promise : promises) {
    const auto note = store.find_note(kBank, promise.id);
    if (!note || note->text != draft_of(promise.number).text || note->start != promise.number) {
      std::fprintf(stderr, "note %lld is lost or wrong\n", static_cast<long long>(promise.id));
      return false;
    }
  }
  return true;
}

bool run(const fs::path& directory, std::uint64_t kills) {
  std::mt19937_64 random(std::random_device{}());
  std::vector<Promise> promises;
  std::uint64_t notes = 0;
  for (std::uint64_t kill = 1; kill <= kills; ++kill) {
    if (!run_one(directory / "bank", kill << 32U, random, promises)) {
      std::fprintf(stderr, "after %llu kills: a writer failed\n",
                   static_cast<unsigned long long>(kill - 1));
      return false;
    }
    const bool last_of_store = kill % kKillsPerStore == 0 || kill == kills;
    if ((kill % kKillsPerCheck == 0 || last_of_store) && !all_there(directory / "bank", promises)) {
      std::fprintf(stderr, "after %llu kills\n", static_cast<unsigned long long>(kill));
      return false;
    }
    if (last_of_store) {
      notes += promises.size();
      promises.clear();
      fs::remove_all(directory / "bank");
      std::printf("%llu kills, %llu notes acknowledged, none lost\n",
                  static_cast<unsigned long long>(kill), static_cast<unsigned long long>(notes));
      std::fflush(stdout);
    }
  }
  return notes > 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: notebank_kill_test KILLS\n", stderr);
    return 2;
  }
  std::string directory = (fs::temp_directory_path() / "spel-kill-XXXXXX").string();
  if (::mkdtemp(directory.data()) == nullptr) {
    std::perror("mkdtemp");
    return 1;
  }
  bool held = false;
  try {
    held = run(directory, std::stoull(argv[1]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  fs::remove_all(directory);
  return held ? 0 : 1;
}

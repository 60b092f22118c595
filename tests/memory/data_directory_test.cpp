// Where a store may lie, who may read it, and what is said when part of it is gone.
#include "memory/data_directory.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "config/base/error.h"
#include "kernels/kernels.h"
#include "memory/note_bank.h"
#include "memory/sqlite.h"
#include "memory/store.h"
#include "tests/scratch_folder.h"

namespace spel::memory {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr ChannelShape kShape{3, 8};
constexpr const char* kModel = "aaaa";

class DataDirectoryTest : public ::testing::Test {
 protected:
  [[nodiscard]] fs::path data() const { return root_ / "data"; }
  [[nodiscard]] fs::path file(const char* suffix = "") const {
    return data() / (std::string("notebank.db") + suffix);
  }
  void write_notes(std::size_t count) const {
    Store store(data(), Store::Mode::kOwner);
    NoteDraft note;
    note.text = "a fact";
    note.tokens.assign(note.text.begin(), note.text.end());
    (void)store.append("bank", kModel, kShape, std::vector<NoteDraft>(count, note));
  }
  [[nodiscard]] std::string refusal() const {
    try {
      const Store store(data(), Store::Mode::kOwner);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }
  [[nodiscard]] static mode_t mode_of(const fs::path& path) {
    struct stat status{};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777U;
  }
  /// In a process that may not write where others may not; true if it returned true.
  [[nodiscard]] static bool as_nobody(const std::function<bool()>& action) {
    constexpr uid_t kNobody = 65534;
    const pid_t child = ::fork();
    if (child == 0) {
      if (::geteuid() == 0 && (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0)) {
        ::_exit(3);
      }
      bool good = false;
      try {
        good = action();
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
      }
      ::_exit(good ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  spel::testing::ScratchFolder scratch_;
  fs::path root_ = scratch_.path();
};

TEST_F(DataDirectoryTest, NothingIsWrittenThroughALink) {
  const fs::path elsewhere = root_ / "elsewhere.db";
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    fs::remove_all(data());
    fs::create_directories(data());
    // One that leads nowhere would be created at its other end.
    fs::create_symlink(elsewhere, file(suffix));
    EXPECT_THAT(refusal(), AllOf(HasSubstr(file(suffix).string()), HasSubstr("symbolic link"),
                                 HasSubstr("move the real file")));
    EXPECT_FALSE(fs::exists(elsewhere)) << suffix;
    EXPECT_THROW(Store(data(), Store::Mode::kReader), Error);
  }
  fs::remove_all(data());
  fs::create_directories(data());
  fs::create_symlink(elsewhere, data() / "notebank.lock");
  EXPECT_THAT(refusal(), HasSubstr("notebank.lock"));
  EXPECT_FALSE(fs::exists(elsewhere));
  // SQLite on its own, should the link appear after the look.
  fs::create_symlink(elsewhere, file());
  EXPECT_THROW(Database(file().string()), Error);
  EXPECT_FALSE(fs::exists(elsewhere));
}

TEST_F(DataDirectoryTest, TheDirectoryItselfMayBeReachedOverALink) {
  fs::create_directories(root_ / "real");
  fs::create_directory_symlink(root_ / "real", data());
  write_notes(1);
  EXPECT_TRUE(fs::is_regular_file(root_ / "real" / "notebank.db"));
}

TEST_F(DataDirectoryTest, NotesAreTheirOwnersAlone) {
  const mode_t before = ::umask(0);
  {
    const Store store(data() / "deeper/", Store::Mode::kOwner);
    EXPECT_THAT(store.warnings(), IsEmpty());
  }
  write_notes(1);
  ::umask(before);
  EXPECT_EQ(mode_of(file()), 0600U);
  EXPECT_EQ(mode_of(data() / "notebank.lock"), 0600U);
  EXPECT_EQ(mode_of(data() / "deeper"), 0700U);
  {
    Store store(data(), Store::Mode::kOwner);
    (void)store.remove_bank("bank");
    EXPECT_EQ(mode_of(file("-wal")), 0600U);
  }
  // Somebody may have meant it so: it is said and not changed.
  fs::permissions(file(), fs::perms{0644});
  const Store store(data(), Store::Mode::kOwner);
  EXPECT_EQ(mode_of(file()), 0644U);
  EXPECT_THAT(store.warnings(), Contains(AllOf(HasSubstr("0644"), HasSubstr("chmod 600"))));
}

TEST_F(DataDirectoryTest, MissingNotesAreSaidHoweverTheyWereLost) {
  const auto warnings = [this] { return Store(data(), Store::Mode::kOwner).warnings(); };
  write_notes(3);
  EXPECT_THAT(warnings(), IsEmpty());
  // An older copy put back.
  fs::copy_file(file(), root_ / "older");
  write_notes(2);
  fs::copy_file(root_ / "older", file(), fs::copy_options::overwrite_existing);
  EXPECT_THAT(warnings(), Contains(AllOf(HasSubstr("notes are missing"), HasSubstr("number 3"),
                                         HasSubstr("number 5"), HasSubstr(file().string()))));
  // Emptied.
  std::ofstream(file(), std::ios::trunc).close();
  EXPECT_THAT(warnings(), Contains(HasSubstr("notes are missing")));
  // A bank that was deleted is not missing.
  write_notes(9);
  {
    (void)Store(data(), Store::Mode::kOwner).remove_bank("bank");
  }
  EXPECT_THAT(warnings(), IsEmpty());
}

TEST_F(DataDirectoryTest, ADeletedLogIsSaid) {
  // Ends like a killed process: nothing is merged into the file.
  const pid_t child = ::fork();
  if (child == 0) {
    Store store(data(), Store::Mode::kOwner);
    NoteDraft note;
    note.text = "a fact";
    note.tokens.assign(1, 'a');
    (void)store.append("bank", kModel, kShape, {&note, 1});
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  ASSERT_TRUE(fs::exists(file("-wal")));
  fs::remove(file("-wal"));
  fs::remove(file("-shm"));
  // The tables themselves were in the log: what is left is a new store.
  const Store store(data(), Store::Mode::kOwner);
  EXPECT_THAT(store.warnings(), Contains(HasSubstr("notes are missing")));
}

TEST_F(DataDirectoryTest, WhereNothingCanBeWrittenNotesAreStillFound) {
  write_notes(2);
  fs::remove(data() / "notebank.lock");
  fs::permissions(file(), fs::perms{0444});
  fs::permissions(data(), fs::perms{0555});
  fs::permissions(root_, fs::perms{0755});
  const bool good = as_nobody([this] {
    NoteBank bank(kernels::Kernels::select(), data(), kModel, kShape);
    const auto found = bank.address("bank", {{}, {}, "a fact"}, Ranker::kText, 2);
    if (found.size() != 1 || bank.notes() != 2 || bank.read_only_because().empty()) {
      return false;
    }
    NoteDraft note;
    note.tokens.assign(1, 'a');
    try {
      (void)bank.append("bank", {&note, 1});
    } catch (const Error& error) {
      const std::string what = error.what();
      return error.code() == ErrorCode::kUnavailable &&
             what.find("can only be read") != std::string::npos &&
             what.find(file().string()) != std::string::npos &&
             Store(data(), Store::Mode::kReader).banks().size() == 1;
    }
    return false;
  });
  fs::permissions(data(), fs::perms{0755});
  EXPECT_TRUE(good);
}

TEST_F(DataDirectoryTest, AnUnmergedLogThatCannotBeReadIsNotPassedOver) {
  write_notes(1);
  // A log without its index, in a directory where none can be made.
  std::ofstream(file("-wal")) << std::string(64, 'x');
  fs::remove(file("-shm"));
  fs::permissions(file(), fs::perms{0444});
  fs::permissions(file("-wal"), fs::perms{0444});
  fs::permissions(data(), fs::perms{0555});
  fs::permissions(root_, fs::perms{0755});
  const bool good = as_nobody([this] {
    const std::string what = refusal();
    return what.find("-wal") != std::string::npos &&
           what.find("copy the directory") != std::string::npos;
  });
  fs::permissions(data(), fs::perms{0755});
  EXPECT_TRUE(good);
}

TEST_F(DataDirectoryTest, APathThatCannotBeADirectoryIsNamed) {
  std::ofstream(data()) << "a file";
  EXPECT_THAT(refusal(), HasSubstr(data().string()));
}

}  // namespace
}  // namespace spel::memory

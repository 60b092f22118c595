// The store: what it promises after restarts, full disks and the wrong model.
#include "memory/store.h"

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "config/base/error.h"
#include "kernels/kernels.h"
#include "memory/note_bank.h"
#include "memory/sqlite.h"
#include "tests/scratch_folder.h"

namespace spel::memory {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr ChannelShape kShape{3, 8};
constexpr const char* kModel = "aaaa";
constexpr std::array kRankers{Ranker::kSum, Ranker::kNative, Ranker::kVotes, Ranker::kText,
                              Ranker::kFused};

class StoreTest : public ::testing::Test {
 protected:
  spel::testing::ScratchFolder scratch_;
  fs::path directory_ = scratch_.path();
};

NoteDraft draft(const std::string& text, std::uint64_t start = 0) {
  NoteDraft note;
  note.text = text;
  note.tokens.assign(text.begin(), text.end());
  note.start = start;
  note.metadata = R"({"source":"test"})";
  note.score = 0.5F;
  note.coordinates.assign(kShape.channels * kChannelCoordinates, 7);
  note.sketch.assign(kSketchCoordinates * kAnchors, 9);
  return note;
}

ErrorCode code_of(const std::function<void()>& action, std::string* message = nullptr) {
  try {
    action();
  } catch (const Error& error) {
    if (message != nullptr) {
      *message = error.what();
    }
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::kInternal;
}

TEST_F(StoreTest, NotesSurviveARestart) {
  std::vector<NoteId> ids;
  {
    Store store(directory_, Store::Mode::kOwner);
    const std::vector<NoteDraft> notes{draft("one", 5), draft("two")};
    ids = store.append("bank", kModel, kShape, notes);
  }
  Store store(directory_, Store::Mode::kOwner);
  ASSERT_EQ(ids.size(), 2U);
  const auto note = store.find_note("bank", ids[0]);
  ASSERT_TRUE(note);
  EXPECT_EQ(note->text, "one");
  EXPECT_EQ(note->start, 5U);
  EXPECT_EQ(note->metadata, R"({"source":"test"})");
  EXPECT_EQ(note->tokens, (std::vector<TokenId>{'o', 'n', 'e'}));
  std::size_t seen = 0;
  store.visit_notes("bank", [&](const Note&, auto coordinates, auto sketch) {
    ++seen;
    EXPECT_EQ(coordinates.size(), kShape.channels * kChannelCoordinates);
    EXPECT_EQ(sketch.front(), 9);
  });
  EXPECT_EQ(seen, 2U);
  EXPECT_EQ(store.find_bank("bank")->notes, 2U);
}

TEST_F(StoreTest, IdsAreNotUsedTwice) {
  Store store({}, Store::Mode::kOwner);
  const NoteDraft note = draft("one");
  const NoteId first = store.append("bank", kModel, kShape, {&note, 1}).front();
  EXPECT_TRUE(store.remove_note("bank", first));
  EXPECT_FALSE(store.remove_note("bank", first));
  EXPECT_GT(store.append("bank", kModel, kShape, {&note, 1}).front(), first);
}

TEST_F(StoreTest, AnotherModelIsRefusedAndBothHashesAreNamed) {
  Store store({}, Store::Mode::kOwner);
  const NoteDraft note = draft("one");
  (void)store.append("bank", kModel, kShape, {&note, 1});
  std::string message;
  EXPECT_EQ(code_of([&] { (void)store.append("bank", "bbbb", kShape, {&note, 1}); }, &message),
            ErrorCode::kInvalidArgument);
  EXPECT_THAT(message, HasSubstr("aaaa"));
  EXPECT_THAT(message, HasSubstr("bbbb"));
  EXPECT_EQ(store.find_bank("bank")->notes, 1U);
}

TEST_F(StoreTest, NamesThatCouldBePathsAreRefused) {
  Store store({}, Store::Mode::kOwner);
  const NoteDraft note = draft("one");
  for (const std::string name : {"", "..", "a/b", "a b", "é", "a.b"}) {
    EXPECT_EQ(code_of([&] { (void)store.append(name, kModel, kShape, {&note, 1}); }),
              ErrorCode::kInvalidArgument)
        << name;
  }
}

TEST_F(StoreTest, ASecondOwnerIsRefusedAndAReaderIsNot) {
  Store owner(directory_, Store::Mode::kOwner);
  const NoteDraft note = draft("one");
  (void)owner.append("bank", kModel, kShape, {&note, 1});
  EXPECT_EQ(code_of([&] { Store second(directory_, Store::Mode::kOwner); }),
            ErrorCode::kUnavailable);
  Store reader(directory_, Store::Mode::kReader);
  EXPECT_EQ(reader.banks().size(), 1U);
}

TEST_F(StoreTest, AReaderCreatesNothing) {
  const fs::path nothing = directory_ / "nothing";
  std::string message;
  EXPECT_EQ(code_of([&] { Store reader(nothing, Store::Mode::kReader); }, &message),
            ErrorCode::kNotFound);
  EXPECT_THAT(message, HasSubstr(nothing.string()));
  EXPECT_FALSE(fs::exists(nothing));
}

TEST_F(StoreTest, ADeletedBankIsGoneForGood) {
  {
    Store store(directory_, Store::Mode::kOwner);
    const NoteDraft note = draft("one");
    (void)store.append("bank", kModel, kShape, {&note, 1});
    EXPECT_TRUE(store.remove_bank("bank"));
    EXPECT_FALSE(store.remove_bank("bank"));
  }
  Store store(directory_, Store::Mode::kOwner);
  EXPECT_TRUE(store.banks().empty());
}

// The limit on file size makes writes fail as a full disk does; it is the process's, so a child
// has it.
TEST_F(StoreTest, AFullDiskIsAnErrorAndTheNextWriteSucceeds) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    Store store(directory_, Store::Mode::kOwner);
    const std::vector<NoteDraft> few{draft("kept")};
    (void)store.append("bank", kModel, kShape, few);
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = 256 * 1024;
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const std::vector<NoteDraft> many(2000, draft("lost"));
    int failures = 0;
    try {
      (void)store.append("bank", kModel, kShape, many);
    } catch (const Error& error) {
      failures = error.code() == ErrorCode::kIo ? 1 : 0;
    }
    if (failures != 1 || store.find_bank("bank")->notes != 1) {
      ::_exit(1);
    }
    limit.rlim_cur = before;
    ::setrlimit(RLIMIT_FSIZE, &limit);
    (void)store.append("bank", kModel, kShape, few);
    ::_exit(store.find_bank("bank")->notes == 2 ? 0 : 2);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(StoreTest, AFileOfAnotherKindIsRefused) {
  fs::create_directories(directory_);
  std::FILE* file = std::fopen((directory_ / "notebank.db").c_str(), "w");
  std::fputs(std::string(8192, 'x').c_str(), file);
  std::fclose(file);
  std::string message;
  EXPECT_EQ(code_of([&] { Store store(directory_, Store::Mode::kOwner); }, &message),
            ErrorCode::kCorrupt);
  EXPECT_THAT(message, AllOf(HasSubstr((directory_ / "notebank.db").string()),
                             HasSubstr("not a database"), HasSubstr("move it away")));
}

TEST_F(StoreTest, AStoreOfAnotherFormatIsRefusedAndLeftAsItIs) {
  const std::string file = directory_ / "notebank.db";
  {
    const Store store(directory_, Store::Mode::kOwner);
  }
  Database(file).exec("PRAGMA user_version=1");
  std::string message;
  EXPECT_EQ(code_of([&] { const Store store(directory_, Store::Mode::kOwner); }, &message),
            ErrorCode::kCorrupt);
  EXPECT_THAT(message, AllOf(HasSubstr("format 1"), HasSubstr("write them again")));
  EXPECT_EQ(Database(file).integer("PRAGMA user_version"), 1);
}

// --- The bank over the store
// -----------------------------------------------------------------------

TEST_F(StoreTest, AnUnknownOrEmptyBankIsAnsweredAndNothingChanges) {  // [ggml-org/llama.cpp#14434]
  NoteBank bank(kernels::Kernels::select(), {}, kModel, kShape);
  const std::vector<float> query(kShape.width(), 1.0F);
  EXPECT_EQ(code_of([&] { (void)bank.address("none", {query, query}, Ranker::kSum, 2); }),
            ErrorCode::kNotFound);
  const NoteDraft note = draft("one");
  const NoteId id = bank.append("bank", {&note, 1}).front();
  bank.remove_note("bank", id);
  for (const Ranker ranker : kRankers) {
    EXPECT_TRUE(bank.address("bank", {query, query, "one"}, ranker, 2).empty());
  }
  EXPECT_EQ(code_of([&] { (void)bank.note("bank", id); }), ErrorCode::kNotFound);
}

TEST_F(StoreTest, ABankOfAnotherModelIsRefusedWhenAddressed) {
  {
    NoteBank bank(kernels::Kernels::select(), directory_, kModel, kShape);
    const NoteDraft note = draft("one");
    (void)bank.append("bank", {&note, 1});
  }
  NoteBank bank(kernels::Kernels::select(), directory_, "bbbb", kShape);
  const std::vector<float> query(kShape.width(), 1.0F);
  std::string message;
  EXPECT_EQ(code_of([&] { (void)bank.address("bank", {query, query}, Ranker::kSum, 2); }, &message),
            ErrorCode::kInvalidArgument);
  EXPECT_THAT(message, HasSubstr("aaaa"));
  EXPECT_THAT(message, HasSubstr("bbbb"));
}

TEST_F(StoreTest, AddressingLeavesCopiesOut) {
  NoteBank bank(kernels::Kernels::select(), directory_, kModel, kShape);
  // More of them than any search looks at closely.
  std::vector<NoteDraft> notes(600, draft("one is here"));
  notes.push_back(draft("two is here"));
  notes.push_back(draft("three is here"));
  (void)bank.append("bank", notes);
  const std::vector<float> query(kShape.width(), 1.0F);
  for (const Ranker ranker : kRankers) {
    const CapturedQuery asked{query, query, " is "};
    const std::vector<Note> found = bank.address("bank", asked, ranker, 2);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].id, 1);
    EXPECT_EQ(found[1].text, "two is here");
    EXPECT_EQ(bank.address("bank", asked, ranker, 8).size(), 3U);
    EXPECT_TRUE(bank.address("bank", asked, ranker, 0).empty());
  }
}

TEST_F(StoreTest, AHundredThousandNotesOpenQuickly) {
  constexpr std::size_t kNotes = 100'000;
  {
    Store store(directory_, Store::Mode::kOwner);
    (void)store.append("bank", kModel, kShape, std::vector<NoteDraft>(kNotes, draft("note")));
  }
  const auto begin = std::chrono::steady_clock::now();
  const NoteBank bank(kernels::Kernels::select(), directory_, kModel, kShape);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(bank.notes(), kNotes);
  RecordProperty("open_ms", static_cast<int>(took.count() * 1000));
  // One second on an idle machine; the bound here allows for a busy one.
  EXPECT_LT(took.count(), 10.0);
}

}  // namespace
}  // namespace spel::memory

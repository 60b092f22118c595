// The store on a disk that fails: any operation of any kind, and the power at any moment.
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <sqlite3.h>
#include <string>
#include <vector>

#include "config/base/error.h"
#include "fault_vfs.h"
#include "memory/store.h"
#include "tests/scratch_folder.h"

namespace spel::memory {
namespace {

namespace fs = std::filesystem;
using testing::DiskEvent;
using testing::DiskOp;
using testing::FaultVfs;
using testing::Unsynced;

constexpr ChannelShape kShape{2, 4};
constexpr const char* kModel = "aaaa";
constexpr const char* kBank = "bank";

std::string text_of(std::size_t step, std::size_t which) {
  return "step " + std::to_string(step) + ", note " + std::to_string(which);
}

std::vector<NoteDraft> drafts_of(std::size_t step, std::size_t count, std::size_t tokens) {
  std::vector<NoteDraft> drafts;
  for (std::size_t i = 0; i < count; ++i) {
    NoteDraft note;
    note.text = text_of(step, i);
    note.tokens.assign(tokens, static_cast<TokenId>(step));
    note.start = step;
    note.coordinates.assign(kShape.channels * kChannelCoordinates, 7);
    note.sketch.assign(kSketchCoordinates * kAnchors, static_cast<std::uint16_t>(step));
    drafts.push_back(std::move(note));
  }
  return drafts;
}

/// One write or deletion that a client asked for; its number is its place in the list.
struct Step {
  std::size_t begun = 0;                    ///< Events of the disk before it.
  std::optional<std::size_t> acknowledged;  ///< Events before its success was told.
  std::size_t size = 0;                     ///< Notes written.
  std::vector<NoteId> added;                ///< Known once acknowledged.
  std::optional<NoteId> removed;

  [[nodiscard]] bool promised(std::size_t cut) const {
    return acknowledged && *acknowledged <= cut;
  }
};

/// Whether `store` holds what was promised by `cut`, and of an unfinished step all or nothing.
void expect_promises_kept(Store& store, const std::vector<Step>& steps, std::size_t cut,
                          const std::string& when) {
  std::map<NoteId, Note> notes;
  std::map<std::uint64_t, std::size_t> of_step;
  store.visit_notes(kBank, [&](const Note& note, auto coordinates, auto sketch) {
    EXPECT_EQ(coordinates.size(), kShape.channels * kChannelCoordinates) << when;
    EXPECT_EQ(sketch.size(), kSketchCoordinates * kAnchors) << when;
    EXPECT_EQ(sketch.front(), note.start) << when;
    EXPECT_LT(note.start, steps.size()) << when << ": nobody wrote this note";
    notes[note.id] = note;
    ++of_step[note.start];
  });
  std::set<NoteId> maybe_removed;
  for (const Step& step : steps) {
    if (step.removed && step.begun <= cut) {
      maybe_removed.insert(*step.removed);
      EXPECT_FALSE(step.promised(cut) && notes.contains(*step.removed))
          << when << ": a deleted note is back";
    }
  }
  for (std::size_t number = 0; number < steps.size(); ++number) {
    const Step& step = steps[number];
    if (!step.promised(cut)) {
      const std::size_t found = of_step[number];
      EXPECT_TRUE(found == 0 || found == step.size)
          << when << ": step " << number << " is half there";
      continue;
    }
    for (std::size_t i = 0; i < step.added.size(); ++i) {
      const NoteId id = step.added[i];
      if (notes.contains(id)) {
        EXPECT_EQ(notes[id].text, text_of(number, i)) << when;
        EXPECT_EQ(notes[id].start, number) << when;
      } else {
        EXPECT_TRUE(maybe_removed.contains(id)) << when << ": acknowledged note " << id << " lost";
      }
    }
  }
}

class FaultTest : public ::testing::Test {
 protected:
  Step& begin(const FaultVfs& disk) {
    steps_.emplace_back().begun = disk.events();
    return steps_.back();
  }

  void add(Store& store, FaultVfs& disk, std::size_t count, std::size_t tokens = 8) {
    const auto drafts = drafts_of(steps_.size(), count, tokens);
    begin(disk).size = count;
    steps_.back().added = store.append(kBank, kModel, kShape, drafts);
    steps_.back().acknowledged = disk.events();
  }

  void remove(Store& store, FaultVfs& disk, NoteId id) {
    begin(disk).removed = id;
    (void)store.remove_note(kBank, id);
    steps_.back().acknowledged = disk.events();
  }

  /// A day in the life of a store: twice opened, written to, deleted from and closed.
  void live(FaultVfs& disk, const fs::path& directory) {
    for (int session = 0; session < 2; ++session) {
      Store store(directory, Store::Mode::kOwner);
      add(store, disk, 2);
      add(store, disk, 3);
      remove(store, disk, steps_[steps_.size() - 2].added.front());
      add(store, disk, 1);
    }
  }

  spel::testing::ScratchFolder scratch_;
  fs::path directory_ = scratch_.path();
  std::vector<Step> steps_;
};

struct Fault {
  DiskOp op;
  int code;
};

TEST_F(FaultTest, WhicheverOperationFailsNoAcknowledgedNoteIsLost) {
  constexpr Fault kFaults[] = {{DiskOp::kOpen, SQLITE_CANTOPEN},
                               {DiskOp::kRead, SQLITE_IOERR_READ},
                               {DiskOp::kWrite, SQLITE_FULL},
                               {DiskOp::kWrite, SQLITE_IOERR_WRITE},
                               {DiskOp::kTruncate, SQLITE_IOERR_TRUNCATE},
                               {DiskOp::kSync, SQLITE_IOERR_FSYNC},
                               {DiskOp::kDelete, SQLITE_IOERR_DELETE}};
  for (const Fault& fault : kFaults) {
    for (const std::size_t count : {std::size_t{1}, FaultVfs::kForEver}) {
      std::size_t k = 1;
      for (;; ++k) {
        FaultVfs disk;
        const fs::path directory = directory_ / "store";
        fs::remove_all(directory);
        steps_.clear();
        disk.fail(fault.op, k, count, fault.code);
        bool threw = false;
        try {
          live(disk, directory);
        } catch (const Error& error) {
          threw = true;
          EXPECT_NE(error.code(), ErrorCode::kInternal) << error.what();
        }
        const std::size_t failures = disk.failures();
        disk.heal();
        const std::string when = std::string(testing::disk_op_name(fault.op)) + " " +
                                 std::to_string(k) + (count == 1 ? " once" : " and all after it");
        Store store(directory, Store::Mode::kOwner);
        expect_promises_kept(store, steps_, disk.events(), when);
        // And it goes on.
        add(store, disk, 2);
        expect_promises_kept(store, steps_, disk.events(), when);
        if (::testing::Test::HasFailure()) {
          return;
        }
        if (failures == 0) {
          EXPECT_FALSE(threw) << when;
          break;
        }
      }
      // Each kind does happen in such a life.
      EXPECT_GT(k, 1U) << testing::disk_op_name(fault.op);
    }
  }
}

TEST_F(FaultTest, AFailedFlushEndsWritingAndNotReading) {
  FaultVfs disk;
  const fs::path directory = directory_ / "store";
  const auto code_of = [&](Store& store) {
    try {
      (void)store.append(kBank, kModel, kShape, drafts_of(9, 1, 8));
    } catch (const Error& error) {
      return std::optional(error.code());
    }
    return std::optional<ErrorCode>();
  };
  {
    Store store(directory, Store::Mode::kOwner);
    add(store, disk, 1);
    disk.fail(DiskOp::kSync, 1, 1, SQLITE_IOERR_FSYNC);
    EXPECT_EQ(code_of(store), ErrorCode::kUnavailable);
    EXPECT_NE(store.read_only_because(), "");
    disk.heal();
    // The disk says OK again; what the kernel has dropped in between nobody knows.
    EXPECT_EQ(code_of(store), ErrorCode::kUnavailable);
    EXPECT_TRUE(store.find_note(kBank, steps_[0].added[0]));
  }
  Store store(directory, Store::Mode::kOwner);
  EXPECT_EQ(code_of(store), std::nullopt);
  EXPECT_TRUE(store.find_note(kBank, steps_[0].added[0]));
}

TEST_F(FaultTest, AFullDiskRefusesAndTheNextWriteSucceeds) {
  FaultVfs disk;
  Store store(directory_ / "store", Store::Mode::kOwner);
  add(store, disk, 1);
  for (const int code : {SQLITE_FULL, SQLITE_IOERR_WRITE}) {
    disk.fail(DiskOp::kWrite, 1, FaultVfs::kForEver, code);
    try {
      add(store, disk, 1);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kIo);
    }
    disk.heal();
    EXPECT_EQ(store.read_only_because(), "");
    add(store, disk, 1);
  }
  expect_promises_kept(store, steps_, disk.events(), "after a full disk");
}

/// Fails the power after `cut` events in every way and looks what is left.
void expect_survival(const std::vector<DiskEvent>& trace, const std::vector<Step>& steps,
                     std::size_t cut, const fs::path& directory) {
  std::mt19937 random(static_cast<std::uint32_t>(cut));
  for (const Unsynced unsynced : {Unsynced::kDropped, Unsynced::kLastTorn, Unsynced::kRandom}) {
    const std::string when = "power failure after event " + std::to_string(cut) + " of " +
                             std::to_string(trace.size()) + ", way " +
                             std::to_string(static_cast<int>(unsynced));
    testing::restore_after_power_failure(trace, cut, unsynced, random, directory);
    const FaultVfs disk;
    try {
      Store store(directory, Store::Mode::kOwner);
      expect_promises_kept(store, steps, cut, when);
      EXPECT_EQ(store.append(kBank, kModel, kShape, drafts_of(99, 1, 8)).size(), 1U) << when;
    } catch (const Error& error) {
      ADD_FAILURE() << when << ": " << error.what();
    }
  }
}

TEST_F(FaultTest, APowerFailureAtAnyMomentLosesNothingAcknowledged) {
  std::vector<DiskEvent> trace;
  {
    FaultVfs disk;
    live(disk, directory_ / "store");
    trace = disk.trace();
  }
  ASSERT_GT(trace.size(), 100U);
  for (std::size_t cut = 0; cut <= trace.size() && !HasFailure(); ++cut) {
    expect_survival(trace, steps_, cut, directory_ / "restored");
  }
}

// Long enough for the log to be checkpointed and begun anew while the store is open.
TEST_F(FaultTest, APowerFailureAroundACheckpointLosesNothingAcknowledged) {
  constexpr std::size_t kWrites = 60;
  constexpr std::size_t kTokens = 20'000;  // Twenty pages a note.
  constexpr std::size_t kCuts = 60;
  std::vector<DiskEvent> trace;
  {
    FaultVfs disk;
    Store store(directory_ / "store", Store::Mode::kOwner);
    for (std::size_t i = 0; i < kWrites; ++i) {
      add(store, disk, 1, kTokens);
    }
    trace = disk.trace();
  }
  std::vector<std::size_t> cuts;
  for (std::size_t i = 1; i < trace.size(); ++i) {
    // Where the database itself is written: the beginning, the end, and what follows.
    if ((trace[i].file == "notebank.db") != (trace[i - 1].file == "notebank.db")) {
      cuts.insert(cuts.end(), {i - 1, i, i + 1});
    }
  }
  ASSERT_GT(cuts.size(), 6U) << "no checkpoint happened";
  std::mt19937 random(1);
  for (std::size_t i = 0; i < kCuts; ++i) {
    cuts.push_back(random() % (trace.size() + 1));
  }
  for (const std::size_t cut : cuts) {
    if (!HasFailure()) {
      expect_survival(trace, steps_, cut, directory_ / "restored");
    }
  }
}

}  // namespace
}  // namespace spel::memory

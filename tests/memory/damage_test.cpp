// What is left out when rows of the store are damaged, and what older stores become.
#include <algorithm>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "config/base/error.h"
#include "kernels/kernels.h"
#include "memory/bf16.h"
#include "memory/checksum.h"
#include "memory/note_bank.h"
#include "memory/plausible.h"
#include "memory/sqlite.h"
#include "memory/store.h"
#include "tests/scratch_folder.h"

namespace spel::memory {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr ChannelShape kShape{3, 8};
constexpr const char* kModel = "aaaa";

NoteDraft draft(const std::string& text) {
  NoteDraft note;
  note.text = text;
  note.tokens.assign(text.begin(), text.end());
  note.coordinates.assign(kShape.channels * kChannelCoordinates, to_bf16(0.25F));
  note.sketch.assign(kSketchCoordinates * kAnchors, to_bf16(0.125F));
  return note;
}

/// A store of four notes in "bank", the last one a passage.
class DamageTest : public ::testing::Test {
 protected:
  DamageTest() {
    Store store(directory_, Store::Mode::kOwner);
    std::vector<NoteDraft> notes{draft("one fact"), draft("two facts"), draft("three facts"),
                                 draft("four facts")};
    notes.back().sketch.clear();
    notes.back().coordinates.clear();
    (void)store.append("bank", kModel, kShape, notes);
  }
  void damage(const char* sql) const { Database((directory_ / "notebank.db").string()).exec(sql); }

  [[nodiscard]] std::vector<NoteId> found_by_text() const {
    NoteBank bank(kernels::Kernels::select(), directory_, kModel, kShape, 128);
    std::vector<NoteId> ids;
    for (const Note& note : bank.address("bank", {{}, {}, " fact"}, Ranker::kText, 8)) {
      ids.push_back(note.id);
    }
    std::sort(ids.begin(), ids.end());
    return ids;
  }

  spel::testing::ScratchFolder scratch_;
  fs::path directory_ = scratch_.path();
};

TEST(Checksum, IsCrc32cAndGoesOnWhereItLeftOff) {
  const std::string text = "123456789";
  const auto bytes = std::as_bytes(std::span(text));
  EXPECT_EQ(crc32c(bytes), 0xe3069283U);
  for (std::size_t at = 0; at <= bytes.size(); ++at) {
    EXPECT_EQ(crc32c(bytes.subspan(at), crc32c(bytes.first(at))), 0xe3069283U);
  }
  std::string long_text(1000, 'x');
  const std::uint32_t sum = crc32c(std::as_bytes(std::span(long_text)));
  long_text[777] ^= 1;
  EXPECT_NE(crc32c(std::as_bytes(std::span(long_text))), sum);
}

TEST_F(DamageTest, ADamagedRowOfAnyTableIsLeftOutAndSaid) {
  EXPECT_THAT(found_by_text(), ElementsAre(1, 2, 3, 4));
  damage("UPDATE note SET text='one fiction' WHERE id=1");
  damage("UPDATE sketch SET vector=zeroblob(LENGTH(vector)) WHERE note=2");
  EXPECT_THAT(found_by_text(), ElementsAre(3, 4));
  NoteBank bank(kernels::Kernels::select(), directory_, kModel, kShape, 128);
  EXPECT_EQ(bank.damaged(), 2U);
  EXPECT_EQ(bank.notes(), 2U);
  EXPECT_EQ(bank.bank("bank").damaged, 2U);
  ASSERT_EQ(bank.warnings().size(), 1U);
  EXPECT_THAT(bank.warnings().front(), HasSubstr("2 notes of bank bank are damaged"));
  try {
    (void)bank.note("bank", 1);
    ADD_FAILURE() << "a damaged note was given";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_THAT(error.what(), HasSubstr("note 1 of bank bank"));
  }
  bank.remove_note("bank", 1);
  EXPECT_EQ(bank.damaged(), 1U);
}

TEST_F(DamageTest, RowsThatChangedPlacesAreDamaged) {
  damage(
      "UPDATE sketch SET note=99 WHERE note=1; UPDATE sketch SET note=1 WHERE note=2;"
      "UPDATE sketch SET note=2 WHERE note=99");
  EXPECT_THAT(found_by_text(), ElementsAre(3, 4));
}

TEST_F(DamageTest, AMissingSketchIsDamageAndAPassageWithoutOneIsNot) {
  damage("DELETE FROM sketch WHERE note=3");
  EXPECT_THAT(found_by_text(), ElementsAre(1, 2, 4));
}

TEST_F(DamageTest, DamagedCoordinatesAreLeftOutOfTheSearchThatReadsThem) {
  damage("UPDATE coordinates SET vector=zeroblob(LENGTH(vector)) WHERE note=1");
  NoteBank bank(kernels::Kernels::select(), directory_, kModel, kShape, 128);
  const std::vector<float> query(kShape.width(), 1.0F);
  std::vector<NoteId> ids;
  for (const Note& note : bank.address("bank", {query, query, {}}, Ranker::kNative, 8)) {
    ids.push_back(note.id);
  }
  EXPECT_THAT(ids, ElementsAre(2, 3));
  EXPECT_EQ(bank.damaged(), 1U);
}

TEST_F(DamageTest, AnExportLeavesDamagedNotesOutAndNamesThem) {
  damage("UPDATE coordinates SET vector=zeroblob(8) WHERE note=3");
  Store store(directory_, Store::Mode::kReader);
  std::vector<NoteId> seen;
  const auto damaged =
      store.visit_notes("bank", [&](const Note& note, auto, auto) { seen.push_back(note.id); });
  EXPECT_THAT(damaged, ElementsAre(3));
  EXPECT_THAT(seen, ElementsAre(1, 2, 4));
}

// What an import of an older program let in: its checksum fits, its values cannot be.
TEST_F(DamageTest, ValuesThatCannotBeAreLeftOutThoughTheirChecksumFits) {
  {
    Store store(directory_, Store::Mode::kOwner);
    std::vector<NoteDraft> notes{draft("five facts"), draft("six facts"), draft("seven facts")};
    notes[0].sketch[7] = to_bf16(std::numeric_limits<float>::quiet_NaN());
    notes[1].sketch[7] = to_bf16(79.0F);
    notes[2].tokens[0] = 128;
    (void)store.append("bank", kModel, kShape, notes);
  }
  EXPECT_THAT(found_by_text(), ElementsAre(1, 2, 3, 4));
}

TEST_F(DamageTest, ABankTakesNoNoteThatCannotBe) {
  NoteBank bank(kernels::Kernels::select(), directory_, kModel, kShape, 128);
  NoteDraft note = draft("five facts");
  note.sketch[0] = to_bf16(std::numeric_limits<float>::infinity());
  EXPECT_THROW(bank.append("bank", {&note, 1}), Error);
  EXPECT_EQ(bank.bank("bank").notes, 4U);
}

TEST(Plausible, NamesTheField) {
  const NoteDraft good = draft("a fact");
  EXPECT_EQ(note_fault(good, kShape, 128), "");
  const auto expect_fault = [&](const char* field, const auto& change) {
    NoteDraft note = good;
    change(note);
    EXPECT_THAT(note_fault(note, kShape, 128), ::testing::StartsWith(field));
  };
  expect_fault("sketch", [](NoteDraft& n) { n.sketch.pop_back(); });
  expect_fault("sketch", [](NoteDraft& n) { n.sketch.clear(); });
  expect_fault("coordinates", [](NoteDraft& n) { n.coordinates.clear(); });
  expect_fault("coordinates", [](NoteDraft& n) { n.coordinates[1] = to_bf16(9.0F); });
  expect_fault("tokens", [](NoteDraft& n) { n.tokens.clear(); });
  expect_fault("tokens", [](NoteDraft& n) { n.tokens[0] = -1; });
  expect_fault("score", [](NoteDraft& n) { n.score = std::numeric_limits<float>::quiet_NaN(); });
}

// Format 2: the tables without checksums, vocabulary and passages.
TEST_F(DamageTest, AStoreOfTheFormatBeforeIsBroughtToThisOne) {
  damage("DELETE FROM note WHERE id=4");
  for (const char* table : {"note", "sketch", "coordinates"}) {
    damage((std::string("ALTER TABLE ") + table + " DROP COLUMN checksum").c_str());
  }
  damage("ALTER TABLE note DROP COLUMN sketched");
  damage("ALTER TABLE bank DROP COLUMN vocab");
  damage("PRAGMA user_version=2");
  EXPECT_THROW(Store(directory_, Store::Mode::kReader), Error);
  EXPECT_THAT(found_by_text(), ElementsAre(1, 2, 3));
  EXPECT_EQ(Database((directory_ / "notebank.db").string()).integer("PRAGMA user_version"),
            kBankFormat);
  {
    NoteBank bank(kernels::Kernels::select(), directory_, kModel, kShape, 128);
    EXPECT_THAT(bank.warnings(), IsEmpty());
    const NoteDraft note = draft("five facts");
    EXPECT_EQ(bank.append("bank", {&note, 1}), std::vector<NoteId>{5});
  }
  damage("UPDATE note SET text='' WHERE id=2");
  EXPECT_THAT(found_by_text(), ElementsAre(1, 3, 5));
}

}  // namespace
}  // namespace spel::memory

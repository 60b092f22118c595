// The subcommands around the memory: spel notebank, spel demo, and the memory's suite of selftest.
#include "server/tools/tools.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "memory/store.h"
#include "tests/engine/tools/run_tool.h"
#include "tests/scratch_folder.h"

namespace spel::server::tools {
namespace {

namespace fs = std::filesystem;
using engine::tools::kToolBadUsage;
using engine::tools::kToolFailed;
using engine::tools::kToolOk;
using engine::tools::testing::kShippedModel;
using engine::tools::testing::run_tool;
using engine::tools::testing::ToolRun;
using memory::Store;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr memory::ChannelShape kShape{2, 4};

memory::NoteDraft draft(const std::string& text, std::uint16_t value) {
  memory::NoteDraft note;
  note.text = text;
  note.tokens.assign(text.begin(), text.end());
  note.start = value;
  note.metadata = R"({"from":"a \"book\""})";
  note.score = 0.25F;
  note.coordinates.assign(kShape.channels * memory::kChannelCoordinates, value);
  note.sketch.assign(memory::kSketchCoordinates * memory::kAnchors, value);
  return note;
}

/// A store with two notes in "facts".
class NoteBankTool : public ::testing::Test {
 protected:
  NoteBankTool() {
    Store store(data(), Store::Mode::kOwner);
    const std::vector<memory::NoteDraft> notes{draft("one\n\"1\"", 1), draft("two", 2)};
    (void)store.append("facts", "aaaa", kShape, notes);
  }
  [[nodiscard]] std::string data() const { return directory_ / "data"; }
  [[nodiscard]] ToolRun run(std::vector<std::string> args) const {
    args.insert(args.end(), {"--data-dir", data()});
    return run_tool(&notebank_main, args);
  }
  [[nodiscard]] std::string file_of(const std::string& text) const {
    std::ofstream(directory_ / "file") << text;
    return directory_ / "file";
  }

  spel::testing::ScratchFolder scratch_;
  fs::path directory_ = scratch_.path();
};

TEST_F(NoteBankTool, ListsAndShows) {
  const ToolRun list = run({"list"});
  EXPECT_EQ(list.status, kToolOk) << list.err;
  EXPECT_THAT(list.out, AllOf(HasSubstr("facts\t2 notes"), HasSubstr("model aaaa")));
  const ToolRun show = run({"show", "facts"});
  EXPECT_EQ(show.status, kToolOk) << show.err;
  EXPECT_EQ(show.out,
            "1\t1\t0.25\t\"one\\n\\\"1\\\"\"\t{\"from\":\"a \\\"book\\\"\"}\n"
            "2\t2\t0.25\t\"two\"\t{\"from\":\"a \\\"book\\\"\"}\n");
}

TEST_F(NoteBankTool, ExportsWhatImportReads) {
  const ToolRun exported = run({"export", "facts"});
  ASSERT_EQ(exported.status, kToolOk) << exported.err;
  const ToolRun imported = run({"import", "copy", file_of(exported.out)});
  EXPECT_EQ(imported.status, kToolOk) << imported.err;
  EXPECT_EQ(imported.out, "2 notes imported into copy\n");
  const auto notes = [](const std::string& lines) { return lines.substr(lines.find('\n')); };
  EXPECT_EQ(notes(run({"export", "copy"}).out), notes(exported.out));
  // Every number of it is there: the copy is found by the same coordinates.
  Store store(data(), Store::Mode::kReader);
  std::uint16_t value = 0;
  store.visit_notes("copy", [&](const memory::Note& note, auto coordinates, auto sketch) {
    ++value;
    EXPECT_EQ(note.text, value == 1 ? "one\n\"1\"" : "two");
    EXPECT_EQ(note.tokens.size(), note.text.size());
    EXPECT_EQ(coordinates.back(), value);
    EXPECT_EQ(sketch.back(), value);
  });
  EXPECT_EQ(value, 2);
}

TEST_F(NoteBankTool, AnImportIsWholeOrNothingAndTheSameFileAddsNothingTwice) {
  const std::string exported = run({"export", "facts"}).out;
  // The last line is cut short, as by a full disk: nothing of the others stays.
  const std::string cut = file_of(exported.substr(0, exported.size() - 20));
  const ToolRun failed = run({"import", "copy", cut});
  EXPECT_EQ(failed.status, kToolFailed);
  EXPECT_THAT(failed.err, AllOf(HasSubstr("line 3"), HasSubstr("nothing was imported")));
  EXPECT_THAT(run({"list"}).out, Not(HasSubstr("copy")));
  const std::string whole = file_of(exported);
  EXPECT_EQ(run({"import", "copy", whole}).out, "2 notes imported into copy\n");
  EXPECT_EQ(run({"import", "copy", whole}).out,
            "0 notes imported into copy; 2 were there already and are left out\n");
  EXPECT_THAT(run({"list"}).out, HasSubstr("copy\t2 notes"));
  // What is missing is added, and copies inside a file are kept.
  ASSERT_EQ(run({"delete", "copy", "3"}).status, kToolOk);
  const std::string lines = exported.substr(exported.find('\n') + 1);
  EXPECT_EQ(run({"import", "copy", file_of(exported + lines)}).out,
            "3 notes imported into copy; 1 were there already and are left out\n");
}

TEST_F(NoteBankTool, RefusesNotesThatCannotBeNamingLineAndField) {
  {
    Store store(data(), Store::Mode::kOwner);
    const memory::NoteDraft note = draft("abc", 3);
    (void)store.append("small", "aaaa", kShape, {&note, 1}, 128);
  }
  const std::string exported = run({"export", "small"}).out;
  EXPECT_THAT(exported, HasSubstr("\"vocab\":128"));
  const auto expect_refused = [&](const std::string& from, const std::string& to,
                                  const std::string& field) {
    std::string changed = exported;
    ASSERT_NE(changed.find(from), std::string::npos) << from;
    changed.replace(changed.find(from), from.size(), to);
    const ToolRun refused = run({"import", "copy", file_of(changed)});
    EXPECT_EQ(refused.status, kToolFailed) << to;
    EXPECT_THAT(refused.err, AllOf(HasSubstr("line 2: " + field), HasSubstr("nothing"))) << to;
  };
  // BF16 bits: not a number, infinity, 2.
  for (const char* value : {"32704", "32640", "16384", "65536", "-1", "1.5", "null", "\"1\""}) {
    expect_refused("\"sketch\":[3,", std::string("\"sketch\":[") + value + ",", "sketch");
  }
  for (const char* value : {"32704", "65408", "16800"}) {
    expect_refused("\"coordinates\":[3,", std::string("\"coordinates\":[") + value + ",",
                   "coordinates");
  }
  expect_refused("\"sketch\":[3,", "\"sketch\":[", "sketch");
  expect_refused("\"tokens\":[97,", "\"tokens\":[128,", "tokens");
  expect_refused("\"tokens\":[97,", "\"tokens\":[-1,", "tokens");
  expect_refused("\"score\":0.25", "\"score\":1e300", "score");
  expect_refused("\"start\":3", "\"start\":-3", "start");
  EXPECT_EQ(run({"import", "copy", file_of(exported)}).status, kToolOk);
}

TEST_F(NoteBankTool, DeletesANoteAndABank) {
  EXPECT_EQ(run({"delete", "facts", "1"}).out, "note 1 of bank facts deleted\n");
  EXPECT_THAT(run({"show", "facts"}).out, Not(HasSubstr("one")));
  const ToolRun again = run({"delete", "facts", "1"});
  EXPECT_EQ(again.status, kToolFailed);
  EXPECT_THAT(again.err, HasSubstr("has no note 1"));
  EXPECT_EQ(run({"delete", "facts"}).out, "bank facts deleted\n");
  EXPECT_EQ(run({"list"}).out, "");
  EXPECT_EQ(run({"delete", "facts"}).status, kToolFailed);
}

TEST_F(NoteBankTool, ReadsBesideAServerAndWritesOnlyWithoutOne) {
  const std::string exported = file_of(run({"export", "facts"}).out);
  const Store server(data(), Store::Mode::kOwner);
  EXPECT_EQ(run({"list"}).status, kToolOk);
  EXPECT_EQ(run({"export", "facts"}).status, kToolOk);
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"delete", "facts"}, {"import", "copy", exported}}) {
    const ToolRun refused = run(command);
    EXPECT_EQ(refused.status, kToolFailed);
    EXPECT_THAT(refused.err, HasSubstr("in use"));
  }
}

TEST_F(NoteBankTool, SaysWhatIsWrong) {
  const std::string exported = run({"export", "facts"}).out;
  const std::string head = exported.substr(0, exported.find('\n') + 1);
  const auto expect_failure = [&](const std::vector<std::string>& args, int status,
                                  const std::string& words) {
    const ToolRun failed = run(args);
    EXPECT_EQ(failed.status, status) << args.front();
    EXPECT_THAT(failed.err, HasSubstr(words)) << args.front();
  };
  expect_failure({"show", "none"}, kToolFailed, "there is no bank none");
  expect_failure({"export", "none"}, kToolFailed, "there is no bank none");
  expect_failure({"import", "copy", "/nonexistent"}, kToolFailed, "/nonexistent");
  expect_failure({"import", "a.b", file_of(exported)}, kToolBadUsage, "name");
  expect_failure({"import", "copy", file_of("{}\n")}, kToolFailed, "line 1");
  expect_failure({"import", "copy", file_of(head + "x\n")}, kToolFailed, "line 2");
  expect_failure(
      {"import", "copy",
       file_of(head + R"({"start":1,"score":1,"metadata":"{}",)" +
               R"("text":"a","tokens":[1],"coordinates":[1],)" + R"("sketch":[1]})" + "\n")},
      kToolFailed, "coordinates");
  // Coordinates of another making would find nothing.
  std::string older = exported;
  const std::string format = "\"format\":" + std::to_string(memory::kBankFormat);
  ASSERT_NE(older.find(format), std::string::npos);
  older.replace(older.find(format), format.size(), "\"format\":1");
  expect_failure({"import", "copy", file_of(older)}, kToolFailed, "format 1");
  // A bank does not mix the notes of two models.
  std::string other = exported;
  other.replace(other.find("aaaa"), 4, "bbbb");
  expect_failure({"import", "facts", file_of(other)}, kToolBadUsage, "bbbb");
  expect_failure({"delete", "facts", "x"}, kToolBadUsage, "x");
  expect_failure({"rename", "facts"}, kToolBadUsage, "usage");
  expect_failure({"show"}, kToolBadUsage, "usage");
  const ToolRun nowhere = run_tool(&notebank_main, {"list"});
  EXPECT_EQ(nowhere.status, kToolBadUsage);
  EXPECT_THAT(nowhere.err, HasSubstr("--data-dir"));
  const std::string nothing = directory_ / "nothing";
  EXPECT_EQ(run_tool(&notebank_main, {"list", "--data-dir", nothing}).status, kToolFailed);
  EXPECT_FALSE(fs::exists(nothing));
}

TEST(NoteBankBench, FindsTheDocumentsFactsAndReplayAnswers) {
  const ToolRun run = run_tool(
      &notebank_main, {"bench", "--model", kShippedModel, "--search-notes", "10000", "--json"});
  ASSERT_EQ(run.status, kToolOk) << run.err;
  const auto figures = nlohmann::json::parse(run.out);
  EXPECT_EQ(figures["notebank_contained"], 1.0);
  EXPECT_EQ(figures["notebank_recall_at_2"], 1.0);
  EXPECT_EQ(figures["notebank_rank1_replay"], 1.0);
  EXPECT_EQ(figures["notebank_rank1_none"], 0.0);
  EXPECT_GT(figures["notebank_address_ms_10k"], 0.0);
}

TEST(NoteBankBench, TellsKeysOneDigitApartFromEachOther) {
  const ToolRun run =
      run_tool(&notebank_main, {"bench", "--model", kShippedModel, "--characters", "16000",
                                "--facts", "60", "--search-notes", "0", "--json"});
  ASSERT_EQ(run.status, kToolOk) << run.err;
  const auto figures = nlohmann::json::parse(run.out);
  EXPECT_GE(figures["notebank_recall_at_2"], 0.95);
  EXPECT_GE(figures["notebank_rank1_replay"], 0.9);
}

TEST(NoteBankBench, IsAPartOfBenchToo) {
  const ToolRun run = run_tool(&bench_main, {"--notebank", "--model", kShippedModel, "--characters",
                                             "384", "--search-notes", "0"});
  EXPECT_EQ(run.status, kToolOk) << run.err;
  EXPECT_THAT(run.out, HasSubstr("notes, 3 questions"));
}

// Forms of a fact that say nothing a sketch of 16 tokens could tell apart: the key stands far
// before the answer, or the sentences share all but a name.
TEST(NoteBankBench, FindsFactsInOrdinarySentences) {
  const ToolRun run =
      run_tool(&notebank_main, {"bench", "--model", kShippedModel, "--sentences", "40", "--json"});
  ASSERT_EQ(run.status, kToolOk) << run.err;
  const auto figures = nlohmann::json::parse(run.out);
  ASSERT_GE(figures.size(), 6U);
  for (const auto& form : figures) {
    EXPECT_GE(form["fused_at_2"], 0.9) << form;
    EXPECT_GE(form["text_at_2"], 0.9) << form;
  }
}

TEST(Demo, RanksTheValueFirstAndLeavesTheLiveSequenceAlone) {
  const ToolRun run = run_tool(&demo_main, {"--model", kShippedModel});
  EXPECT_EQ(run.status, kToolOk) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("value after replay:     rank 1,"), HasSubstr("same bits")));
}

TEST(SelftestOfTheMemory, HoldsAndFailsWhenBroken) {
  const std::vector<std::string> args{"--only", "4", "--model", kShippedModel};
  const ToolRun healthy = run_tool(&selftest_main, args);
  EXPECT_EQ(healthy.status, kToolOk) << healthy.out << healthy.err;
  EXPECT_THAT(healthy.out,
              AllOf(HasSubstr("needles 3/3, similarity recall@2 3/3"), HasSubstr("note storage"),
                    HasSubstr("dense KV, all layers            14155776 B")));
  std::vector<std::string> breaking = args;
  breaking.insert(breaking.end(), {"--break", "4"});
  EXPECT_EQ(run_tool(&selftest_main, breaking).status, kToolFailed);
}

}  // namespace
}  // namespace spel::server::tools

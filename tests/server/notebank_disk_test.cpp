// Banks on disk: over restarts, with another model, and on disks that fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <string>
#include <vector>

#include "fault_vfs.h"
#include "notebank_support.h"
#include "tests/scratch_folder.h"

namespace spel::server::testing {
namespace {

using memory::testing::DiskOp;
using memory::testing::FaultVfs;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// A directory for one test.
class NoteBankDisk : public ::testing::Test {
 protected:
  spel::testing::ScratchFolder scratch_;
  std::string directory_ = scratch_.path();
};

TEST_F(NoteBankDisk, NotesAreThereAfterARestart) {
  json before;
  {
    const NoteServer server(directory_);
    before = server.write("facts", text_with("KEY_37=4821")).parsed();
  }
  const NoteServer server(directory_);
  EXPECT_EQ(server.ask(get("/v1/notebanks/facts")).parsed()["notes"], before["count"]);
  EXPECT_THAT(
      server.post_json("/v1/notebanks/facts/address", {{"query", "?KEY_37="}, {"top", 1}}).body,
      HasSubstr("KEY_37=4821"));
}

TEST_F(NoteBankDisk, ABankOfAnotherModelIsRefusedNamingBoth) {
  {
    const NoteServer server(directory_);
    ASSERT_EQ(server.write("facts", "a text").status, 201);
  }
  const NoteServer server(directory_, "bbbb2222");
  json completion = replay_body();
  completion["notebank"] = {{"bank", "facts"}};
  for (const Reply& reply : {server.write("facts", "a text"),
                             server.post_json("/v1/notebanks/facts/address", {{"query", "a"}}),
                             server.post_json("/v1/notebanks/facts/replay", replay_body()),
                             server.complete(completion)}) {
    expect_schema("Error", reply, 400);
    EXPECT_THAT(reply.body, AllOf(HasSubstr(kNoteModelHash), HasSubstr("bbbb2222")));
    EXPECT_EQ(reply.parsed()["error"]["code"], "wrong_model");
  }
  // It can still be looked at, and be deleted.
  EXPECT_EQ(server.ask(get("/v1/notebanks/facts")).parsed()["model"], kNoteModelHash);
  EXPECT_EQ(server.remove("/v1/notebanks/facts").status, 200);
}

TEST_F(NoteBankDisk, ADamagedNoteIsLeftOutAndCounted) {
  {
    const NoteServer server(directory_);
    ASSERT_EQ(server.write("facts", "The key of room 7 is under the mat.").status, 201);
    ASSERT_EQ(server.write("facts", "The key of room 8 hangs by the door.").status, 201);
  }
  sqlite3* file = nullptr;
  ASSERT_EQ(sqlite3_open((directory_ + "/notebank.db").c_str(), &file), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(file, "UPDATE note SET text='The key of room 7 is lost.' WHERE id=1",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(file);
  const NoteServer server(directory_);
  const json bank = server.ask(get("/v1/notebanks/facts")).parsed();
  EXPECT_EQ(bank["damaged"], 1);
  EXPECT_EQ(server.metric("spel_notebank_damaged_notes"), 1.0);
  EXPECT_EQ(server.metric("spel_notebank_notes"), bank["notes"].get<int>() - 1);
  EXPECT_THAT(
      server.post_json("/v1/notebanks/facts/address", {{"query", "The key of room 7 "}}).body,
      ::testing::Not(HasSubstr("is lost")));
  expect_error(server.ask(get("/v1/notebanks/facts/notes/1")), 500, "", "damaged");
  EXPECT_EQ(server.remove("/v1/notebanks/facts/notes/1").status, 200);
  EXPECT_EQ(server.ask(get("/v1/notebanks/facts")).parsed()["damaged"], 0);
}

// --- Disks that fail -----------------------------------------------------------------------------

TEST_F(NoteBankDisk, AFullOrFailingDiskIs507AndPasses) {
  FaultVfs disk;
  const NoteServer server(directory_);
  const std::uint64_t kept = server.write("facts", text_with("KEY_37=4821")).parsed()["count"];
  for (const int code : {SQLITE_FULL, SQLITE_IOERR_WRITE}) {
    disk.fail(DiskOp::kWrite, 1, FaultVfs::kForEver, code);
    expect_error(server.write("facts", "another text"), 507, "", "space");
    expect_error(server.remove("/v1/notebanks/facts"), 507, "", "space");
    EXPECT_EQ(server.complete(replay_body()).status, 200);
    EXPECT_EQ(server.post_json("/v1/notebanks/facts/replay", replay_body()).status, 200);
    EXPECT_EQ(server.ask(get("/v1/notebanks/facts")).parsed()["notes"], kept);
    // In a stream too the first event would be the end: it is an error with a status.
    const Reply streamed =
        server.post_json("/v1/notebanks/facts/write", {{"text", "short"}, {"stream", true}});
    expect_error(streamed, 507, "", "space");
    disk.heal();
    const Reply after = server.write("facts2", "another text");
    expect_schema("NoteWriteResponse", after, 201);
    EXPECT_EQ(server.remove("/v1/notebanks/facts2").status, 200);
  }
}

TEST_F(NoteBankDisk, ADiskThatFillsUpInsideAStreamEndsItWithAnError) {
  FaultVfs disk;
  const NoteServer server(directory_);
  disk.fail(DiskOp::kWrite, 1, FaultVfs::kForEver, SQLITE_FULL);
  const Reply reply = server.post_json("/v1/notebanks/facts/write",
                                       {{"text", text_with("KEY_1=1", 2000)}, {"stream", true}});
  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(reply.truncated);
  const std::vector<json> events = sse_events(reply.body);
  ASSERT_FALSE(events.empty());
  EXPECT_TRUE(events.back().contains("error")) << reply.body;
  disk.heal();
  EXPECT_EQ(server.write("facts", "a text").status, 201);
}

TEST_F(NoteBankDisk, AFailedFlushEndsWritingUntilARestart) {
  FaultVfs disk;
  {
    const NoteServer server(directory_);
    ASSERT_EQ(server.write("facts", text_with("KEY_37=4821")).status, 201);
    disk.fail(DiskOp::kSync, 1, 1, SQLITE_IOERR_FSYNC);
    expect_error(server.write("facts", "another text"), 503, "", "log");
    disk.heal();
    expect_error(server.write("facts", "another text"), 503, "", "log");
    expect_error(server.remove("/v1/notebanks/facts"), 503, "", "log");
    EXPECT_EQ(server.post_json("/v1/notebanks/facts/replay", replay_body()).status, 200);
    EXPECT_EQ(server.complete(replay_body()).status, 200);
    EXPECT_EQ(server.ask(get("/v1/notebanks")).status, 200);
  }
  const NoteServer server(directory_);
  EXPECT_EQ(server.write("facts", "another text").status, 201);
}

}  // namespace
}  // namespace spel::server::testing

// A server whose model has an episodic memory, for the tests of the endpoints under /v1/notebanks.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "support.h"

namespace spel::server::testing {

inline constexpr std::size_t kNoteModelSeq = 512;
inline constexpr const char* kNoteModelHash = "aaaa1111";

class NoteServer : public TestServer {
 public:
  /// A hybrid small enough to read a book in seconds; its words mean nothing, its keys do.
  explicit NoteServer(const std::string& data_dir = {}, const std::string& hash = kNoteModelHash);

  [[nodiscard]] Reply post_json(const std::string& path, const json& body) const {
    return ask(post(path, body.dump()));
  }
  [[nodiscard]] Reply remove(const std::string& path) const {
    return ask("DELETE " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }
  [[nodiscard]] Reply write(const std::string& bank, const std::string& text) const {
    return post_json("/v1/notebanks/" + bank + "/write", {{"text", text}});
  }
};

/// How `value` breaks a schema of openapi.json; empty: it does not.
[[nodiscard]] std::vector<std::string> violations(const std::string& schema, const json& value);
void expect_schema(const std::string& schema, const Reply& reply, int status);
void expect_error(const Reply& reply, int status, const std::string& param,
                  const std::string& words);

/// The same few words over and over, and once a fact that is like none of them.
[[nodiscard]] std::string text_with(const std::string& fact, std::size_t characters = 1000);
/// The events of a stream; its end is "[DONE]".
[[nodiscard]] std::vector<json> sse_events(const std::string& body);
/// A question that text_with("KEY_37=4821") answers, greedy.
[[nodiscard]] json replay_body();

}  // namespace spel::server::testing

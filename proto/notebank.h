// The endpoints under /v1/notebanks: requests and answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/base/limits.h"
#include "proto/completion.h"
#include "proto/generation.h"
#include "proto/json_text.h"

namespace spel::proto {

inline constexpr std::size_t kNoteTextBytesMax = 16U << 20;
inline constexpr std::size_t kNoteMetadataBytesMax = 4096;
/// Of a write: JSON may spell a byte of the text with two.
inline constexpr std::size_t kNoteBodyBytes = 2 * kNoteTextBytesMax + limits::kBodyBytesDefault;

struct NoteWriteRequest {
  std::string text;  ///< Not empty, at most kNoteTextBytesMax.
  std::size_t notes_per_chunk = 2;
  std::string metadata = "{}";  ///< A JSON object, compact.
  bool stream = false;
  std::size_t unknown_fields = 0;
};
[[nodiscard]] NoteWriteRequest parse_note_write_request(std::string_view body,
                                                        const JsonLimits& limits);

struct NoteAddressRequest {
  std::string query;  ///< Not empty.
  std::size_t top = 2;
  Ranker ranker = kRankerDefault;
  std::size_t unknown_fields = 0;
};
[[nodiscard]] NoteAddressRequest parse_note_address_request(std::string_view body,
                                                            const JsonLimits& limits);

/// A completion request whose `notebank` names `bank`; `top` and `ranker` may stand in the body
/// itself. 400 if the body names another bank.
[[nodiscard]] CompletionRequest parse_note_replay_request(std::string_view body,
                                                          const std::string& bank,
                                                          const JsonLimits& limits);

struct NoteView {
  std::int64_t id = 0;
  std::string text;
  std::vector<TokenId> tokens;
  std::uint64_t start = 0;
  double score = 0.0;
  std::string metadata;  ///< A JSON object; left out if it is empty or not one.
};

struct BankView {
  std::string name;
  std::string model;
  std::uint64_t notes = 0;
  std::uint64_t bytes = 0;
  std::uint64_t damaged = 0;  ///< Notes that are left out.
  std::int64_t created = 0;
};

/// Notes listed in a write's answer; a longer text has more of them.
inline constexpr std::size_t kNotesListedMax = 256;

struct NoteWriteResult {
  std::string bank;
  std::vector<NoteView> notes;  ///< The first kNotesListedMax.
  std::uint64_t count = 0;
  std::uint64_t tokens = 0;
  std::uint64_t chunks = 0;
  double seconds = 0.0;
};

[[nodiscard]] std::string note_write_response(const NoteWriteResult& result);
/// {"progress":{"tokens","total","notes"}}: `notes` of them are durable.
[[nodiscard]] std::string note_write_progress(std::uint64_t tokens, std::uint64_t total,
                                              std::uint64_t notes);
[[nodiscard]] std::string note_address_response(const std::string& bank,
                                                const std::vector<NoteView>& notes, double seconds);
[[nodiscard]] std::string note_response(const NoteView& note);
[[nodiscard]] std::string bank_response(const BankView& bank);
[[nodiscard]] std::string banks_response(const std::vector<BankView>& banks);
[[nodiscard]] std::string deleted_response(const std::string& id);

}  // namespace spel::proto

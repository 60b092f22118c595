#include "proto/notebank.h"

#include <utility>

#include "proto/error_body.h"
#include "proto/fields.h"
#include "proto/generation_fields.h"

namespace spel::proto {

namespace {

constexpr std::size_t kNotesPerChunkMax = 16;

std::string require_text(Fields& fields, std::string_view name, std::size_t bytes_max) {
  auto text = fields.text(name, bytes_max);
  if (!text) {
    fields.fail(name, "is required.", "missing_parameter");
  }
  if (text->empty()) {
    fields.fail(name, "must not be empty.", "invalid_value");
  }
  return std::move(*text);
}

/// Null where a store holds what no client could have written: the note itself is still right.
JsonValue metadata_json(const NoteView& note) {
  try {
    return read_json(note.metadata, {.bytes = kNoteMetadataBytesMax});
  } catch (const JsonError&) {
    return nullptr;
  }
}

JsonValue note_json(const NoteView& note) {
  JsonValue body = {{"id", note.id},
                    {"text", note.text},
                    {"tokens", note.tokens},
                    {"start", note.start},
                    {"score", note.score}};
  JsonValue metadata = metadata_json(note);
  if (metadata.is_object() && !metadata.empty()) {
    body["metadata"] = std::move(metadata);
  }
  return body;
}

JsonValue notes_json(const std::vector<NoteView>& notes) {
  JsonValue list = JsonValue::array();
  for (const NoteView& note : notes) {
    list.push_back(note_json(note));
  }
  return list;
}

JsonValue bank_json(const BankView& bank) {
  return {{"name", bank.name},   {"model", bank.model},     {"notes", bank.notes},
          {"bytes", bank.bytes}, {"damaged", bank.damaged}, {"created", bank.created}};
}

}  // namespace

NoteWriteRequest parse_note_write_request(std::string_view body, const JsonLimits& limits) {
  JsonObject object = parse_json_object(body, limits);
  Fields fields(object);
  NoteWriteRequest request;
  request.text = require_text(fields, "text", kNoteTextBytesMax);
  request.notes_per_chunk =
      fields.count("notes_per_chunk", 1, kNotesPerChunkMax).value_or(request.notes_per_chunk);
  request.stream = fields.boolean("stream").value_or(false);
  if (const JsonValue* metadata = fields.find("metadata")) {
    if (!metadata->is_object()) {
      fields.fail("metadata", "must be an object.", "invalid_value");
    }
    request.metadata = dump_json(*metadata);
    if (request.metadata.size() > kNoteMetadataBytesMax) {
      fields.fail("metadata",
                  "must not be longer than " + std::to_string(kNoteMetadataBytesMax) + " bytes.",
                  "invalid_value");
    }
  }
  request.unknown_fields = fields.unknown();
  return request;
}

NoteAddressRequest parse_note_address_request(std::string_view body, const JsonLimits& limits) {
  JsonObject object = parse_json_object(body, limits);
  Fields fields(object);
  NoteAddressRequest request;
  request.query = require_text(fields, "query", limits.bytes);
  request.top = fields.count("top", 1, spel::limits::kNoteTopMax).value_or(request.top);
  request.ranker = read_ranker(fields).value_or(request.ranker);
  request.unknown_fields = fields.unknown();
  return request;
}

CompletionRequest parse_note_replay_request(std::string_view body, const std::string& bank,
                                            const JsonLimits& limits) {
  JsonObject object = parse_json_object(body, limits);
  Fields fields(object);
  return read_completion(fields, bank);
}

std::string note_write_response(const NoteWriteResult& result) {
  return dump_json(JsonValue{{"bank", result.bank},
                             {"notes", notes_json(result.notes)},
                             {"count", result.count},
                             {"tokens", result.tokens},
                             {"chunks", result.chunks},
                             {"seconds", result.seconds}});
}

std::string note_write_progress(std::uint64_t tokens, std::uint64_t total, std::uint64_t notes) {
  return dump_json(
      JsonValue{{"progress", {{"tokens", tokens}, {"total", total}, {"notes", notes}}}});
}

std::string note_address_response(const std::string& bank, const std::vector<NoteView>& notes,
                                  double seconds) {
  return dump_json(JsonValue{{"bank", bank}, {"notes", notes_json(notes)}, {"seconds", seconds}});
}

std::string note_response(const NoteView& note) { return dump_json(note_json(note)); }

std::string bank_response(const BankView& bank) { return dump_json(bank_json(bank)); }

std::string banks_response(const std::vector<BankView>& banks) {
  JsonValue list = JsonValue::array();
  for (const BankView& bank : banks) {
    list.push_back(bank_json(bank));
  }
  return dump_json(JsonValue{{"object", "list"}, {"data", std::move(list)}});
}

std::string deleted_response(const std::string& id) {
  return dump_json(JsonValue{{"id", id}, {"deleted", true}});
}

}  // namespace spel::proto

#include "server/tools/notebank_files.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <ostream>
#include <unordered_map>
#include <utility>

#include "config/base/error.h"
#include "config/json/file_values.h"
#include "engine/files/sha256.h"
#include "memory/plausible.h"

namespace spel::server::tools {
namespace {

using memory::NoteDraft;

/// Notes in memory at once.
constexpr std::size_t kBatch = 1024;
/// Of a line of a file.
constexpr std::size_t kLineBytesMax = 16U << 20;
/// Of an array in it.
constexpr std::size_t kNumbersMax = 1U << 20;

/// Says what is wrong with a line, beginning with the field.
[[noreturn]] void refuse(const std::string& what) { throw Error(ErrorCode::kCorrupt, what); }

/// A note has some thousand numbers, and a text and metadata beside them.
JsonValue parse_line(const std::string& line) { return read_json(line, {.bytes = kLineBytesMax}); }

const JsonValue& member(const JsonValue& line, const char* field) {
  const JsonValue* found = line.find(field);
  if (found == nullptr) {
    refuse(std::string(field) + ": is missing");
  }
  return *found;
}

std::uint64_t whole(const JsonValue& line, const char* field, std::uint64_t max) {
  return whole_number(member(line, field), field, max);
}

template <typename T>
std::vector<T> whole_numbers(const JsonValue& line, const char* field) {
  const auto elements = elements_of(member(line, field), field, kNumbersMax);
  std::vector<T> values;
  values.reserve(elements.size());
  for (const JsonValue& value : elements) {
    values.push_back(static_cast<T>(whole_number(value, field, std::numeric_limits<T>::max())));
  }
  return values;
}

bool is_json(const std::string& text) {
  try {
    (void)read_json(text);
    return true;
  } catch (const JsonError&) {
    return false;
  }
}

NoteDraft read_draft(const JsonValue& line) {
  NoteDraft note;
  note.start = whole(line, "start", std::numeric_limits<std::int64_t>::max());
  const JsonValue& score = member(line, "score");
  if (std::abs(real_number(score, "score")) > double{std::numeric_limits<float>::max()}) {
    refuse_value(score, "score", "a number a float can hold");
  }
  note.score = score.get<float>();
  note.metadata = text_of(member(line, "metadata"), "metadata");
  if (!is_json(note.metadata)) {
    refuse("metadata: not JSON");
  }
  note.text = text_of(member(line, "text"), "text");
  note.tokens = whole_numbers<memory::TokenId>(line, "tokens");
  note.coordinates = whole_numbers<std::uint16_t>(line, "coordinates");
  note.sketch = whole_numbers<std::uint16_t>(line, "sketch");
  return note;
}

template <typename T>
void add_bytes(std::string& to, const std::vector<T>& values) {
  to += std::to_string(values.size()) + ":";
  to.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

/// The same for notes that an export would write the same line for.
std::string digest_of(const NoteDraft& note) {
  std::string all = std::to_string(note.start) + ":" + std::to_string(note.score) + ":" +
                    std::to_string(note.metadata.size()) + ":" + note.metadata +
                    std::to_string(note.text.size()) + ":" + note.text;
  add_bytes(all, note.tokens);
  add_bytes(all, note.coordinates);
  add_bytes(all, note.sketch);
  // Half of it tells a billion notes apart.
  return engine::sha256_hex(all).substr(0, 32);
}

/// How often the bank has each note.
std::unordered_map<std::string, std::uint64_t> digests_of(memory::Store& store,
                                                          const std::string& bank) {
  std::unordered_map<std::string, std::uint64_t> digests;
  (void)store.visit_notes(bank, [&](const memory::Note& note, auto coordinates, auto sketch) {
    NoteDraft draft;
    draft.start = note.start;
    draft.score = note.score;
    draft.metadata = note.metadata;
    draft.text = note.text;
    draft.tokens = note.tokens;
    draft.coordinates.assign(coordinates.begin(), coordinates.end());
    draft.sketch.assign(sketch.begin(), sketch.end());
    ++digests[digest_of(draft)];
  });
  return digests;
}

struct Head {
  std::string model;
  memory::ChannelShape shape;
  std::size_t vocab = 0;
};

Head read_head(const JsonValue& line) {
  constexpr std::uint64_t kCountMax = 1U << 24U;
  // Exports of the first format did not name it.
  const std::uint64_t format = line.contains("format") ? whole(line, "format", kCountMax) : 1;
  if (format < memory::kBankFormatOldest || format > memory::kBankFormat) {
    refuse("format " + std::to_string(format) + " is not one this program reads (" +
           std::to_string(memory::kBankFormatOldest) + " to " +
           std::to_string(memory::kBankFormat) +
           "): its notes would not be found; write its texts again");
  }
  Head head;
  head.model = text_of(member(line, "model"), "model");
  head.shape = {whole(line, "channels", kCountMax), whole(line, "head_dim", kCountMax)};
  head.vocab = line.contains("vocab") ? whole(line, "vocab", kCountMax) : 0;
  return head;
}

}  // namespace

std::vector<memory::NoteId> export_bank(memory::Store& store, const memory::BankInfo& bank,
                                        std::ostream& out) {
  // Members by name: files of one bank compare byte for byte.
  JsonValue head{{"bank", bank.name},
                 {"channels", bank.shape.channels},
                 {"format", memory::kBankFormat},
                 {"head_dim", bank.shape.head_dim},
                 {"model", bank.model}};
  if (bank.vocab > 0) {
    head["vocab"] = bank.vocab;
  }
  out << dump_json(head) << "\n";
  return store.visit_notes(bank.name, [&](const memory::Note& note, auto coordinates, auto sketch) {
    out << dump_json(
               {{"coordinates", std::vector<std::uint16_t>(coordinates.begin(), coordinates.end())},
                {"metadata", note.metadata},
                {"score", static_cast<double>(note.score)},
                {"sketch", std::vector<std::uint16_t>(sketch.begin(), sketch.end())},
                {"start", note.start},
                {"text", note.text},
                {"tokens", note.tokens}})
        << "\n";
  });
}

Imported import_bank(memory::Store& store, const std::string& name, const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) {
    throw Error(ErrorCode::kIo, "cannot read " + path);
  }
  std::size_t number = 1;
  try {
    Head head = read_head(parse_line(line));
    if (const auto known = store.find_bank(name); known && known->vocab > 0) {
      if (head.vocab > 0 && head.vocab != known->vocab) {
        refuse("vocab: " + std::to_string(head.vocab) + "; that of bank " + name + " is " +
               std::to_string(known->vocab));
      }
      head.vocab = known->vocab;
    }
    auto there = digests_of(store, name);
    Imported done;
    done.imported = store.append_all(name, head.model, head.shape, head.vocab, [&] {
      std::vector<NoteDraft> notes;
      while (notes.size() < kBatch && std::getline(file, line)) {
        ++number;
        NoteDraft note = read_draft(parse_line(line));
        if (const std::string fault = memory::note_fault(note, head.shape, head.vocab);
            !fault.empty()) {
          refuse(fault);
        }
        const auto found = there.find(digest_of(note));
        if (found != there.end() && found->second > 0) {
          --found->second;
          ++done.already_there;
          continue;
        }
        notes.push_back(std::move(note));
      }
      return notes;
    });
    return done;
  } catch (const JsonError& error) {
    throw Error(ErrorCode::kCorrupt, path + ", line " + std::to_string(number) +
                                         ": not a line that spel notebank export writes: " +
                                         error.what() + "; nothing was imported");
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorrupt) {
      throw;
    }
    throw Error(ErrorCode::kCorrupt, path + ", line " + std::to_string(number) + ": " +
                                         error.what() + "; nothing was imported");
  }
}

}  // namespace spel::server::tools

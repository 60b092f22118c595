// What a bank keeps: a span of text worth remembering and the coordinates it is found by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "config/base/names.h"

namespace spel::memory {

using TokenId = std::int32_t;
using NoteId = std::int64_t;

/// One (recurrent layer, head) is a channel: it has a key and a query at every token.
struct ChannelShape {
  std::size_t channels = 0;
  std::size_t head_dim = 0;

  [[nodiscard]] std::size_t width() const noexcept { return channels * head_dim; }
  friend bool operator==(const ChannelShape&, const ChannelShape&) = default;
};

/// BF16 coordinates kept of each channel's key.
inline constexpr std::size_t kChannelCoordinates = 16;
/// Consecutive tokens of a note that are sketched, and the BF16 coordinates of each sketch.
inline constexpr std::size_t kAnchors = 16;
inline constexpr std::size_t kSketchCoordinates = 32;
/// The sketched tokens begin this many before the most distinctive window: what a fact is asked by
/// (its key) comes before what makes it distinctive (its value).
inline constexpr std::size_t kAnchorLead = 3;
/// Raised with every change of the tables, of an export's lines, or of what coordinates and
/// sketches are made of.
inline constexpr std::int64_t kBankFormat = 3;
/// The oldest that is still read, and brought to kBankFormat: older ones are refused, because their
/// notes would not be found.
inline constexpr std::int64_t kBankFormatOldest = 2;

using spel::Ranker;

/// A note before it is stored. Coordinates are BF16. A passage has neither coordinates nor a
/// sketch: it is found by its text.
struct NoteDraft {
  std::vector<TokenId> tokens;
  std::string text;             ///< Of the tokens; filled in by whoever has the tokenizer.
  std::uint64_t start = 0;      ///< Token offset of the span in the text it was written from.
  std::string metadata = "{}";  ///< A JSON object, as text; not looked into.
  float score = 0.0F;           ///< Distinctiveness.
  std::vector<std::uint16_t> coordinates;  ///< [channels][kChannelCoordinates]: the peak's keys.
  std::vector<std::uint16_t> sketch;       ///< [kSketchCoordinates][kAnchors]
};

/// A stored note, without its coordinates.
struct Note {
  NoteId id = 0;
  std::vector<TokenId> tokens;
  std::string text;
  std::uint64_t start = 0;
  std::string metadata;
  float score = 0.0F;        ///< Distinctiveness when read, similarity when addressed.
  std::int64_t created = 0;  ///< Unix seconds.
};

struct BankInfo {
  std::string name;
  std::string model;  ///< SHA-256 of the weights it was written with.
  ChannelShape shape;
  std::size_t vocab = 0;  ///< Tokens the model knows; 0 if whoever wrote the bank did not say.
  std::uint64_t notes = 0;
  std::uint64_t bytes = 0;    ///< Tokens, text, metadata and coordinates.
  std::uint64_t damaged = 0;  ///< Of the notes, those that are left out; known to a NoteBank.
  std::int64_t created = 0;   ///< Unix seconds.
};

}  // namespace spel::memory

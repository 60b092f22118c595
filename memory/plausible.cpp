#include "memory/plausible.h"

#include <array>
#include <cmath>
#include <limits>

#include "memory/bf16.h"

namespace spel::memory {
namespace {

/// BF16 keeps eight bits: a length of 1 may come back a little longer.
constexpr float kRounding = 1.02F;
/// A metadata object a client may send, and a text no tokenizer makes of one note's tokens.
constexpr std::size_t kMetadataBytesMax = 16U << 10U;
constexpr std::size_t kTextBytesMax = 64U << 10U;
constexpr std::size_t kNoteTokensMax = 4096;

std::string size_fault(const char* field, std::size_t found, std::size_t expected) {
  return std::string(field) + " has " + std::to_string(found) + " values; expected " +
         std::to_string(expected);
}

}  // namespace

std::string sketch_fault(std::span<const std::uint16_t> sketch) {
  if (sketch.size() != kSketchCoordinates * kAnchors) {
    return size_fault("sketch", sketch.size(), kSketchCoordinates * kAnchors);
  }
  std::array<float, kAnchors> squares{};
  for (std::size_t i = 0; i < sketch.size(); ++i) {
    const float value = from_bf16(sketch[i]);
    squares[i % kAnchors] += value * value;
  }
  for (std::size_t anchor = 0; anchor < kAnchors; ++anchor) {
    // Written so that what is no number does not pass.
    if (!(squares[anchor] <= kRounding * kRounding)) {
      return "sketch: token " + std::to_string(anchor) + " has the length " +
             std::to_string(std::sqrt(squares[anchor])) + "; expected at most 1";
    }
  }
  return {};
}

std::string coordinates_fault(std::span<const std::uint16_t> coordinates,
                              const ChannelShape& shape) {
  if (coordinates.size() != shape.channels * kChannelCoordinates) {
    return size_fault("coordinates", coordinates.size(), shape.channels * kChannelCoordinates);
  }
  const float largest = std::sqrt(static_cast<float>(shape.head_dim)) * kRounding;
  for (std::size_t i = 0; i < coordinates.size(); ++i) {
    const float value = from_bf16(coordinates[i]);
    if (!(std::abs(value) <= largest)) {
      return "coordinates: value " + std::to_string(i) + " is " + std::to_string(value) +
             "; expected at most " + std::to_string(largest);
    }
  }
  return {};
}

std::string tokens_fault(std::span<const TokenId> tokens, std::size_t vocab) {
  if (tokens.empty() || tokens.size() > kNoteTokensMax) {
    return "tokens: there are " + std::to_string(tokens.size()) + "; expected 1 to " +
           std::to_string(kNoteTokensMax);
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || (vocab != 0 && static_cast<std::size_t>(tokens[i]) >= vocab)) {
      return "tokens: id " + std::to_string(tokens[i]) + " at place " + std::to_string(i) +
             " is not in the vocabulary" +
             (vocab == 0 ? std::string() : " of " + std::to_string(vocab));
    }
  }
  return {};
}

std::string note_fault(const NoteDraft& note, const ChannelShape& shape, std::size_t vocab) {
  std::string fault = tokens_fault(note.tokens, vocab);
  if (fault.empty() && note.start > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
    fault = "start: " + std::to_string(note.start) + " is beyond any text";
  }
  if (fault.empty() && !std::isfinite(note.score)) {
    fault = "score: not a finite number";
  }
  if (fault.empty() && note.text.size() > kTextBytesMax) {
    fault = "text: longer than " + std::to_string(kTextBytesMax) + " bytes";
  }
  if (fault.empty() && note.metadata.size() > kMetadataBytesMax) {
    fault = "metadata: longer than " + std::to_string(kMetadataBytesMax) + " bytes";
  }
  if (!fault.empty() || (note.sketch.empty() && note.coordinates.empty())) {
    return fault;
  }
  fault = coordinates_fault(note.coordinates, shape);
  return fault.empty() ? sketch_fault(note.sketch) : fault;
}

}  // namespace spel::memory

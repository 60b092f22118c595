// What a note's values can be: whatever comes from a file is looked at before it is compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "memory/note.h"

namespace spel::memory {

/// Each says what is wrong, beginning with the field's name, and nothing if all is well. A value
/// that could not have been written would win every comparison (or, being no number, none).

/// [kSketchCoordinates][kAnchors]: finite, and no token longer than 1.
[[nodiscard]] std::string sketch_fault(std::span<const std::uint16_t> sketch);
/// [channels][kChannelCoordinates]: finite, none beyond what a key of length 1 can add up to.
[[nodiscard]] std::string coordinates_fault(std::span<const std::uint16_t> coordinates,
                                            const ChannelShape& shape);
/// At least one, each in 0 … vocab - 1. A vocab of 0: how many there are is not known.
[[nodiscard]] std::string tokens_fault(std::span<const TokenId> tokens, std::size_t vocab);
/// All of a note; its sketch and coordinates may both be missing.
[[nodiscard]] std::string note_fault(const NoteDraft& note, const ChannelShape& shape,
                                     std::size_t vocab);

}  // namespace spel::memory

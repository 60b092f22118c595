// Chooses what to remember: reads a text's keys chunk by chunk and keeps the most distinctive
// spans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "memory/note.h"
#include "memory/projection.h"

namespace spel::memory {

/// Tokens a chunk has; its mean key is what distinctiveness is measured against.
inline constexpr std::size_t kChunkTokens = 128;

/// What a span's worth is.
enum class SpanScore {
  kWindow,  ///< The mean distinctiveness of kAnchors consecutive tokens: finds whole facts.
  kPeak,    ///< The document's: the one most distinctive token.
};

struct WriterOptions {
  std::size_t notes_per_chunk = 2;
  std::size_t span_tokens =
      48;  ///< At least kAnchors. Holds a fact and a little of what is around.
  SpanScore score = SpanScore::kWindow;
};

/// One chunk as captured. Spans stay the caller's.
struct CapturedChunk {
  std::span<const TokenId> tokens;  ///< At most kChunkTokens; fewer only at the text's end.
  std::span<const float> keys;      ///< [tokens][channels][head_dim], each of length 1.
};

/// One text. Not thread-safe.
///
/// distinctiveness of a token = 1 - <k_hat, mu_hat>, the mean over channels, mu_hat being the
/// normalised mean key of the token's chunk. A chunk's notes are chosen once the next chunk is
/// known, so that a span may reach over the border.
class Writer {
 public:
  Writer(const Projection& projection, const WriterOptions& options);

  /// Appends the notes that are now decided to `notes`.
  void add(const CapturedChunk& chunk, std::vector<NoteDraft>& notes);
  /// The text has ended.
  void finish(std::vector<NoteDraft>& notes);

  [[nodiscard]] std::uint64_t tokens() const noexcept { return tokens_; }
  [[nodiscard]] std::uint64_t chunks() const noexcept { return chunks_; }

 private:
  struct Chunk {
    std::uint64_t first = 0;
    std::vector<TokenId> tokens;
    std::vector<float> keys;             ///< [tokens][channels][head_dim]
    std::vector<float> distinctiveness;  ///< [tokens]
  };

  [[nodiscard]] Chunk measure(const CapturedChunk& chunk) const;
  void choose(std::vector<NoteDraft>& notes);
  [[nodiscard]] NoteDraft make_note(std::uint64_t window, std::uint64_t peak, float score) const;
  [[nodiscard]] const Chunk& chunk_of(std::uint64_t token) const;
  [[nodiscard]] float distinctiveness(std::uint64_t token) const;
  [[nodiscard]] std::span<const float> keys(std::uint64_t token) const;

  const Projection& projection_;
  const WriterOptions options_;
  std::optional<Chunk> previous_;  ///< Decided; kept for spans that begin in it.
  std::optional<Chunk> current_;   ///< To be decided …
  std::optional<Chunk> next_;      ///< … once this is there.
  std::uint64_t tokens_ = 0;
  std::uint64_t chunks_ = 0;
};

}  // namespace spel::memory

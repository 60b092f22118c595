// The episodic memory of one model: durable banks and the search over them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "memory/index.h"
#include "memory/note.h"
#include "memory/projection.h"
#include "memory/store.h"
#include "memory/text_index.h"

namespace spel::memory {

/// A query's last tokens as captured, the last one what the text would go on from.
struct CapturedQuery {
  std::span<const float> keys = {};     ///< [tokens][channels][head_dim]; not for kText.
  std::span<const float> queries = {};  ///< The same; only for Ranker::kNative and kVotes.
  std::string_view text = {};           ///< Of the query's end; only for kText and kFused.
};

/// Tokens of a query that are compared: by sketches, and by native queries (the document's four).
inline constexpr std::size_t kQueryTokens = 8;
inline constexpr std::size_t kNativeQueryTokens = 4;

/// Thread-safe. Addressing goes on while notes are written. Throws what Store throws, kNotFound for
/// a bank that does not exist and kInvalidArgument, naming both hashes, for one of another model.
class NoteBank {
 public:
  /// Reads texts and sketches of this model's banks; `directory` as in Store. `vocab` is the
  /// model's number of tokens, 0 if it is not known.
  NoteBank(const kernels::Kernels& kernels, const std::filesystem::path& directory,
           std::string model, const ChannelShape& shape, std::size_t vocab = 0);

  [[nodiscard]] const Projection& projection() const noexcept { return projection_; }
  [[nodiscard]] const std::string& model() const noexcept { return model_; }

  /// Store::warnings(), and one for each bank that has damaged notes.
  [[nodiscard]] const std::vector<std::string>& warnings() const noexcept { return warnings_; }

  /// Durable, and found by address(), once it returns. Throws kInternal for notes whose values
  /// cannot be.
  std::vector<NoteId> append(std::string_view bank, std::span<const NoteDraft> notes);
  /// Throws if `bank` could not be written to: to know before the work is done.
  void check_bank(std::string_view bank);

  /// The `top` notes most like the query, best first; `score` is the similarity. Of notes of the
  /// same tokens only the best, or the first written.
  [[nodiscard]] std::vector<Note> address(std::string_view bank, const CapturedQuery& query,
                                          Ranker ranker, std::size_t top);

  [[nodiscard]] std::vector<BankInfo> banks();
  [[nodiscard]] BankInfo bank(std::string_view name);
  [[nodiscard]] Note note(std::string_view bank, NoteId id);
  void remove_bank(std::string_view name);
  void remove_note(std::string_view bank, NoteId id);

  /// Of this model's banks: notes that can be found, and damaged ones, which cannot.
  [[nodiscard]] std::size_t notes() const;
  [[nodiscard]] std::size_t damaged() const;
  /// As Store::read_only_because().
  [[nodiscard]] std::string read_only_because() const;

 private:
  struct Indexes {
    explicit Indexes(const kernels::Kernels& kernels) : sketches(kernels) {}

    TextIndex texts;
    SketchIndex sketches;
    std::optional<NativeIndex> native;  ///< Built when first asked for.
    std::set<NoteId> damaged;
  };

  void load(const BankInfo& bank);
  [[nodiscard]] std::vector<float> sketch_of(std::span<const float> keys) const;
  [[nodiscard]] std::vector<Match> search_native(std::string_view bank, const CapturedQuery& query,
                                                 Ranker ranker, std::size_t top);
  void require_bank(std::string_view bank);
  [[nodiscard]] std::vector<Match> search(std::string_view bank, const CapturedQuery& query,
                                          Ranker ranker, std::size_t top);

  const std::string model_;
  const Projection projection_;
  const std::size_t vocab_;
  mutable std::mutex store_mutex_;  ///< Taken before index_mutex_.
  Store store_;
  mutable std::shared_mutex index_mutex_;
  std::map<std::string, Indexes, std::less<>> indexes_;
  std::vector<std::string> warnings_;
};

}  // namespace spel::memory

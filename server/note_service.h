// The resident model's episodic memory: where engine and memory meet.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/base/error.h"
#include "engine/engine.h"
#include "memory/note_bank.h"
#include "memory/writer.h"
#include "proto/error_body.h"
#include "proto/notebank.h"
#include "server/net.h"
#include "server/workers.h"

namespace spel::server {

/// Monotone since start.
struct NoteCounters {
  std::atomic<std::uint64_t> writes{0};
  std::atomic<std::uint64_t> addresses{0};
  std::atomic<std::uint64_t> replays{0};
  std::atomic<std::uint64_t> notes_written{0};
  std::atomic<double> write_seconds{0.0};
  std::atomic<double> address_seconds{0.0};
  // What of those went where.
  std::atomic<double> capture_seconds{0.0};  ///< Of writes: reading the text.
  std::atomic<double> choose_seconds{0.0};
  std::atomic<double> store_seconds{0.0};
  std::atomic<double> search_seconds{0.0};  ///< Of addresses.
};

/// What a text becomes that no request can ask for; measurements do.
struct NoteMaking {
  memory::SpanScore score = memory::SpanScore::kWindow;
  bool passages = true;  ///< Beside the notes the writer chooses.
};

/// Thread-safe. The coroutines run on the strand they are given; SQLite and the choice of spans run
/// on a pool of their own. Throw proto::RequestError.
class NoteService {
 public:
  /// `engine` must outlive it.
  NoteService(engine::Engine& engine, const kernels::Kernels& kernels, const std::string& data_dir,
              const std::string& model);
  ~NoteService();
  NoteService(const NoteService&) = delete;
  NoteService& operator=(const NoteService&) = delete;

  struct Progress {
    std::uint64_t tokens = 0;  ///< Read.
    std::uint64_t total = 0;
    std::uint64_t notes = 0;  ///< Durable.
  };
  /// Awaited after each part that has become durable; false ends the write there.
  using OnProgress = std::function<Task<bool>(const Progress&)>;

  /// Texts of up to kAtomicTokens are stored whole or not at all; longer ones part by part.
  [[nodiscard]] Task<proto::NoteWriteResult> write(const Executor& executor, std::string bank,
                                                   proto::NoteWriteRequest request,
                                                   OnProgress on_progress, NoteMaking making = {});

  /// The notes `query` points at, best first.
  [[nodiscard]] Task<std::vector<memory::Note>> address(const Executor& executor, std::string bank,
                                                        std::vector<engine::TokenId> query,
                                                        Ranker ranker, std::size_t top);

  /// For work that uses bank(): it may wait for the disk.
  [[nodiscard]] Workers& pool() noexcept { return pool_; }

  [[nodiscard]] memory::NoteBank& bank() noexcept { return bank_; }
  [[nodiscard]] const NoteCounters& counters() const noexcept { return counters_; }
  void count_replay() noexcept { ++counters_.replays; }

  static constexpr std::size_t kAtomicTokens = 256 * 1024;
  static constexpr std::size_t kThreads = 2;

 private:
  [[nodiscard]] Task<engine::Capture> capture(const Executor& executor,
                                              engine::CaptureRequest request);

  engine::Engine& engine_;
  memory::NoteBank bank_;
  NoteCounters counters_;
  /// Two, so that a look-up does not wait for a long commit.
  Workers pool_{kThreads, "the note store"};
};

/// What a client may know of an error of the store; paths stay in the log.
[[nodiscard]] proto::ApiError to_api_error(const Error& error);
[[nodiscard]] proto::NoteView to_view(const memory::Note& note);

}  // namespace spel::server

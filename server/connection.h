// A transport with deadlines, a bounded read buffer and a watch for the peer's going away.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "server/transport.h"
#include "server/wake.h"
#include "server/watchdog.h"

namespace spel::server {

struct ConnectionLimits {
  std::size_t buffer_bytes = 16 * 1024;  ///< The most that is read ahead.
  Clock::duration write_stall{};
  Clock::duration shortest_deadline{};  ///< Of all deadlines that will be set.
};

/// Strand only. Owned by its session; outstanding operations keep it alive.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::unique_ptr<Transport> transport, const ConnectionLimits& limits);

  /// Starts the deadlines. Before anything else.
  void open();

  [[nodiscard]] const Executor& executor() const noexcept { return transport_->executor(); }
  [[nodiscard]] Task<bool> handshake(Clock::time_point deadline);

  // --- Reading -----------------------------------------------------------------------------------

  /// Bytes received and not yet consumed. Valid until the next fill().
  [[nodiscard]] std::string_view pending() const noexcept {
    return {buffer_.get() + begin_, end_ - begin_};
  }
  void consume(std::size_t bytes) noexcept { begin_ += bytes; }
  [[nodiscard]] bool full() const noexcept { return end_ - begin_ == limits_.buffer_bytes; }

  enum class Fill { kData, kClosed, kTimedOut };
  /// Waits for more bytes. The buffer must not be full.
  [[nodiscard]] Task<Fill> fill(Clock::time_point deadline);
  /// Ends a fill() with kClosed.
  void interrupt();

  /// Keeps a read outstanding from now on and calls `on_closed` once when the peer has closed or
  /// reset. Bytes that come meanwhile are kept for the next request, up to the buffer's size; more
  /// than that is dropped, which must be the end of the connection, and a great deal more closes
  /// it.
  void watch(std::function<void()> on_closed);
  void unwatch() noexcept { on_closed_ = nullptr; }
  /// A watched peer has closed, or the connection was closed here.
  [[nodiscard]] bool gone() const noexcept { return peer_closed_ || closed_; }
  /// Bytes were or may be dropped: what comes next cannot be understood.
  [[nodiscard]] bool overrun() const noexcept { return scratch_ != nullptr; }

  // --- Writing -----------------------------------------------------------------------------------

  /// Writes all of the buffers, at most four. False: the peer has gone, or took nothing for
  /// write_stall; the connection is closed then.
  [[nodiscard]] Task<bool> write(std::span<const net::const_buffer> buffers);

  /// Says the end, reads a little of what still comes, closes.
  [[nodiscard]] Task<void> finish();
  void close() noexcept;
  /// Releases the timer. After everything else.
  void release();

 private:
  /// Space for at least one more byte, unless full().
  [[nodiscard]] net::mutable_buffer room();
  void start_watching();
  void on_read(const IoResult& result);
  void on_dropped(const IoResult& result);

  std::unique_ptr<Transport> transport_;
  const ConnectionLimits limits_;
  std::shared_ptr<Watchdog> watchdog_;
  std::size_t capacity_;  ///< Of buffer_, which grows up to limits_.buffer_bytes.
  std::unique_ptr<char[]> buffer_;
  bool filled_ = false;  ///< A read took all the room: there is more where that came from.
  std::size_t begin_ = 0;
  std::size_t end_ = 0;

  bool reading_ = false;             ///< A read is outstanding for watch().
  std::unique_ptr<char[]> scratch_;  ///< Where a watched peer's bytes beyond the buffer go.
  std::size_t dropped_ = 0;
  Wake read_done_;
  std::function<void()> on_closed_;
  bool peer_closed_ = false;
  bool interrupted_ = false;
  bool read_timed_out_ = false;
  bool closed_ = false;
};

}  // namespace spel::server

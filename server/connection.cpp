#include "server/connection.h"

#include <algorithm>
#include <array>
#include <boost/asio/error.hpp>
#include <cstring>
#include <utility>

#include "server/constants.h"

namespace spel::server {
namespace {

/// Most requests fit, and most connections never need more.
constexpr std::size_t kFirstBufferBytes = 1024;
constexpr std::size_t kBufferGrowth = 4;
constexpr std::size_t kScratchBytes = 4096;

}  // namespace

Connection::Connection(std::unique_ptr<Transport> transport, const ConnectionLimits& limits)
    : transport_(std::move(transport)),
      limits_(limits),
      watchdog_(std::make_shared<Watchdog>(transport_->executor(), limits.shortest_deadline)),
      capacity_(std::min(kFirstBufferBytes, limits.buffer_bytes)),
      buffer_(new char[capacity_]),
      read_done_(transport_->executor()) {}

void Connection::open() {
  auto self = shared_from_this();
  watchdog_->start(
      [self] {
        self->read_timed_out_ = true;
        self->transport_->cancel();
      },
      [self] { self->close(); });
}

Task<bool> Connection::handshake(Clock::time_point deadline) {
  watchdog_->read_deadline = deadline;
  const IoError error = co_await transport_->handshake();
  watchdog_->read_deadline = Watchdog::kNever;
  co_return !error;
}

net::mutable_buffer Connection::room() {
  if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if ((filled_ || end_ == capacity_) && capacity_ < limits_.buffer_bytes) {
    capacity_ = std::min(kBufferGrowth * capacity_, limits_.buffer_bytes);
    std::unique_ptr<char[]> larger(new char[capacity_]);
    std::memcpy(larger.get(), buffer_.get(), end_);
    buffer_ = std::move(larger);
  }
  filled_ = false;
  return {buffer_.get() + end_, capacity_ - end_};
}

Task<Connection::Fill> Connection::fill(Clock::time_point deadline) {
  if (closed_ || peer_closed_ || interrupted_) {
    co_return Fill::kClosed;
  }
  const std::size_t had = end_ - begin_;
  read_timed_out_ = false;
  watchdog_->read_deadline = deadline;
  if (reading_) {
    // A notification may be left over from a read that nobody waited for.
    while (reading_) {
      co_await read_done_.wait();
    }
  } else {
    on_read(co_await transport_->read_some(room()));
  }
  watchdog_->read_deadline = Watchdog::kNever;
  if (end_ - begin_ > had) {
    co_return Fill::kData;
  }
  co_return read_timed_out_ ? Fill::kTimedOut : Fill::kClosed;
}

void Connection::interrupt() {
  interrupted_ = true;
  transport_->cancel();
}

void Connection::watch(std::function<void()> on_closed) {
  on_closed_ = std::move(on_closed);
  if (peer_closed_ || closed_) {
    std::exchange(on_closed_, nullptr)();
    return;
  }
  if (!reading_) {
    start_watching();
  }
}

void Connection::start_watching() {
  reading_ = true;
  // A client further ahead than the buffer is still watched: it may leave.
  const bool drop = full() || overrun();
  if (drop && !overrun()) {
    scratch_ = std::make_unique<char[]>(kScratchBytes);
  }
  const net::mutable_buffer into = drop ? net::buffer(scratch_.get(), kScratchBytes) : room();
  transport_->start_read(into, [self = shared_from_this(), drop](const IoResult& result) {
    self->reading_ = false;
    if (drop) {
      self->on_dropped(result);
    } else {
      self->on_read(result);
    }
    self->read_done_.notify();
    if (self->on_closed_ && !self->peer_closed_ && !self->closed_) {
      self->start_watching();
    }
  });
}

void Connection::on_read(const IoResult& result) {
  end_ += result.bytes;
  filled_ = end_ == capacity_;
  if (result.error && result.error != net::error::operation_aborted) {
    peer_closed_ = true;
  }
  if ((peer_closed_ || closed_) && on_closed_) {
    std::exchange(on_closed_, nullptr)();
  }
}

void Connection::on_dropped(const IoResult& result) {
  dropped_ += result.bytes;
  if (dropped_ > kLingerBytes) {
    close();
  }
  on_read({result.error, 0});
}

Task<bool> Connection::write(std::span<const net::const_buffer> buffers) {
  std::array<net::const_buffer, 4> rest{};
  std::size_t count = 0;
  for (const net::const_buffer& buffer : buffers) {
    if (buffer.size() > 0 && count < rest.size()) {
      rest[count++] = buffer;
    }
  }
  std::size_t first = 0;
  while (first < count) {
    if (closed_) {
      co_return false;
    }
    watchdog_->write_deadline = Clock::now() + limits_.write_stall;
    IoResult result = co_await transport_->write_some({rest.data() + first, count - first});
    watchdog_->write_deadline = Watchdog::kNever;
    if (result.error) {
      close();
      co_return false;
    }
    while (first < count && result.bytes >= rest[first].size()) {
      result.bytes -= rest[first].size();
      ++first;
    }
    if (first < count) {
      rest[first] += result.bytes;
    }
  }
  co_return true;
}

Task<void> Connection::finish() {
  on_closed_ = nullptr;
  if (closed_) {
    co_return;
  }
  if (reading_) {
    transport_->cancel();  // TLS reads as well to say goodbye.
    while (reading_) {
      co_await read_done_.wait();
    }
  }
  watchdog_->write_deadline = Clock::now() + limits_.write_stall;
  co_await transport_->shutdown_send();
  watchdog_->write_deadline = Watchdog::kNever;
  const Clock::time_point deadline = Clock::now() + kLingerTimeout;
  std::size_t dropped = 0;
  interrupted_ = false;
  while (dropped < kLingerBytes && Clock::now() < deadline) {
    dropped += pending().size();
    consume(pending().size());
    const Fill more = co_await fill(deadline);
    if (more != Fill::kData) {
      break;
    }
  }
  close();
}

void Connection::close() noexcept {
  closed_ = true;
  transport_->close();
}

void Connection::release() { watchdog_->stop(); }

}  // namespace spel::server

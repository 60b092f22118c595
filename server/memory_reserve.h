// Memory set aside for when there is no other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

namespace spel::server {

/// Small blocks out of an array. Asio posts
/// and allocates in destructors and between a coroutine's suspension and its resumption, where a
/// failure cannot be told to anybody: it would end the process, or leave a connection that nobody
/// looks after. What such code asks for is small, so small requests are served from here when the
/// heap has nothing left; large ones fail and are answered with a 503.
///
/// Thread-safe. Lives as long as the process.
class MemoryReserve {
 public:
  /// `arena` is aligned as a std::max_align_t and outlives it.
  constexpr explicit MemoryReserve(std::span<std::byte> arena) : arena_(arena) {}

  /// Nullptr: larger than kLargest, or used up. Aligned for every fundamental type.
  [[nodiscard]] void* take(std::size_t bytes) noexcept;
  /// False: it is not from here.
  [[nodiscard]] bool give_back(void* block) noexcept;

  /// Bytes taken and not yet given back, as blocks.
  [[nodiscard]] std::size_t used() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return arena_.size(); }

  static constexpr std::size_t kLargest = std::size_t{64} << 10;

 private:
  struct Block;

  static constexpr std::size_t kSmallestShift = 6;  ///< 64 bytes, the header included.
  static constexpr std::size_t kClasses = 12;       ///< … doubled up to 128 KiB.

  const std::span<std::byte> arena_;
  mutable std::mutex mutex_;
  std::array<Block*, kClasses> free_{};
  std::size_t end_ = 0;  ///< What lies beyond has never been taken.
  std::size_t used_ = 0;
};

}  // namespace spel::server

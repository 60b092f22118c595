// operator new of the `spel` binary: small requests do not fail; see memory_reserve.h.
#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <new>
#include <string_view>

#include "server/last_words.h"
#include "server/memory_reserve.h"

namespace {

using spel::server::MemoryReserve;
using spel::server::say_last;

/// The system gives pages for it only where it is used.
constexpr std::size_t kReserveBytes = std::size_t{8} << 20;
/// For the heap to have something again, once the reserve is used up as well.
constexpr int kTries = 50;
constexpr std::timespec kPause{.tv_sec = 0, .tv_nsec = 20'000'000};

// What operator new works with cannot be handed to it.
alignas(std::max_align_t) std::array<std::byte, kReserveBytes> arena;
constinit MemoryReserve reserve{arena};
constinit std::atomic<std::int64_t> said_at{-1};

/// Built without allocating.
class Line {
 public:
  Line& operator<<(std::string_view text) noexcept {
    const std::size_t count = std::min(text.size(), bytes_.size() - size_);
    std::copy_n(text.begin(), count, bytes_.data() + size_);
    size_ += count;
    return *this;
  }
  Line& operator<<(std::size_t number) noexcept {
    std::array<char, 20> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    return *this << std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data()));
  }
  [[nodiscard]] std::string_view text() const noexcept { return {bytes_.data(), size_}; }

 private:
  std::array<char, 256> bytes_{};
  std::size_t size_ = 0;
};

/// Once a second is enough.
void say_short(std::size_t bytes) noexcept {
  std::timespec now{};
  (void)::clock_gettime(CLOCK_MONOTONIC, &now);
  if (said_at.exchange(now.tv_sec) != now.tv_sec) {
    Line line;
    line << "spel: out of memory: " << bytes << " bytes came from the reserve, of which "
         << reserve.used() / 1024 << " of " << kReserveBytes / 1024 << " KiB are used\n";
    say_last(line.text());
  }
}

[[noreturn]] void end_for_want_of(std::size_t bytes) noexcept {
  Line line;
  line << "spel: out of memory: there are no " << bytes
       << " bytes, and the reserve is used up; ending\n";
  say_last(line.text());
  std::_Exit(EXIT_FAILURE);
}

}  // namespace

void* operator new(std::size_t bytes) {
  if (void* memory = std::malloc(std::max<std::size_t>(bytes, 1))) [[likely]] {
    return memory;
  }
  if (bytes > MemoryReserve::kLargest) {
    throw std::bad_alloc();
  }
  for (int i = 0; i < kTries; ++i) {
    if (void* memory = reserve.take(bytes)) {
      say_short(bytes);
      return memory;
    }
    (void)::nanosleep(&kPause, nullptr);
    if (void* memory = std::malloc(bytes)) {
      return memory;
    }
  }
  end_for_want_of(bytes);
}

void operator delete(void* memory) noexcept {
  if (!reserve.give_back(memory)) [[likely]] {
    std::free(memory);
  }
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

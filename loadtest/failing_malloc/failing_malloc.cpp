// malloc, with failures on demand: preloaded into a server to see what it makes of them.
//
// The file named by FAILING_MALLOC_CONTROL is shared with whoever asks for failures; see Control.
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

// The real ones, which glibc exports under these names too: looking them up would allocate.
extern "C" {
void* __libc_malloc(std::size_t bytes);                     // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(std::size_t count, std::size_t bytes);  // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void* memory, std::size_t bytes);      // NOLINT(bugprone-reserved-identifier)
// NOLINTNEXTLINE(bugprone-reserved-identifier)
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
}

namespace {

/// Allocations number first … first + count - 1 since `calls` was set to 0 fail.
struct Control {
  std::atomic<std::uint64_t> calls;
  std::atomic<std::uint64_t> failed;
  std::atomic<std::uint64_t> first;  ///< From 1; 0: none fails, none is counted.
  std::atomic<std::uint64_t> count;
};

std::atomic<Control*> control{nullptr};

[[gnu::constructor]] void map_control() {
  const char* path = std::getenv("FAILING_MALLOC_CONTROL");
  const int file = path == nullptr ? -1 : ::open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) {
    return;
  }
  void* memory = ::mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (memory != MAP_FAILED) {
    control = static_cast<Control*>(memory);
  }
}

bool fails() {
  Control* asked = control.load(std::memory_order_relaxed);
  const std::uint64_t first = asked == nullptr ? 0 : asked->first.load(std::memory_order_relaxed);
  if (first == 0) {
    return false;
  }
  const std::uint64_t call = asked->calls.fetch_add(1) + 1;
  if (call < first || call - first >= asked->count.load(std::memory_order_relaxed)) {
    return false;
  }
  asked->failed.fetch_add(1);
  errno = ENOMEM;
  return true;
}

}  // namespace

extern "C" {

void* malloc(std::size_t bytes) { return fails() ? nullptr : __libc_malloc(bytes); }
void* calloc(std::size_t count, std::size_t bytes) {
  return fails() ? nullptr : __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  return fails() ? nullptr : __libc_realloc(memory, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  return fails() ? nullptr : __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  *memory = memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}

}  // extern "C"

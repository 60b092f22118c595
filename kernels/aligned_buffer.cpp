#include <cstdlib>
#include <cstring>
#include <new>

#include "kernels/matrix.h"
#ifdef __linux__
#include <sys/mman.h>
#endif

namespace spel::kernels {
namespace {

constexpr std::size_t kCacheLineBytes = 64;
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

}  // namespace

AlignedBuffer::AlignedBuffer(std::size_t bytes) {
  if (bytes == 0) {
    return;
  }
  // Weights are streamed: with 4 KiB pages a core spends much of its time in page walks.
  // From half a page on, rounding up to whole ones wastes little.
  const bool huge = bytes >= kHugePageBytes / 2;
  const std::size_t alignment = huge ? kHugePageBytes : kCacheLineBytes;
  if (bytes > SIZE_MAX - alignment) {
    throw std::bad_alloc();
  }
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  data_.reset(static_cast<std::byte*>(memory));
  size_ = bytes;
#ifdef __linux__
  // Advice only: without huge pages the buffer is as correct, just slower.
  if (huge) {
    (void)madvise(memory, rounded, MADV_HUGEPAGE);
  }
#endif
  std::memset(memory, 0, rounded);
}

void AlignedBuffer::Free::operator()(std::byte* p) const noexcept { std::free(p); }

}  // namespace spel::kernels

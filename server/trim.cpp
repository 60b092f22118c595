#include "server/trim.h"

#include <cstdlib>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace spel::server {

void give_large_blocks_back() noexcept {
#ifdef __GLIBC__
  constexpr int kBlockBytes = 1 << 20;
  (void)mallopt(M_MMAP_THRESHOLD, kBlockBytes);
#endif
}

TrimAfter::~TrimAfter() {
#ifdef __GLIBC__
  constexpr std::size_t kLargeBytes = std::size_t{256} * 1024;
  if (bytes_ >= kLargeBytes) {
    (void)malloc_trim(0);
  }
#endif
}

}  // namespace spel::server

// Memory that a large request has used goes back to the system.
#pragma once

#include <cstddef>

namespace spel::server {

/// Once, at start: a block of a megabyte or more goes back as soon as it is freed. The allocator
/// would learn from such blocks to keep up to 64 MiB in each of its arenas.
void give_large_blocks_back() noexcept;

/// At its end, if the request was large: freed memory goes back. The allocator would keep it for
/// the next large request, which may never come.
class TrimAfter {
 public:
  explicit TrimAfter(std::size_t bytes) : bytes_(bytes) {}
  TrimAfter(const TrimAfter&) = delete;
  TrimAfter& operator=(const TrimAfter&) = delete;
  ~TrimAfter();

 private:
  const std::size_t bytes_;
};

}  // namespace spel::server

// What the operating system says about this process.
#pragma once

#include <cstdint>

namespace spel::server {

struct ProcessStats {
  std::uint64_t resident_bytes = 0;
  std::uint64_t virtual_bytes = 0;
  double cpu_seconds = 0.0;
  double start_seconds = 0.0;  ///< Unix time.
  std::uint64_t open_fds = 0;
  std::uint64_t max_fds = 0;
  std::uint64_t threads = 0;
};

/// From /proc/self; zero for what cannot be read.
[[nodiscard]] ProcessStats read_process_stats();

}  // namespace spel::server

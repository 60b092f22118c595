#include "server/process_stats.h"

#include <dirent.h>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

namespace spel::server {
namespace {

/// The fields of /proc/self/stat after the command's closing parenthesis, numbered from 3 as in
/// proc(5): the command may hold spaces.
void read_stat(ProcessStats& stats) {
  std::ifstream file("/proc/self/stat");
  std::string line;
  if (!std::getline(file, line)) {
    return;
  }
  std::istringstream rest(line.substr(line.rfind(')') + 2));
  std::string field;
  std::uint64_t utime = 0;
  std::uint64_t stime = 0;
  std::uint64_t start = 0;
  std::uint64_t pages = 0;
  for (int number = 3; number <= 24 && rest >> field; ++number) {
    const auto value = [&] { return std::strtoull(field.c_str(), nullptr, 10); };
    switch (number) {
      case 14:
        utime = value();
        break;
      case 15:
        stime = value();
        break;
      case 20:
        stats.threads = value();
        break;
      case 22:
        start = value();
        break;
      case 23:
        stats.virtual_bytes = value();
        break;
      case 24:
        pages = value();
        break;
      default:
        break;
    }
  }
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  stats.cpu_seconds = static_cast<double>(utime + stime) / ticks;
  stats.resident_bytes = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  stats.start_seconds = static_cast<double>(start) / ticks;
}

double read_boot_time() {
  std::ifstream file("/proc/stat");
  for (std::string name; file >> name;) {
    double value = 0.0;
    if (name == "btime" && file >> value) {
      return value;
    }
    file.ignore(1 << 16, '\n');
  }
  return 0.0;
}

std::uint64_t count_fds() {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/proc/self/fd"), &closedir);
  if (directory == nullptr) {
    return 0;
  }
  std::uint64_t count = 0;
  while (readdir(directory.get()) != nullptr) {
    ++count;
  }
  return count > 3 ? count - 3 : 0;  // ".", ".." and the directory itself.
}

}  // namespace

ProcessStats read_process_stats() {
  ProcessStats stats;
  read_stat(stats);
  stats.start_seconds += read_boot_time();
  stats.open_fds = count_fds();
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    stats.max_fds = limit.rlim_cur;
  }
  return stats;
}

}  // namespace spel::server

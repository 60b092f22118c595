#include "server/thread_needs.h"

#include <fstream>
#include <sys/resource.h>

#include "server/constants.h"
#include "server/model_loader.h"
#include "server/note_service.h"

namespace spel::server {
namespace {

/// Main, signals, log, loader, engine, the reader of large bodies.
constexpr std::size_t kSingleThreads = 6;

std::string limit_text(rlim_t limit, rlim_t unit) {
  return limit == RLIM_INFINITY ? "unlimited" : std::to_string(limit / unit);
}

/// Of the control group this process sees itself in; "unknown" where it cannot be read.
std::string pids_limit() {
  std::ifstream groups("/proc/self/cgroup");
  std::string group;
  for (std::string line; std::getline(groups, line);) {
    if (line.rfind("0::", 0) == 0) {
      group = line.substr(3);
    }
  }
  for (const std::string& folder : {group, std::string()}) {
    std::ifstream file("/sys/fs/cgroup" + folder + "/pids.max");
    if (std::string limit; std::getline(file, limit)) {
      return limit == "max" ? "unlimited" : limit;
    }
  }
  return "unknown";
}

}  // namespace

std::size_t threads_wanted(const config::ServerConfig& config) {
  const std::size_t target = config.target_threads == 0 ? physical_cores() : config.target_threads;
  // The engine's thread is one of each model's.
  return kSingleThreads + kIoThreads + NoteService::kThreads + (target - 1) +
         (config.draft_threads - 1);
}

std::string thread_advice(const config::ServerConfig& config) {
  rlimit processes{};
  rlimit memory{};
  (void)getrlimit(RLIMIT_NPROC, &processes);
  (void)getrlimit(RLIMIT_AS, &memory);
  return "; threads in total = " + std::to_string(threads_wanted(config)) +
         "; limits: processes and threads of the user (ulimit -u) " +
         limit_text(processes.rlim_cur, 1) + ", pids of the container " + pids_limit() +
         ", address space in KiB (ulimit -v) " + limit_text(memory.rlim_cur, 1024) +
         "; raise the one that is short, or lower --target-threads and --draft-threads";
}

}  // namespace spel::server

#include "server/stop_signals.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <system_error>
#include <unistd.h>

#include "config/base/error.h"
#include "config/base/thread.h"
#include "server/last_words.h"

namespace spel::server {
namespace {

bool is_ignored(int signal) {
  struct sigaction action{};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

int checked(int descriptor) {
  if (descriptor < 0) {
    throw Error(ErrorCode::kIo,
                "cannot wait for signals: " + std::generic_category().message(errno));
  }
  return descriptor;
}

}  // namespace

StopSignals::StopSignals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGTERM);
  if (!is_ignored(SIGHUP)) {
    sigaddset(&signals_, SIGHUP);
  }
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  signal_fd_ = checked(::signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK));
  wake_fd_ = checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  thread_ = start_thread("the thread that waits for signals", [this] { run(); });
}

StopSignals::~StopSignals() {
  {
    const std::lock_guard lock(mutex_);
    finished_ = true;
  }
  (void)::eventfd_write(wake_fd_, 1);
  thread_.join();
  ::close(wake_fd_);
  ::close(signal_fd_);
}

int StopSignals::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stopped_; });
  return first_;
}

void StopSignals::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

bool StopSignals::hurried() {
  const std::lock_guard lock(mutex_);
  return hurried_;
}

void StopSignals::wait_hurried(Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, deadline, [this] { return hurried_; });
}

void StopSignals::end_within(std::chrono::milliseconds patience, int status) {
  {
    const std::lock_guard lock(mutex_);
    if (hurried_) {
      return;  // That end is nearer.
    }
    end_at_ = Clock::now() + patience;
    status_ = status;
  }
  (void)::eventfd_write(wake_fd_, 1);
}

int StopSignals::patience_ms() {
  const std::lock_guard lock(mutex_);
  if (end_at_ == Clock::time_point::max()) {
    return -1;
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_at_ - Clock::now()).count();
  return static_cast<int>(std::max<std::int64_t>(left, 0));
}

void StopSignals::run() {
  while (true) {
    std::array<pollfd, 2> sources{pollfd{.fd = signal_fd_, .events = POLLIN, .revents = 0},
                                  pollfd{.fd = wake_fd_, .events = POLLIN, .revents = 0}};
    const int ready = ::poll(sources.data(), sources.size(), patience_ms());
    if (ready == 0) {
      say_last("spel: something did not end in time: leaving it behind\n");
      std::_Exit(status_);
    }
    eventfd_t ignored = 0;
    (void)::eventfd_read(wake_fd_, &ignored);
    {
      const std::lock_guard lock(mutex_);
      if (finished_) {
        return;
      }
    }
    signalfd_siginfo info{};
    while (::read(signal_fd_, &info, sizeof(info)) == sizeof(info)) {
      on_signal(static_cast<int>(info.ssi_signo));
    }
  }
}

void StopSignals::on_signal(int number) {
  const std::lock_guard lock(mutex_);
  if (first_ == 0) {
    first_ = number;
    stopped_ = true;
  } else if (!hurried_) {
    hurried_ = true;
    end_at_ = std::min(end_at_, Clock::now() + kHurriedEnd);
    status_ = 128 + number;
  }
  changed_.notify_all();
}

}  // namespace spel::server

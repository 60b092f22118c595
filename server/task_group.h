// Everything that must end before the server may: the sessions.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "server/net.h"

namespace spel::server {

enum class StopKind {
  kDrain,  ///< Finish the request in progress, take no other.
  kNow,    ///< Close the connection.
};

/// Thread-safe.
class TaskGroup {
 public:
  class Member {
   public:
    virtual ~Member() = default;
    /// From any thread; returns at once.
    virtual void stop(StopKind kind) = 0;
  };

  void add(const std::shared_ptr<Member>& member) {
    const std::lock_guard lock(mutex_);
    members_.emplace(member.get(), member);
  }

  void remove(const Member* member) {
    const std::lock_guard lock(mutex_);
    members_.erase(member);
    if (members_.empty()) {
      empty_.notify_all();
    }
  }

  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return members_.size();
  }

  void stop_all(StopKind kind) {
    std::vector<std::shared_ptr<Member>> present;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [key, member] : members_) {
        if (auto alive = member.lock()) {
          present.push_back(std::move(alive));
        }
      }
    }
    for (const auto& member : present) {
      member->stop(kind);
    }
  }

  /// False: the deadline came first.
  [[nodiscard]] bool wait_empty(Clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    return empty_.wait_until(lock, deadline, [this] { return members_.empty(); });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable empty_;
  std::map<const Member*, std::weak_ptr<Member>> members_;
};

}  // namespace spel::server

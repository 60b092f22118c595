// Memory that requests hold because of what their clients sent, over all sessions.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace spel::server {

/// So much a request may hold uncharged: the number of connections bounds it.
inline constexpr std::size_t kSmallBodyBytes = 16 * 1024;

/// Thread-safe.
class BodyBudget {
 public:
  explicit BodyBudget(std::size_t bytes) : total_(bytes), left_(static_cast<std::int64_t>(bytes)) {}

  [[nodiscard]] bool take(std::size_t bytes) noexcept {
    const auto wanted = static_cast<std::int64_t>(bytes);
    if (left_.fetch_sub(wanted) >= wanted) {
      return true;
    }
    left_.fetch_add(wanted);
    return false;
  }
  void give_back(std::size_t bytes) noexcept { left_.fetch_add(static_cast<std::int64_t>(bytes)); }

  [[nodiscard]] std::size_t total() const noexcept { return total_; }
  [[nodiscard]] std::size_t left() const noexcept {
    const std::int64_t left = left_.load();
    return left > 0 ? static_cast<std::size_t>(left) : 0;
  }

 private:
  const std::size_t total_;
  std::atomic<std::int64_t> left_;
};

/// What one request has taken from a budget; gives it back when it ends.
class BodyCharge {
 public:
  BodyCharge() = default;
  explicit BodyCharge(BodyBudget& budget) : budget_(&budget) {}
  BodyCharge(BodyCharge&& other) noexcept
      : budget_(other.budget_), taken_(std::exchange(other.taken_, 0)) {}
  BodyCharge& operator=(BodyCharge&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(taken_, other.taken_);
    return *this;
  }
  ~BodyCharge() {
    if (taken_ > 0) {
      budget_->give_back(taken_);
    }
  }

  /// `bytes` are held from now on. False, with nothing changed: the budget has not that much left.
  [[nodiscard]] bool hold(std::size_t bytes) noexcept {
    const std::size_t wanted = bytes > kSmallBodyBytes ? bytes : 0;
    if (wanted > taken_ && !budget_->take(wanted - taken_)) {
      return false;
    }
    if (wanted < taken_) {
      budget_->give_back(taken_ - wanted);
    }
    taken_ = wanted;
    return true;
  }

 private:
  BodyBudget* budget_ = nullptr;  ///< Null: holds nothing.
  std::size_t taken_ = 0;
};

/// A request's body, charged until it is destroyed.
struct Body {
  std::string text;
  BodyCharge charge;
};

}  // namespace spel::server

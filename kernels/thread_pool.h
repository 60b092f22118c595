// A persistent pool that runs one row-parallel job at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>

namespace spel::kernels {

/// Runs `body(block)` for every block of [0, blocks) on the calling thread and its workers.
///
/// Work is only ever split by output rows, heads or sequences, never inside a reduction, so the
/// number of threads never changes a bit of the result. Workers are created once; between jobs they
/// spin for a bounded time and then sleep. Blocks are claimed dynamically, so a worker that the
/// operating system has put aside delays the job by at most the block it holds.
///
/// Thread-safety: one caller at a time; the pool is owned by the engine thread. `body` must not
/// throw and must not call back into the same pool.
class ThreadPool {
 public:
  /// How a worker comes to be; a test's may fail.
  using StartWorker = std::function<std::thread(std::function<void()>)>;

  /// `threads` counts the caller: 1 means no workers. `name` says whose they are ("the target's").
  /// Throws Error(kInvalidArgument) for 0, and ThreadError if one of them cannot be started: those
  /// that were have ended then.
  explicit ThreadPool(std::size_t threads, const std::string& name = "a",
                      const StartWorker& start = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] std::size_t threads() const noexcept;

  /// Working memory of the matrix products, kScratchBytes long and aligned to 64 bytes, so that
  /// they allocate nothing. Its contents do not outlive one product.
  static constexpr std::size_t kScratchBytes = std::size_t{1} << 20;
  [[nodiscard]] std::byte* scratch() noexcept;

  template <typename Body>
  void parallel_for(std::size_t blocks, Body&& body) {
    using B = std::remove_reference_t<Body>;
    run(
        blocks, [](void* context, std::size_t block) { (*static_cast<B*>(context))(block); },
        const_cast<void*>(static_cast<const void*>(std::addressof(body))));
  }

 private:
  using BlockFn = void (*)(void* context, std::size_t block);
  void run(std::size_t blocks, BlockFn fn, void* context);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace spel::kernels

#include "kernels/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "config/base/error.h"
#include "config/base/thread.h"
#include "kernels/matrix.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace spel::kernels {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

/// How long a waiting thread burns its core before it sleeps: longer than the serial work between
/// two products of a forward pass, far shorter than a scheduler's time slice.
constexpr auto kSpinTime = microseconds(50);
constexpr int kSpinsPerClockRead = 16;
/// A job held up this long after the caller ran out of blocks, and for longer than kStallBlocks
/// blocks take, met a worker that lost its core.
constexpr auto kStallTime = microseconds(200);
constexpr int kStallBlocks = 3;
/// After a stall the caller works alone for this many times the stall, so that stalls cost at most
/// 1/kSoloFactor of the time however often the worker is put aside.
constexpr int kSoloFactor = 32;
constexpr auto kSoloTimeMax = std::chrono::seconds(2);

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Spins until done() or the time is up; returns done().
template <class Done>
bool spin_until(Done done) {
  const auto deadline = Clock::now() + kSpinTime;
  do {
    for (int i = 0; i < kSpinsPerClockRead; ++i) {
      if (done()) {
        return true;
      }
      relax();
    }
  } while (Clock::now() < deadline);
  return done();
}

}  // namespace

// A job is open while `epoch` is odd. A worker announces itself in `active` before it looks at the
// epoch again; the caller closes the epoch before it looks at `active`. Both are sequentially
// consistent, so either the worker sees the job closed and leaves, or the caller sees the worker
// and waits. A sleeping worker is therefore never waited for, and `fn`, `context`, `blocks` are
// never written while a worker may read them.
struct ThreadPool::Impl {
  Impl(std::size_t threads, const std::string& name, const StartWorker& start)
      : scratch(kScratchBytes) {
    workers.reserve(threads - 1);
    try {
      for (std::size_t i = 1; i < threads; ++i) {
        const std::string what = "worker " + std::to_string(i) + " of " +
                                 std::to_string(threads - 1) + " of " + name + " thread pool";
        workers.push_back(start ? start([this] { work(); })
                                : start_thread(what, [this] { work(); }));
      }
    } catch (...) {
      end_workers();
      throw;
    }
  }

  ~Impl() { end_workers(); }

  void end_workers() {
    stopping.store(true);
    epoch.fetch_add(2);
    epoch.notify_all();
    for (std::thread& worker : workers) {
      worker.join();
    }
  }

  void work() {
    std::uint32_t seen = 0;
    for (;;) {
      // The epoch is read before `stopping`, which is set before the last change of the epoch: a
      // worker that misses the flag sleeps on an epoch that is already gone.
      const std::uint32_t now = epoch.load();
      if (stopping.load()) {
        return;
      }
      if (now % 2 == 0 || now == seen) {
        if (!spin_until([&] { return epoch.load() != now; })) {
          epoch.wait(now);
        }
        continue;
      }
      active.fetch_add(1);
      if (epoch.load() == now) {
        claim_blocks();
      }
      if (active.fetch_sub(1) == 1) {
        active.notify_one();
      }
      seen = now;
    }
  }

  /// Returns how many blocks this thread ran.
  std::size_t claim_blocks() {
    std::size_t ran = 0;
    for (std::size_t b = next.fetch_add(1); b < blocks; b = next.fetch_add(1), ++ran) {
      fn(context, b);
    }
    return ran;
  }

  void run(std::size_t job_blocks, BlockFn job_fn, void* job_context) {
    if (job_blocks <= 1 || workers.empty() || working_alone()) {
      for (std::size_t b = 0; b < job_blocks; ++b) {
        job_fn(job_context, b);
      }
      return;
    }
    fn = job_fn;
    context = job_context;
    blocks = job_blocks;
    next.store(0);
    const auto began = Clock::now();
    epoch.fetch_add(1);
    epoch.notify_all();
    const std::size_t ran = claim_blocks();
    epoch.fetch_add(1);
    if (active.load() != 0) {
      wait_for_workers(began, ran);
    }
  }

  /// The caller ran `ran` blocks since `began`.
  void wait_for_workers(Clock::time_point began, std::size_t ran) {
    const auto ran_out = Clock::now();
    if (!spin_until([&] { return active.load() == 0; })) {
      for (std::uint32_t n = active.load(); n != 0; n = active.load()) {
        active.wait(n);
      }
    }
    const auto stalled = Clock::now() - ran_out;
    const auto block_time = (ran_out - began) / static_cast<int>(std::max<std::size_t>(ran, 1));
    if (stalled < std::max<Clock::duration>(kStallTime, kStallBlocks * block_time)) {
      return;
    }
    const auto solo = std::min<Clock::duration>(stalled * kSoloFactor, kSoloTimeMax);
    solo_until = Clock::now() + solo;
    is_solo = true;
  }

  bool working_alone() {
    if (is_solo && Clock::now() >= solo_until) {
      is_solo = false;
    }
    return is_solo;
  }

  std::atomic<std::uint32_t> epoch{0};
  std::atomic<std::uint32_t> active{0};
  std::atomic<std::size_t> next{0};
  std::atomic<bool> stopping{false};
  BlockFn fn = nullptr;
  void* context = nullptr;
  std::size_t blocks = 0;
  // Of the caller alone.
  bool is_solo = false;
  Clock::time_point solo_until;
  AlignedBuffer scratch;
  std::vector<std::thread> workers;
};

ThreadPool::ThreadPool(std::size_t threads, const std::string& name, const StartWorker& start) {
  if (threads == 0) {
    throw Error(ErrorCode::kInvalidArgument, "a thread pool needs at least 1 thread, found 0");
  }
  impl_ = std::make_unique<Impl>(threads, name, start);
}

ThreadPool::~ThreadPool() = default;

std::size_t ThreadPool::threads() const noexcept { return impl_->workers.size() + 1; }

std::byte* ThreadPool::scratch() noexcept { return impl_->scratch.data(); }

void ThreadPool::run(std::size_t blocks, BlockFn fn, void* context) {
  impl_->run(blocks, fn, context);
}

}  // namespace spel::kernels

#include "kernels/thread_pool.h"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "config/base/error.h"
#include "config/base/thread.h"

namespace spel::kernels {
namespace {

TEST(ThreadPool, RunsEveryBlockOnce) {
  for (std::size_t threads = 1; threads <= 4; ++threads) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const std::size_t blocks : {0U, 1U, 2U, 7U, 100U}) {
      std::vector<int> runs(blocks);
      pool.parallel_for(blocks, [&](std::size_t b) { ++runs[b]; });
      for (const int n : runs) {
        EXPECT_EQ(n, 1);
      }
    }
  }
}

TEST(ThreadPool, ResultsOfOneJobAreSeenByTheNext) {
  ThreadPool pool(3);
  std::vector<std::size_t> values(64);
  for (int round = 0; round < 2000; ++round) {
    // Each block reads what another block, perhaps on another thread, wrote in the round before.
    std::vector<std::size_t> next(values.size());
    pool.parallel_for(values.size(),
                      [&](std::size_t b) { next[b] = values[(b + 17) % values.size()] + 1; });
    values = next;
  }
  for (const std::size_t v : values) {
    EXPECT_EQ(v, 2000U);
  }
}

TEST(ThreadPool, WorksAgainAfterItsWorkersFellAsleep) {
  ThreadPool pool(4);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    std::atomic<std::size_t> sum{0};
    pool.parallel_for(10, [&](std::size_t b) { sum += b; });
    EXPECT_EQ(sum, 45U);
  }
}

TEST(ThreadPool, AWorkerHoldingABlockIsWaitedFor) {
  ThreadPool pool(2);
  for (int round = 0; round < 3; ++round) {
    std::atomic<int> done{0};
    pool.parallel_for(2, [&](std::size_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      ++done;
    });
    EXPECT_EQ(done, 2);
  }
}

TEST(ThreadPool, EndsWhileItsWorkersSpinOrSleep) {
  for (int round = 0; round < 200; ++round) {
    ThreadPool pool(3);
    std::atomic<int> runs{0};
    pool.parallel_for(static_cast<std::size_t>(round % 4), [&](std::size_t) { ++runs; });
    EXPECT_EQ(runs, round % 4);
    if (round % 50 == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

TEST(ThreadPool, AWorkerThatCannotBeStartedEndsThoseBeforeIt) {
  for (std::size_t good = 0; good < 3; ++good) {
    std::size_t asked = 0;
    std::atomic<std::size_t> ended{0};
    const auto start = [&](std::function<void()> work) {
      if (asked++ == good) {
        throw ThreadError("a worker", "none is left");
      }
      return std::thread([&ended, work = std::move(work)] {
        work();
        ++ended;
      });
    };
    EXPECT_THROW(ThreadPool(4, "a", start), ThreadError);
    EXPECT_EQ(asked, good + 1);
    EXPECT_EQ(ended, good);
  }
}

TEST(ThreadPool, NoThreadsIsRefused) {
  try {
    ThreadPool pool(0);
    FAIL() << "a pool of no threads was made";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace spel::kernels

// A disk under SQLite that fails on demand and remembers what it was told, to be cut off anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace spel::memory::testing {

enum class DiskOp { kOpen, kRead, kWrite, kTruncate, kSync, kDelete };
inline constexpr DiskOp kAllDiskOps[] = {DiskOp::kOpen,     DiskOp::kRead, DiskOp::kWrite,
                                         DiskOp::kTruncate, DiskOp::kSync, DiskOp::kDelete};
[[nodiscard]] const char* disk_op_name(DiskOp op);

/// One thing that happened to a file.
struct DiskEvent {
  DiskOp op = DiskOp::kWrite;  ///< kWrite, kTruncate, kSync or kDelete.
  std::string file;            ///< Its name, without the directory.
  std::uint64_t offset = 0;    ///< Of a write; the new size of a truncation.
  std::string bytes;           ///< Of a write.
};

/// While it lives, every database that is opened without naming a disk is on this one. The files
/// are real; flushes never reach the device: what would have survived is decided by the trace.
/// Thread-safe.
class FaultVfs {
 public:
  FaultVfs();
  ~FaultVfs();
  FaultVfs(const FaultVfs&) = delete;
  FaultVfs& operator=(const FaultVfs&) = delete;

  static constexpr std::size_t kForEver = ~std::size_t{0};
  /// The `nth` operation of this kind from now (1: the next) and the `count` - 1 after it fail with
  /// an SQLite result code. A write that fails leaves half of its bytes, as disks do.
  void fail(DiskOp op, std::size_t nth, std::size_t count, int code);
  /// Nothing fails any more.
  void heal();
  /// Operations that failed since fail().
  [[nodiscard]] std::size_t failures() const;

  [[nodiscard]] std::vector<DiskEvent> trace() const;
  [[nodiscard]] std::size_t events() const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

/// What happens at a power failure to what was written and not flushed.
enum class Unsynced {
  kDropped,   ///< Nothing of it arrives.
  kLastTorn,  ///< All arrives but for a part of the last write.
  kRandom,    ///< Each write arrives, does not, or does in some of its sectors.
};

/// Puts into `directory` what a disk would hold had the power failed after the first `cut` events.
void restore_after_power_failure(const std::vector<DiskEvent>& trace, std::size_t cut,
                                 Unsynced unsynced, std::mt19937& random,
                                 const std::filesystem::path& directory);

}  // namespace spel::memory::testing

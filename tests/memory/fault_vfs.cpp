#include "fault_vfs.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <sqlite3.h>
#include <string_view>
#include <utility>

namespace spel::memory::testing {

const char* disk_op_name(DiskOp op) {
  switch (op) {
    case DiskOp::kOpen:
      return "open";
    case DiskOp::kRead:
      return "read";
    case DiskOp::kWrite:
      return "write";
    case DiskOp::kTruncate:
      return "truncate";
    case DiskOp::kSync:
      return "sync";
    case DiskOp::kDelete:
      break;
  }
  return "delete";
}

struct FaultVfs::Impl : sqlite3_vfs {
  sqlite3_vfs* real = nullptr;
  mutable std::mutex mutex;
  std::optional<DiskOp> failing;
  std::size_t first = 0;
  std::size_t count = 0;
  std::size_t seen = 0;
  std::size_t failures = 0;
  int code = SQLITE_IOERR;
  std::vector<DiskEvent> trace;

  /// SQLITE_OK, or what this operation is to fail with.
  int arrive(DiskOp op) {
    const std::lock_guard lock(mutex);
    if (failing != op) {
      return SQLITE_OK;
    }
    ++seen;
    if (seen < first || seen - first >= count) {
      return SQLITE_OK;
    }
    ++failures;
    return code;
  }

  void record(DiskOp op, const std::string& file, std::uint64_t offset, std::string bytes) {
    const std::lock_guard lock(mutex);
    trace.push_back({op, file, offset, std::move(bytes)});
  }
};

namespace {

using Impl = FaultVfs::Impl;

/// What SQLite holds of a file; the real one's memory follows it.
struct File : sqlite3_file {
  Impl* disk;
  std::string* name;
};

std::string base_name(const char* path) {
  return path == nullptr ? "" : std::filesystem::path(path).filename().string();
}

File& file_of(sqlite3_file* file) { return *static_cast<File*>(file); }
sqlite3_file* real_of(sqlite3_file* file) {
  return reinterpret_cast<sqlite3_file*>(reinterpret_cast<std::byte*>(file) + sizeof(File));
}

int close_file(sqlite3_file* file) {
  delete file_of(file).name;
  return real_of(file)->pMethods->xClose(real_of(file));
}

int read_file(sqlite3_file* file, void* into, int bytes, sqlite3_int64 offset) {
  const int code = file_of(file).disk->arrive(DiskOp::kRead);
  return code != SQLITE_OK ? code
                           : real_of(file)->pMethods->xRead(real_of(file), into, bytes, offset);
}

int write_file(sqlite3_file* file, const void* from, int bytes, sqlite3_int64 offset) {
  File& self = file_of(file);
  const int code = self.disk->arrive(DiskOp::kWrite);
  const int written = code != SQLITE_OK ? bytes / 2 : bytes;
  if (written > 0) {
    self.disk->record(DiskOp::kWrite, *self.name, static_cast<std::uint64_t>(offset),
                      {static_cast<const char*>(from), static_cast<std::size_t>(written)});
  }
  const int result = real_of(file)->pMethods->xWrite(real_of(file), from, written, offset);
  return code != SQLITE_OK ? code : result;
}

int truncate_file(sqlite3_file* file, sqlite3_int64 size) {
  File& self = file_of(file);
  if (const int code = self.disk->arrive(DiskOp::kTruncate); code != SQLITE_OK) {
    return code;
  }
  self.disk->record(DiskOp::kTruncate, *self.name, static_cast<std::uint64_t>(size), {});
  return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

int sync_file(sqlite3_file* file, int /*flags*/) {
  File& self = file_of(file);
  if (const int code = self.disk->arrive(DiskOp::kSync); code != SQLITE_OK) {
    return code;
  }
  self.disk->record(DiskOp::kSync, *self.name, 0, {});
  return SQLITE_OK;
}

int file_size(sqlite3_file* file, sqlite3_int64* size) {
  return real_of(file)->pMethods->xFileSize(real_of(file), size);
}
int lock_file(sqlite3_file* file, int level) {
  return real_of(file)->pMethods->xLock(real_of(file), level);
}
int unlock_file(sqlite3_file* file, int level) {
  return real_of(file)->pMethods->xUnlock(real_of(file), level);
}
int check_reserved_lock(sqlite3_file* file, int* out) {
  return real_of(file)->pMethods->xCheckReservedLock(real_of(file), out);
}
int file_control(sqlite3_file* file, int op, void* argument) {
  return real_of(file)->pMethods->xFileControl(real_of(file), op, argument);
}
int sector_size(sqlite3_file* file) { return real_of(file)->pMethods->xSectorSize(real_of(file)); }
int device_characteristics(sqlite3_file* file) {
  return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}
int shm_map(sqlite3_file* file, int page, int size, int extend, void volatile** out) {
  return real_of(file)->pMethods->xShmMap(real_of(file), page, size, extend, out);
}
int shm_lock(sqlite3_file* file, int offset, int count, int flags) {
  return real_of(file)->pMethods->xShmLock(real_of(file), offset, count, flags);
}
void shm_barrier(sqlite3_file* file) { real_of(file)->pMethods->xShmBarrier(real_of(file)); }
int shm_unmap(sqlite3_file* file, int remove) {
  return real_of(file)->pMethods->xShmUnmap(real_of(file), remove);
}

// Version 2: with a shared-memory index, without memory-mapped reads, which could not fail.
constexpr sqlite3_io_methods kMethods{2,
                                      &close_file,
                                      &read_file,
                                      &write_file,
                                      &truncate_file,
                                      &sync_file,
                                      &file_size,
                                      &lock_file,
                                      &unlock_file,
                                      &check_reserved_lock,
                                      &file_control,
                                      &sector_size,
                                      &device_characteristics,
                                      &shm_map,
                                      &shm_lock,
                                      &shm_barrier,
                                      &shm_unmap,
                                      nullptr,
                                      nullptr};

int open_file(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags, int* out_flags) {
  auto* disk = static_cast<Impl*>(vfs);
  file->pMethods = nullptr;
  if (const int code = disk->arrive(DiskOp::kOpen); code != SQLITE_OK) {
    return code;
  }
  const int result = disk->real->xOpen(disk->real, path, real_of(file), flags, out_flags);
  if (result != SQLITE_OK) {
    return result;
  }
  file_of(file).disk = disk;
  file_of(file).name = new std::string(base_name(path));
  file->pMethods = &kMethods;
  return SQLITE_OK;
}

int delete_file(sqlite3_vfs* vfs, const char* path, int sync_directory) {
  auto* disk = static_cast<Impl*>(vfs);
  if (const int code = disk->arrive(DiskOp::kDelete); code != SQLITE_OK) {
    return code;
  }
  disk->record(DiskOp::kDelete, base_name(path), 0, {});
  return disk->real->xDelete(disk->real, path, sync_directory);
}

}  // namespace

FaultVfs::FaultVfs() : impl_(std::make_unique<Impl>()) {
  sqlite3_vfs* real = sqlite3_vfs_find(nullptr);
  // Everything but opening and deleting is the real one's, which finds its own data in the copy.
  static_cast<sqlite3_vfs&>(*impl_) = *real;
  impl_->real = real;
  impl_->zName = "spel-fault";
  impl_->szOsFile = static_cast<int>(sizeof(File)) + real->szOsFile;
  impl_->xOpen = &open_file;
  impl_->xDelete = &delete_file;
  sqlite3_vfs_register(impl_.get(), 1);
}

FaultVfs::~FaultVfs() { sqlite3_vfs_unregister(impl_.get()); }

void FaultVfs::fail(DiskOp op, std::size_t nth, std::size_t count, int code) {
  const std::lock_guard lock(impl_->mutex);
  impl_->failing = op;
  impl_->first = nth;
  impl_->count = count;
  impl_->code = code;
  impl_->seen = 0;
  impl_->failures = 0;
}

void FaultVfs::heal() {
  const std::lock_guard lock(impl_->mutex);
  impl_->failing.reset();
}

std::size_t FaultVfs::failures() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->failures;
}

std::vector<DiskEvent> FaultVfs::trace() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->trace;
}

std::size_t FaultVfs::events() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->trace.size();
}

// --- Power failures ------------------------------------------------------------------------------

namespace {

constexpr std::size_t kSector = 512;

/// A file as the disk has it, and what is still on its way there.
struct DiskFile {
  std::string durable;
  std::vector<const DiskEvent*> pending;
};

void apply(const DiskEvent& event, std::string& content) {
  if (event.op == DiskOp::kTruncate) {
    content.resize(event.offset);
    return;
  }
  content.resize(std::max<std::size_t>(content.size(), event.offset + event.bytes.size()));
  content.replace(event.offset, event.bytes.size(), event.bytes);
}

/// Only some sectors of a write; of a truncation all.
void apply_torn(const DiskEvent& event, std::mt19937& random, std::string& content) {
  if (event.op == DiskOp::kTruncate) {
    apply(event, content);
    return;
  }
  for (std::size_t at = 0; at < event.bytes.size(); at += kSector) {
    if (random() % 2 == 0) {
      apply({DiskOp::kWrite, event.file, event.offset + at, event.bytes.substr(at, kSector)},
            content);
    }
  }
}

std::string survivors(const DiskFile& file, Unsynced unsynced, std::mt19937& random) {
  std::string content = file.durable;
  for (std::size_t i = 0; i < file.pending.size(); ++i) {
    const DiskEvent& event = *file.pending[i];
    const bool last = i + 1 == file.pending.size();
    enum class Fate : std::uint8_t { kLost, kTorn, kWhole };
    Fate fate = Fate::kLost;
    if (unsynced == Unsynced::kLastTorn) {
      fate = last ? Fate::kTorn : Fate::kWhole;
    } else if (unsynced == Unsynced::kRandom) {
      fate = static_cast<Fate>(random() % 3);
    }
    if (fate == Fate::kTorn) {
      apply_torn(event, random, content);
    } else if (fate == Fate::kWhole) {
      apply(event, content);
    }
  }
  return content;
}

}  // namespace

void restore_after_power_failure(const std::vector<DiskEvent>& trace, std::size_t cut,
                                 Unsynced unsynced, std::mt19937& random,
                                 const std::filesystem::path& directory) {
  std::map<std::string, DiskFile> files;
  // Deleted, but not yet for good: any later flush commits the directory too.
  std::map<std::string, DiskFile> deleted;
  for (std::size_t i = 0; i < cut; ++i) {
    const DiskEvent& event = trace[i];
    if (event.op == DiskOp::kDelete) {
      if (auto node = files.extract(event.file)) {
        deleted.insert_or_assign(event.file, std::move(node.mapped()));
      }
      continue;
    }
    DiskFile& file = files[event.file];
    if (event.op == DiskOp::kSync) {
      for (const DiskEvent* pending : file.pending) {
        apply(*pending, file.durable);
      }
      file.pending.clear();
      deleted.clear();
    } else {
      file.pending.push_back(&event);
    }
  }
  for (auto& [name, file] : deleted) {
    if (!files.contains(name) && random() % 2 == 0) {
      files.emplace(name, std::move(file));
    }
  }
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  for (const auto& [name, file] : files) {
    const std::string content = survivors(file, unsynced, random);
    if (content.empty() && random() % 2 == 0) {
      continue;  // Its name may not have arrived either.
    }
    std::FILE* out = std::fopen((directory / name).c_str(), "w");
    std::fwrite(content.data(), 1, content.size(), out);
    std::fclose(out);
  }
}

}  // namespace spel::memory::testing

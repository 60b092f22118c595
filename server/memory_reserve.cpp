#include "server/memory_reserve.h"

#include <new>

namespace spel::server {

/// Before the memory that is handed out, whose alignment it keeps.
struct alignas(alignof(std::max_align_t)) MemoryReserve::Block {
  std::size_t size_class;
  Block* next;  ///< While it is free.
};

void* MemoryReserve::take(std::size_t bytes) noexcept {
  if (bytes > kLargest) {
    return nullptr;
  }
  std::size_t wanted = 0;
  while ((std::size_t{1} << (kSmallestShift + wanted)) < bytes + sizeof(Block)) {
    ++wanted;
  }
  const std::lock_guard lock(mutex_);
  Block* block = nullptr;
  const std::size_t size = std::size_t{1} << (kSmallestShift + wanted);
  if (free_[wanted] == nullptr && end_ + size <= arena_.size()) {
    block = ::new (arena_.data() + end_) Block{wanted, nullptr};
    end_ += size;
  }
  // One that is too large is better than none.
  for (std::size_t each = wanted; block == nullptr && each < kClasses; ++each) {
    if (free_[each] != nullptr) {
      block = free_[each];
      free_[each] = block->next;
    }
  }
  if (block == nullptr) {
    return nullptr;
  }
  used_ += std::size_t{1} << (kSmallestShift + block->size_class);
  return block + 1;
}

bool MemoryReserve::give_back(void* memory) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const auto begin = reinterpret_cast<std::uintptr_t>(arena_.data());
  if (address < begin || address >= begin + arena_.size()) {
    return false;
  }
  Block* block = static_cast<Block*>(memory) - 1;
  const std::lock_guard lock(mutex_);
  used_ -= std::size_t{1} << (kSmallestShift + block->size_class);
  block->next = free_[block->size_class];
  free_[block->size_class] = block;
  return true;
}

std::size_t MemoryReserve::used() const noexcept {
  const std::lock_guard lock(mutex_);
  return used_;
}

}  // namespace spel::server

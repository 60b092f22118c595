#include "engine/arch/tensor_files.h"

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

#include "config/base/error.h"
#include "config/base/limits.h"
#include "config/json/file_values.h"
#include "engine/arch/directory_names.h"
#include "engine/files/sha256.h"

namespace spel::engine {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorCode::kCorrupt, why); }

/// The shard names of an index and, for each tensor, which it should be in.
struct Index {
  std::set<std::string> shards;
  std::vector<std::pair<std::string, std::string>> tensors;
};

Index read_index(const std::filesystem::path& path) {
  const MappedFile file(path);
  const std::string source = path.string();
  const JsonObject json = read_file_object(
      file.text(), source,
      {.bytes = SafetensorsView::kHeaderBytesMax,
       .members = SafetensorsView::kTensorsMax,
       .parts = 4 * SafetensorsView::kTensorsMax});  // A name and a file each, and a little.
  const std::string where = source + ": weight_map";
  if (!json.contains("weight_map")) {
    refuse(where + " is missing; expected an object of tensor names and the files they are in");
  }
  const JsonValue map = file_member(json, "weight_map", source);
  Index index;
  for (const JsonValue::Member& member : members_of(map, where)) {
    const std::string& shard = text_of(member.value, where + "." + shown_text(member.key));
    if (shard.empty() || shard.front() == '.' || shard.find_first_of("/\\") != std::string::npos) {
      refuse_value(member.value, where + "." + shown_text(member.key),
                   "the name of a file in the same directory");
    }
    index.shards.insert(shard);
    index.tensors.emplace_back(member.key, shard);
  }
  if (index.shards.empty() || index.shards.size() > limits::kShardsMax) {
    refuse(where + " names " + std::to_string(index.shards.size()) + " files; expected 1 to " +
           std::to_string(limits::kShardsMax));
  }
  return index;
}

}  // namespace

TensorFiles::TensorFiles(const std::filesystem::path& directory) {
  std::error_code ignored;
  const std::filesystem::path index_path = directory / kShardIndexName;
  if (std::filesystem::status(index_path, ignored).type() ==
      std::filesystem::file_type::not_found) {
    open(directory / kTargetName);
    return;
  }
  const Index index = read_index(index_path);
  for (const std::string& shard : index.shards) {
    open(directory / shard);
  }
  std::set<std::string_view> seen;
  for (const SafetensorsView& view : views_) {
    for (const TensorView& tensor : view.tensors()) {
      if (!seen.insert(tensor.name).second) {
        refuse(view.source() + ": tensor " + tensor.name + " is in another shard too");
      }
    }
  }
  for (const auto& [name, shard] : index.tensors) {
    const auto at =
        static_cast<std::size_t>(std::distance(index.shards.begin(), index.shards.find(shard)));
    if (views_[at].find(name) == nullptr) {
      refuse(views_[at].source() + ": tensor " + name + " is missing; " + kShardIndexName +
             " says that it is here");
    }
  }
}

void TensorFiles::open(const std::filesystem::path& file) {
  mapped_.emplace_back(file);
  views_.emplace_back(mapped_.back().bytes(), file.string());
}

const TensorView* TensorFiles::find(std::string_view name) const {
  for (const SafetensorsView& view : views_) {
    if (const TensorView* found = view.find(name)) {
      return found;
    }
  }
  return nullptr;
}

std::optional<std::span<const std::uint64_t>> TensorFiles::shape(std::string_view name) const {
  const TensorView* found = find(name);
  return found != nullptr ? std::optional(std::span(found->shape)) : std::nullopt;
}

bool TensorFiles::any_begins(std::string_view prefix) const {
  return std::ranges::any_of(views_, [&](const SafetensorsView& view) {
    return std::ranges::any_of(
        view.tensors(), [&](const TensorView& tensor) { return tensor.name.starts_with(prefix); });
  });
}

std::uint64_t TensorFiles::bytes() const noexcept {
  std::uint64_t total = 0;
  for (const MappedFile& file : mapped_) {
    total += file.bytes().size();
  }
  return total;
}

std::string TensorFiles::digests() const {
  std::string all;
  for (const MappedFile& file : mapped_) {
    all += sha256_hex(file.bytes());
  }
  return all;
}

}  // namespace spel::engine

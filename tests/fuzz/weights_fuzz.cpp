// Model files are read from anywhere: whatever the bytes, the loader returns or throws Error.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "config/base/error.h"
#include "engine/arch/spel_hybrid_json.h"
#include "engine/document/load_model.h"
#include "engine/document/model_directory.h"
#include "engine/document/spelw.h"
#include "engine/files/safetensors.h"
#include "tests/fuzz/weights_fuzz_kind.h"

namespace spel::engine {
namespace {

/// What is accepted must also be loadable.
void load(const ModelSource& source) { (void)build_weights(source, WeightsDtype::kBf16); }

/// Takes a 16-bit size and that many bytes, or all that is left, from the front.
std::span<const std::byte> take(std::span<const std::byte>& bytes) {
  std::size_t size = 0;
  if (bytes.size() >= 2) {
    size = std::to_integer<std::size_t>(bytes[0]) | std::to_integer<std::size_t>(bytes[1]) << 8;
    bytes = bytes.subspan(2);
  }
  const std::span<const std::byte> front = bytes.first(std::min(size, bytes.size()));
  bytes = bytes.subspan(front.size());
  return front;
}

void read(WeightsFuzzKind kind, std::span<const std::byte> bytes) {
  switch (kind) {
    case WeightsFuzzKind::kSpelw:
      load(*parse_spelw(bytes, "fuzz"));
      break;
    case WeightsFuzzKind::kContainer: {
      const SafetensorsView view(bytes, "fuzz");
      break;
    }
    case WeightsFuzzKind::kDirectory: {
      ModelDirectoryBytes files;
      files.config = take(bytes);
      files.target = take(bytes);
      files.draft = bytes;
      load(*parse_model_directory(files));
      break;
    }
    case WeightsFuzzKind::kConfig:
    case WeightsFuzzKind::kCount:
      (void)parse_config_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "fuzz");
      break;
  }
}

}  // namespace
}  // namespace spel::engine

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using spel::engine::WeightsFuzzKind;
  if (size == 0) {
    return 0;
  }
  const auto kind =
      static_cast<WeightsFuzzKind>(data[0] % static_cast<std::uint8_t>(WeightsFuzzKind::kCount));
  try {
    spel::engine::read(kind, std::as_bytes(std::span(data + 1, size - 1)));
  } catch (const spel::Error&) {
    return 0;
  }
  return 0;
}

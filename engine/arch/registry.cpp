// The list of architectures, and how a directory finds its own.
#include <string>

#include "config/base/error.h"
#include "config/json/reader.h"
#include "engine/arch/architecture.h"
#include "engine/files/mapped_file.h"

namespace spel::engine {
namespace {

/// Far above any published configuration.
constexpr std::size_t kConfigBytesMax = std::size_t{1} << 20;
constexpr const char* kConfigName = "config.json";

}  // namespace

std::span<const Architecture> architectures() {
  // One line for each file of engine/arch that describes one.
  return {};
}

JsonValue read_config(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / kConfigName;
  const MappedFile file(path);
  const std::span<const std::byte> bytes = file.bytes();
  try {
    return read_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                     {.bytes = kConfigBytesMax});
  } catch (const JsonError& error) {
    throw Error(ErrorCode::kCorrupt, path.string() + ": " + error.what());
  }
}

const Architecture* architecture_of(const std::filesystem::path& path,
                                    std::span<const Architecture> known) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) {
    return nullptr;
  }
  const JsonValue config = read_config(path);
  const JsonValue* model_type = config.find("model_type");
  for (const Architecture& architecture : known) {
    if (model_type != nullptr && model_type->is_string() &&
        model_type->text() == architecture.model_type) {
      return &architecture;
    }
  }
  return nullptr;
}

}  // namespace spel::engine

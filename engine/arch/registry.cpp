// The list of architectures, and how a directory finds its own.
#include <array>
#include <string>

#include "config/base/error.h"
#include "config/json/file_values.h"
#include "engine/arch/architecture.h"
#include "engine/arch/directory_names.h"
#include "engine/arch/hybrids.h"
#include "engine/arch/spel_hybrid_json.h"
#include "engine/files/mapped_file.h"

namespace spel::engine {
namespace {

TensorLayout document_tensors(const ModelSpec& spec, const TensorNames& /*names*/) {
  return spel_hybrid_tensors(spec);
}

// One line for each name that a file of engine/arch answers to.
constexpr std::array kArchitectures = {
    Architecture{kSpelHybrid, &spel_hybrid_spec_of, &document_tensors},
    Architecture{"qwen3_5", &qwen35_spec, &qwen35_tensors},
    Architecture{"qwen3_5_text", &qwen35_spec, &qwen35_tensors},
    Architecture{"qwen3_next", &qwen3_next_spec, &qwen3_next_tensors},
    Architecture{"olmo_hybrid", &olmo_hybrid_spec, &olmo_hybrid_tensors},
};

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

const Architecture& architecture_of(const std::filesystem::path& path,
                                    std::span<const Architecture> known) {
  const MappedFile file(path / kConfigName);
  const std::string source = (path / kConfigName).string();
  const JsonObject config = read_file_object(file.text(), source, {.bytes = kConfigJsonBytesMax});
  if (!config.contains("model_type")) {
    throw Error(ErrorCode::kCorrupt, source + ": model_type is missing");
  }
  const std::string where = source + ": model_type";
  const JsonValue model_type = file_member(config, "model_type", source);
  std::string names;
  for (const Architecture& architecture : known) {
    if (text_of(model_type, where) == architecture.model_type) {
      return architecture;
    }
    names += (names.empty() ? "" : ", ") + std::string(architecture.model_type);
  }
  refuse_value(model_type, where, "one this build reads: " + names);
}

}  // namespace spel::engine

#include <map>
#include <utility>

#include "engine/model/config_json.h"
#include "engine/model/directory_names.h"
#include "engine/model/golden.h"
#include "engine/model/model_directory.h"
#include "engine/model/output_file.h"
#include "engine/model/safetensors.h"
#include "engine/model/sha256.h"
#include "engine/model/sha256_sums.h"
#include "engine/model/tensor_values.h"

namespace spel::engine {
namespace {

/// A file of the directory being written, hashed on the way.
class HashedFile {
 public:
  HashedFile(const std::filesystem::path& directory, const char* name)
      : name_(name), file_(directory / name) {}

  void write(std::span<const std::byte> bytes) {
    file_.write(bytes);
    hash_.update(bytes);
  }
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

  FileDigest commit() {
    file_.commit();
    return {name_, hash_.finish_hex()};
  }

 private:
  std::string name_;
  OutputFile file_;
  Sha256 hash_;
};

std::vector<std::uint64_t> shape_of(const TensorSpec& tensor) {
  return tensor.is_vector() ? std::vector<std::uint64_t>{tensor.rows}
                            : std::vector<std::uint64_t>{tensor.rows, tensor.cols};
}

/// Returns whether every tensor could be stored as BF16.
bool write_target(const ModelSource& source, const std::vector<TensorSpec>& tensors,
                  HashedFile& file) {
  // The header comes first, so the types are found out in a pass of their own.
  std::vector<TensorHeader> headers;
  std::vector<float> values;
  bool all_bf16 = true;
  for (const TensorSpec& tensor : tensors) {
    values.resize(tensor.values());
    source.read(tensor, values);
    const bool exact = is_bf16_exact(values);
    all_bf16 = all_bf16 && exact;
    headers.push_back({tensor.name, exact ? DType::kBf16 : DType::kF32, shape_of(tensor)});
  }
  file.write(safetensors_header(headers, source.config().name));
  std::vector<std::byte> bf16;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    values.resize(tensors[i].values());
    source.read(tensors[i], values);
    if (headers[i].dtype == DType::kF32) {
      file.write(std::as_bytes(std::span<const float>(values)));
    } else {
      bf16.resize(values.size() * dtype_bytes(DType::kBf16));
      to_bf16(values, bf16);
      file.write(bf16);
    }
  }
  return all_bf16;
}

void write_draft(const ModelSource& source, const std::vector<TensorSpec>& tensors,
                 HashedFile& file) {
  std::vector<TensorHeader> headers;
  for (const TensorSpec& tensor : tensors) {
    if (tensor.role == TensorRole::kProjection) {
      headers.push_back({int8_name(tensor), DType::kI8, {tensor.rows, tensor.cols}});
      headers.push_back({scale_name(tensor), DType::kF32, {tensor.rows}});
    } else if (tensor.role == TensorRole::kMlp) {
      headers.push_back({ternary_name(tensor), DType::kU8, {tensor.rows, tensor.cols / 4}});
      headers.push_back({scale_name(tensor), DType::kF32, {tensor.rows}});
    } else {
      headers.push_back({tensor.name, DType::kF32, shape_of(tensor)});
    }
  }
  file.write(safetensors_header(headers, source.config().name + "-draft"));
  for (const TensorSpec& tensor : tensors) {
    if (tensor.role == TensorRole::kProjection) {
      const Int8Rows rows = source.read_int8(tensor);
      file.write(std::as_bytes(std::span(rows.values)));
      file.write(std::as_bytes(std::span(rows.scales)));
    } else if (tensor.role == TensorRole::kMlp) {
      const TernaryRows rows = source.read_ternary(tensor);
      file.write(std::as_bytes(std::span(rows.packed)));
      file.write(std::as_bytes(std::span(rows.scales)));
    } else {
      const std::vector<float> values = source.read_values(tensor);
      file.write(std::as_bytes(std::span(values)));
    }
  }
}

void write_golden(const GoldenLogits& golden, const ModelConfig& config, HashedFile& file) {
  require_golden_shape(golden, config);
  const std::vector<std::uint64_t> logits_shape = {kGoldenTokens, config.vocab_size};
  file.write(safetensors_header({{"tokens", DType::kI32, {kGoldenTokens}},
                                 {"target_logits", DType::kF32, logits_shape},
                                 {"draft_logits", DType::kF32, logits_shape}},
                                config.name + "-golden"));
  file.write(std::as_bytes(std::span(golden.tokens)));
  file.write(std::as_bytes(std::span(golden.target_logits)));
  file.write(std::as_bytes(std::span(golden.draft_logits)));
}

}  // namespace

void write_model_directory(const ModelSource& source, const std::optional<GoldenLogits>& golden,
                           const std::filesystem::path& path) {
  OutputDirectory directory(path);
  std::vector<TensorSpec> target;
  std::vector<TensorSpec> draft;
  for (TensorSpec& tensor : tensor_layout(source.config()).in_file_order()) {
    (tensor.in_draft ? draft : target).push_back(std::move(tensor));
  }
  HashedFile target_file(directory.path(), kTargetName);
  const bool all_bf16 = write_target(source, target, target_file);
  HashedFile draft_file(directory.path(), kDraftName);
  write_draft(source, draft, draft_file);
  HashedFile config_file(directory.path(), kConfigName);
  config_file.write(write_config_json(source.config(), all_bf16 ? "bf16" : "f32"));
  std::vector<FileDigest> sums = {config_file.commit(), target_file.commit(), draft_file.commit()};
  if (const std::optional<GoldenLogits>& logits = golden ? golden : source.golden()) {
    HashedFile golden_file(directory.path(), kGoldenName);
    write_golden(*logits, source.config(), golden_file);
    sums.push_back(golden_file.commit());
  }
  OutputFile sums_file(directory.path() / kSumsName);
  sums_file.write(sums_text(sums));
  sums_file.commit();
  directory.commit();
}

}  // namespace spel::engine

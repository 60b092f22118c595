#include "engine/document/model_directory.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <system_error>
#include <utility>

#include "config/base/error.h"
#include "engine/arch/directory_names.h"
#include "engine/arch/spel_hybrid_json.h"
#include "engine/arch/tensor_taker.h"
#include "engine/document/golden.h"
#include "engine/files/mapped_file.h"
#include "engine/files/safetensors.h"
#include "engine/files/sha256.h"
#include "engine/files/sha256_sums.h"
#include "engine/files/tensor_values.h"

namespace spel::engine {
namespace {

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void check_scales(const TensorView& scales, const std::string& source) {
  std::vector<float> values(scales.data.size() / sizeof(float));
  to_float(scales.data, DType::kF32, values);
  for (std::size_t row = 0; row < values.size(); ++row) {
    if (std::signbit(values[row])) {
      throw Error(ErrorCode::kCorrupt, source + ": tensor " + scales.name + " is " +
                                           std::to_string(values[row]) + " at row " +
                                           std::to_string(row) + "; expected no negative scale");
    }
  }
}

void check_draft_tensor(const TensorSpec& tensor, TensorTaker& taker, const std::string& source) {
  if (tensor.role == TensorRole::kProjection) {
    const TensorView& codes =
        taker.take(int8_name(tensor), {DType::kI8}, {tensor.rows, tensor.cols});
    const auto at = std::find(codes.data.begin(), codes.data.end(), std::byte{0x80});
    if (at != codes.data.end()) {
      throw Error(ErrorCode::kCorrupt, source + ": tensor " + codes.name + " holds -128 at value " +
                                           std::to_string(at - codes.data.begin()) +
                                           "; expected -127 to 127");
    }
  } else if (tensor.role == TensorRole::kMlp) {
    taker.take(ternary_name(tensor), {DType::kU8}, {tensor.rows, tensor.cols / 4});
  } else {
    taker.take(tensor.name, {DType::kF32}, shape_of(tensor));
    return;
  }
  check_scales(taker.take(scale_name(tensor), {DType::kF32}, {tensor.rows}), source);
}

void check_draft(const TensorLayout& layout, const SafetensorsView& file) {
  TensorTaker taker(file);
  for (const TensorSpec& tensor : layout.in_file_order()) {
    if (tensor.in_draft) {
      check_draft_tensor(tensor, taker, file.source());
    }
  }
  taker.refuse_others();
}

std::vector<float> floats_of(const TensorView& tensor) {
  std::vector<float> values(tensor.data.size() / sizeof(float));
  to_float(tensor.data, DType::kF32, values);
  return values;
}

GoldenLogits read_golden(const SafetensorsView& file, const ModelConfig& config) {
  TensorTaker taker(file);
  const std::vector<std::uint64_t> logits_shape = {kGoldenTokens, config.vocab_size};
  GoldenLogits golden;
  const TensorView& tokens = taker.take("tokens", {DType::kI32}, {kGoldenTokens});
  golden.tokens.resize(kGoldenTokens);
  std::memcpy(golden.tokens.data(), tokens.data.data(), tokens.data.size());
  require_golden_tokens(golden.tokens, config, file.source());
  golden.target_logits = floats_of(taker.take("target_logits", {DType::kF32}, logits_shape));
  golden.draft_logits = floats_of(taker.take("draft_logits", {DType::kF32}, logits_shape));
  taker.refuse_others();
  return golden;
}

class DirectorySource final : public ModelSource {
 public:
  explicit DirectorySource(const ModelDirectoryBytes& files, std::vector<MappedFile> mapped = {})
      : mapped_(std::move(mapped)),
        file_bytes_(files.config.size() + files.target.size() + files.draft.size()),
        config_text_(as_text(files.config)),
        config_(parse_config_json(config_text_, files.prefix + kConfigName)),
        target_(files.target, files.prefix + kTargetName),
        draft_(files.draft, files.prefix + kDraftName) {
    const TensorLayout layout = tensor_layout(config_);
    check_target(layout, std::span(&target_, 1));
    check_draft(layout, draft_);
    if (files.golden) {
      golden_ = read_golden(SafetensorsView(*files.golden, files.prefix + kGoldenName), config_);
    }
    // Last, so that a file cut short is reported by its sizes rather than by its digest.
    sha256_ = identity(files);
  }

  [[nodiscard]] const ModelConfig& config() const override { return config_; }
  [[nodiscard]] const std::optional<GoldenLogits>& golden() const override { return golden_; }
  [[nodiscard]] const std::string& sha256() const override { return sha256_; }
  [[nodiscard]] std::uint64_t file_bytes() const override { return file_bytes_; }
  [[nodiscard]] std::optional<DirectoryTexts> texts() const override {
    return DirectoryTexts{std::string(config_text_), std::string(target_.header()),
                          std::string(draft_.header())};
  }

  void read(const TensorSpec& tensor, std::span<float> out) const override {
    if (!tensor.in_draft) {
      const TensorView& view = *target_.find(tensor.name);
      to_float(view.data, view.dtype, out);
    } else if (tensor.role == TensorRole::kProjection) {
      std::ranges::copy(dequantize_int8(read_int8(tensor), tensor.cols), out.begin());
    } else if (tensor.role == TensorRole::kMlp) {
      std::ranges::copy(dequantize_ternary(read_ternary(tensor), tensor.cols), out.begin());
    } else {
      to_float(draft_.find(tensor.name)->data, DType::kF32, out);
    }
  }

  [[nodiscard]] Int8Rows read_int8(const TensorSpec& tensor) const override {
    const std::span<const std::byte> codes = draft_.find(int8_name(tensor))->data;
    Int8Rows rows;
    rows.values.resize(codes.size());
    std::memcpy(rows.values.data(), codes.data(), codes.size());
    rows.scales = floats_of(*draft_.find(scale_name(tensor)));
    return rows;
  }

  [[nodiscard]] TernaryRows read_ternary(const TensorSpec& tensor) const override {
    const std::span<const std::byte> codes = draft_.find(ternary_name(tensor))->data;
    TernaryRows rows;
    rows.packed.resize(codes.size());
    std::memcpy(rows.packed.data(), codes.data(), codes.size());
    rows.scales = floats_of(*draft_.find(scale_name(tensor)));
    return rows;
  }

 private:
  /// The identity covers exactly what decides an output: configuration, target and draft.
  static std::string identity(const ModelDirectoryBytes& files) {
    const FileDigest config = {kConfigName, sha256_hex(files.config)};
    const FileDigest target = {kTargetName, sha256_hex(files.target)};
    const FileDigest draft = {kDraftName, sha256_hex(files.draft)};
    if (files.sums) {
      std::vector<FileDigest> read = {config, target, draft};
      if (files.golden) {
        read.push_back({kGoldenName, sha256_hex(*files.golden)});
      }
      require_sums(as_text(*files.sums), read, files.prefix);
    }
    return identity_of(config, target, draft);
  }

  std::vector<MappedFile> mapped_;  ///< What the views below point into.
  std::uint64_t file_bytes_;
  std::string_view config_text_;
  ModelConfig config_;
  SafetensorsView target_;
  SafetensorsView draft_;
  std::optional<GoldenLogits> golden_;
  std::string sha256_;
};

}  // namespace

std::unique_ptr<ModelSource> parse_model_directory(const ModelDirectoryBytes& files) {
  return std::make_unique<DirectorySource>(files);
}

std::unique_ptr<ModelSource> open_model_directory(const std::filesystem::path& path) {
  using std::filesystem::file_type;
  std::vector<MappedFile> mapped;
  const auto map = [&](const char* name) { return mapped.emplace_back(path / name).bytes(); };
  ModelDirectoryBytes files;
  files.prefix = (path / "").string();
  files.config = map(kConfigName);
  files.target = map(kTargetName);
  files.draft = map(kDraftName);
  // An optional file that is there but cannot be read is an error, not an absence.
  std::error_code ignored;
  if (std::filesystem::status(path / kGoldenName, ignored).type() != file_type::not_found) {
    files.golden = map(kGoldenName);
  }
  if (std::filesystem::status(path / kSumsName, ignored).type() != file_type::not_found) {
    files.sums = map(kSumsName);
  }
  return std::make_unique<DirectorySource>(files, std::move(mapped));
}

}  // namespace spel::engine

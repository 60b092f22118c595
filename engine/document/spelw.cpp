#include "engine/document/spelw.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "config/base/checked.h"
#include "config/base/error.h"
#include "engine/arch/directory_names.h"
#include "engine/arch/spel_hybrid_json.h"
#include "engine/document/directory_files.h"
#include "engine/document/golden.h"
#include "engine/document/spelw_header.h"
#include "engine/files/mapped_file.h"
#include "engine/files/output_file.h"
#include "engine/files/safetensors.h"
#include "engine/files/sha256.h"
#include "engine/files/tensor_values.h"

namespace spel::engine {
namespace {

std::uint64_t footer_bytes(const ModelConfig& config) {
  const std::uint64_t logits = std::uint64_t{kGoldenTokens} * config.vocab_size;
  return kSpelwFooterMagic.size() + sizeof(std::uint32_t) + kGoldenTokens * sizeof(TokenId) +
         2 * logits * sizeof(float);
}

/// Takes bytes from the front of a footer whose size has been checked.
class FooterReader {
 public:
  FooterReader(std::span<const std::byte> bytes, const std::string& source)
      : bytes_(bytes), source_(source) {}

  std::span<const std::byte> take(std::size_t size) {
    const std::span<const std::byte> front = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return front;
  }

  std::vector<float> take_logits(std::size_t count, const char* name) {
    const std::span<const std::byte> data = take(count * sizeof(float));
    require_finite(data, DType::kF32, source_, name);
    std::vector<float> logits(count);
    to_float(data, DType::kF32, logits);
    return logits;
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& source_;
};

GoldenLogits read_footer(std::span<const std::byte> bytes, const ModelConfig& config,
                         const std::string& source) {
  FooterReader reader(bytes, source);
  const std::span<const std::byte> magic = reader.take(kSpelwFooterMagic.size());
  if (std::memcmp(magic.data(), kSpelwFooterMagic.data(), magic.size()) != 0) {
    throw Error(ErrorCode::kCorrupt,
                source + ": the footer does not begin with " + std::string(kSpelwFooterMagic));
  }
  std::uint32_t count = 0;
  std::memcpy(&count, reader.take(sizeof(count)).data(), sizeof(count));
  if (count != kGoldenTokens) {
    throw Error(ErrorCode::kCorrupt, source + ": the footer has " + std::to_string(count) +
                                         " golden tokens; expected " +
                                         std::to_string(kGoldenTokens));
  }
  GoldenLogits golden;
  golden.tokens.resize(kGoldenTokens);
  const std::span<const std::byte> tokens = reader.take(kGoldenTokens * sizeof(TokenId));
  std::memcpy(golden.tokens.data(), tokens.data(), tokens.size());
  require_golden_tokens(golden.tokens, config, source);
  const std::size_t logits = kGoldenTokens * std::size_t{config.vocab_size};
  golden.target_logits = reader.take_logits(logits, "golden target logits");
  golden.draft_logits = reader.take_logits(logits, "golden draft logits");
  return golden;
}

constexpr std::size_t kDirectoryTexts = 3;
constexpr std::size_t kDirectoryFrontBytes =
    kSpelwDirectoryMagic.size() + kDirectoryTexts * sizeof(std::uint32_t);

/// What follows the tensors and the footer: magic, three lengths, three texts, and no more.
DirectoryTexts read_texts(std::span<const std::byte> bytes, const std::string& source) {
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorCode::kCorrupt, source + ": the directory's texts " + why);
  };
  if (bytes.size() < kDirectoryFrontBytes ||
      std::memcmp(bytes.data(), kSpelwDirectoryMagic.data(), kSpelwDirectoryMagic.size()) != 0) {
    fail("do not begin with " + std::string(kSpelwDirectoryMagic));
  }
  std::array<std::uint32_t, kDirectoryTexts> sizes{};
  std::memcpy(sizes.data(), bytes.data() + kSpelwDirectoryMagic.size(), sizeof(sizes));
  std::uint64_t expected = kDirectoryFrontBytes;
  for (const std::uint32_t size : sizes) {
    if (size > SafetensorsView::kHeaderBytesMax) {
      fail("hold one of " + std::to_string(size) + " bytes; at most " +
           std::to_string(SafetensorsView::kHeaderBytesMax) + " are read");
    }
    expected += size;
  }
  if (expected != bytes.size()) {
    fail("should take " + std::to_string(expected) + " bytes, found " +
         std::to_string(bytes.size()));
  }
  const char* at = reinterpret_cast<const char*>(bytes.data()) + kDirectoryFrontBytes;
  const auto take = [&at](std::uint32_t size) {
    std::string text(at, size);
    at += size;
    return text;
  };
  DirectoryTexts texts;
  texts.config = take(sizes[0]);
  texts.target_header = take(sizes[1]);
  texts.draft_header = take(sizes[2]);
  return texts;
}

/// The config.json of the texts, which must be that of the header but for the name.
ModelConfig config_of(const DirectoryTexts& texts, const ModelConfig& header,
                      const std::string& source) {
  ModelConfig config = parse_config_json(texts.config, source + ": " + kConfigName);
  ModelConfig same = header;
  same.name = config.name;
  if (write_config_json(config, {}) != write_config_json(same, {})) {
    throw Error(ErrorCode::kCorrupt,
                source + ": the " + kConfigName + " it keeps is of another shape than its header");
  }
  return config;
}

class SpelwSource final : public ModelSource {
 public:
  SpelwSource(std::span<const std::byte> bytes, const std::string& source, MappedFile mapped = {})
      : mapped_(std::move(mapped)), file_bytes_(bytes.size()) {
    const SpelwHeader header = parse_spelw_header(bytes, source);
    config_ = header.config;
    const std::uint64_t expected = spelw_file_bytes(config_, header.has_footer);
    if (header.has_directory ? expected > bytes.size() : expected != bytes.size()) {
      throw Error(ErrorCode::kCorrupt,
                  source + ": the header describes a file of " + std::to_string(expected) +
                      " bytes, found " + std::to_string(bytes.size()) +
                      (bytes.size() < expected ? ": the file is cut short; fetch it again"
                                               : ": bytes follow the last tensor"));
    }
    std::span<const std::byte> rest = bytes.subspan(kSpelwHeaderBytes);
    for (const TensorSpec& tensor : tensor_layout(config_).in_file_order()) {
      const std::span<const std::byte> data = rest.first(tensor.values() * sizeof(float));
      require_finite(data, DType::kF32, source, describe(tensor));
      (tensor.in_draft ? draft_ : target_).emplace(tensor.name, data);
      rest = rest.subspan(data.size());
    }
    if (header.has_footer) {
      golden_ = read_footer(rest, config_, source);
      rest = rest.subspan(static_cast<std::size_t>(footer_bytes(config_)));
    }
    if (!header.has_directory) {
      sha256_ = sha256_hex(bytes);
      return;
    }
    texts_ = read_texts(rest, source);
    config_ = config_of(*texts_, config_, source);
    try {
      sha256_ = directory_identity(*this, *texts_);
    } catch (const Error& error) {
      throw Error(error.code(), source + ": " + error.what());
    }
  }

  [[nodiscard]] const ModelConfig& config() const override { return config_; }
  [[nodiscard]] const std::optional<GoldenLogits>& golden() const override { return golden_; }
  [[nodiscard]] const std::string& sha256() const override { return sha256_; }
  [[nodiscard]] std::uint64_t file_bytes() const override { return file_bytes_; }
  [[nodiscard]] std::optional<DirectoryTexts> texts() const override { return texts_; }

  void read(const TensorSpec& tensor, std::span<float> out) const override {
    to_float((tensor.in_draft ? draft_ : target_).at(tensor.name), DType::kF32, out);
  }

 private:
  using Tensors = std::map<std::string, std::span<const std::byte>>;

  MappedFile mapped_;
  std::uint64_t file_bytes_;
  ModelConfig config_;
  Tensors target_;
  Tensors draft_;
  std::optional<GoldenLogits> golden_;
  std::optional<DirectoryTexts> texts_;
  std::string sha256_;
};

/// The latents of a draft matrix, if the document's quantisers give exactly the packed rows back.
void require_same_rows(const ModelSource& source, const TensorSpec& tensor,
                       std::span<const float> latents) {
  bool same = true;
  if (tensor.role == TensorRole::kProjection) {
    const Int8Rows rows = source.read_int8(tensor);
    const Int8Rows again = quantize_int8(latents, tensor.rows, tensor.cols);
    same = rows.values == again.values && rows.scales == again.scales;
  } else {
    const TernaryRows rows = source.read_ternary(tensor);
    const TernaryRows again = quantize_ternary(latents, tensor.rows, tensor.cols);
    same = rows.packed == again.packed && rows.scales == again.scales;
  }
  if (!same) {
    throw Error(ErrorCode::kInvalidArgument,
                describe(tensor) +
                    ": its rows were not made by the quantisers SPELW001 prescribes, so the file "
                    "would hold another draft; keep the model directory form");
  }
}

void write_footer(const GoldenLogits& golden, const ModelConfig& config, OutputFile& file) {
  require_golden_shape(golden, config);
  const auto count = static_cast<std::uint32_t>(kGoldenTokens);
  file.write(kSpelwFooterMagic);
  file.write(std::as_bytes(std::span(&count, 1)));
  file.write(std::as_bytes(std::span(golden.tokens)));
  file.write(golden.target_logits);
  file.write(golden.draft_logits);
}

void write_texts(const DirectoryTexts& texts, OutputFile& file) {
  const std::array<const std::string*, kDirectoryTexts> all = {&texts.config, &texts.target_header,
                                                               &texts.draft_header};
  file.write(kSpelwDirectoryMagic);
  for (const std::string* text : all) {
    const auto size = static_cast<std::uint32_t>(text->size());
    file.write(std::as_bytes(std::span(&size, 1)));
  }
  for (const std::string* text : all) {
    file.write(*text);
  }
}

}  // namespace

std::uint64_t spelw_file_bytes(const ModelConfig& config, bool with_golden) {
  const std::uint64_t parameters =
      checked_add(config.target_parameters(), config.draft_parameters(), "parameters");
  const std::uint64_t bytes = checked_add(
      std::uint64_t{kSpelwHeaderBytes},
      checked_mul(parameters, std::uint64_t{sizeof(float)}, "tensor bytes"), "file bytes");
  return with_golden ? checked_add(bytes, footer_bytes(config), "file bytes") : bytes;
}

std::unique_ptr<ModelSource> open_spelw(const std::filesystem::path& path) {
  MappedFile file(path);
  const std::span<const std::byte> bytes = file.bytes();
  return std::make_unique<SpelwSource>(bytes, path.string(), std::move(file));
}

std::unique_ptr<ModelSource> parse_spelw(std::span<const std::byte> bytes,
                                         const std::string& source_name) {
  return std::make_unique<SpelwSource>(bytes, source_name);
}

void write_spelw(const ModelSource& source, const std::optional<GoldenLogits>& golden,
                 const std::filesystem::path& path, SpelwTexts keep, Existing existing) {
  const std::optional<GoldenLogits>& footer = golden ? golden : source.golden();
  const std::optional<DirectoryTexts> texts =
      keep == SpelwTexts::kKeep ? source.texts() : std::nullopt;
  const auto header = write_spelw_header(source.config(), footer.has_value(), texts.has_value());
  OutputFile file(path, existing);
  file.write(header);
  for (const TensorSpec& tensor : tensor_layout(source.config()).in_file_order()) {
    const std::vector<float> values = source.read_values(tensor);
    if (tensor.in_draft &&
        (tensor.role == TensorRole::kProjection || tensor.role == TensorRole::kMlp)) {
      require_same_rows(source, tensor, values);
    }
    file.write(values);
  }
  if (footer) {
    write_footer(*footer, source.config(), file);
  }
  if (texts) {
    write_texts(*texts, file);
  }
  file.commit();
}

}  // namespace spel::engine

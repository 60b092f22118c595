#include "engine/arch/directory_names.h"
#include "engine/document/directory_files.h"
#include "engine/document/golden.h"
#include "engine/document/model_directory.h"
#include "engine/files/output_file.h"
#include "engine/files/safetensors.h"
#include "engine/files/sha256.h"
#include "engine/files/sha256_sums.h"
#include "engine/text/tokenizer_json.h"

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
  [[nodiscard]] ByteSink sink() {
    return [this](std::span<const std::byte> bytes) { write(bytes); };
  }

  FileDigest commit() {
    file_.commit();
    return {name_, hash_.finish_hex()};
  }

 private:
  std::string name_;
  OutputFile file_;
  Sha256 hash_;
};

FileDigest write_text(const std::filesystem::path& directory, const char* name,
                      const std::string& text) {
  HashedFile file(directory, name);
  file.write(text);
  return file.commit();
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
  const DirectoryTexts texts = directory_texts(source);
  HashedFile target_file(directory.path(), kTargetName);
  write_target_file(source, texts.target_header, target_file.sink());
  HashedFile draft_file(directory.path(), kDraftName);
  write_draft_file(source, texts.draft_header, draft_file.sink());
  HashedFile config_file(directory.path(), kConfigName);
  config_file.write(texts.config);
  std::vector<FileDigest> sums = {config_file.commit(), target_file.commit(), draft_file.commit()};
  if (const std::optional<GoldenLogits>& logits = golden ? golden : source.golden()) {
    HashedFile golden_file(directory.path(), kGoldenName);
    write_golden(*logits, source.config(), golden_file);
    sums.push_back(golden_file.commit());
  }
  if (source.config().tokenizer == "ascii") {
    sums.push_back(write_text(directory.path(), kTokenizerName, ascii_tokenizer_json()));
    sums.push_back(write_text(directory.path(), kTokenizerConfigName,
                              ascii_tokenizer_config_json(source.config().max_seq)));
  }
  OutputFile sums_file(directory.path() / kSumsName);
  sums_file.write(sums_text(sums));
  sums_file.commit();
  directory.commit();
}

}  // namespace spel::engine

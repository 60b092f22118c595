#include "engine/document/directory_files.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "config/base/error.h"
#include "engine/arch/directory_names.h"
#include "engine/arch/spel_hybrid_json.h"
#include "engine/arch/tensor_taker.h"
#include "engine/files/safetensors.h"
#include "engine/files/sha256.h"
#include "engine/files/sha256_sums.h"
#include "engine/files/tensor_values.h"

namespace spel::engine {
namespace {

std::vector<TensorSpec> tensors_of(const ModelConfig& config, bool in_draft) {
  std::vector<TensorSpec> tensors;
  for (TensorSpec& tensor : tensor_layout(config).in_file_order()) {
    if (tensor.in_draft == in_draft) {
      tensors.push_back(std::move(tensor));
    }
  }
  return tensors;
}

template <typename Value>
std::span<const std::byte> bytes_of(const std::vector<Value>& values) {
  return std::as_bytes(std::span(values));
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

[[noreturn]] void refuse(const char* file, const std::string& tensor, const std::string& why) {
  throw Error(ErrorCode::kCorrupt, std::string(file) + ": tensor " + tensor + " " + why);
}

/// A tensor of a file, and where its bytes come from.
struct Entry {
  const TensorSpec* tensor;
  TensorHeader header;
  bool is_scale = false;  ///< The row scales of a quantised matrix.
};

/// The tensors of `header` as it orders them, each of which must be one of `known`, and all there.
std::vector<Entry> in_header_order(const std::vector<Entry>& known, const std::string& header,
                                   const char* file) {
  std::map<std::string_view, const Entry*> by_name;
  for (const Entry& entry : known) {
    by_name.emplace(entry.header.name, &entry);
  }
  std::vector<Entry> ordered;
  for (TensorHeader& found : tensors_in_header(header, file)) {
    const auto at = by_name.find(found.name);
    if (at == by_name.end()) {
      refuse(file, found.name, "is listed twice or does not belong to a model of this shape");
    }
    Entry entry = *at->second;
    by_name.erase(at);
    if (found.shape != entry.header.shape) {
      refuse(file, found.name, "has another shape than the model's");
    }
    entry.header.dtype = found.dtype;
    ordered.push_back(std::move(entry));
  }
  if (!by_name.empty()) {
    refuse(file, std::string(by_name.begin()->first), "is missing");
  }
  return ordered;
}

std::vector<Entry> target_entries(const std::vector<TensorSpec>& tensors) {
  std::vector<Entry> entries;
  entries.reserve(tensors.size());
  for (const TensorSpec& tensor : tensors) {
    entries.push_back({&tensor, {tensor.name, DType::kF32, shape_of(tensor)}});
  }
  return entries;
}

std::vector<Entry> draft_entries(const std::vector<TensorSpec>& tensors) {
  std::vector<Entry> entries;
  for (const TensorSpec& tensor : tensors) {
    if (tensor.role == TensorRole::kProjection) {
      entries.push_back({&tensor, {int8_name(tensor), DType::kI8, {tensor.rows, tensor.cols}}});
    } else if (tensor.role == TensorRole::kMlp) {
      entries.push_back(
          {&tensor, {ternary_name(tensor), DType::kU8, {tensor.rows, tensor.cols / 4}}});
    } else {
      entries.push_back({&tensor, {tensor.name, DType::kF32, shape_of(tensor)}});
      continue;
    }
    entries.push_back({&tensor, {scale_name(tensor), DType::kF32, {tensor.rows}}, true});
  }
  return entries;
}

std::string header_of(const std::vector<Entry>& entries, const std::string& model_name) {
  std::vector<TensorHeader> headers;
  headers.reserve(entries.size());
  for (const Entry& entry : entries) {
    headers.push_back(entry.header);
  }
  return safetensors_json(headers, model_name);
}

void write_front(const std::string& header, const ByteSink& sink) {
  sink(bytes_of(safetensors_length(header)));
  sink(bytes_of(std::string_view(header)));
}

/// A quantised matrix of the draft: its codes and its scales are two tensors of the file.
class QuantisedRows {
 public:
  explicit QuantisedRows(const ModelSource& source) : source_(source) {}

  void write(const Entry& entry, const ByteSink& sink) {
    const bool int8 = entry.tensor->role == TensorRole::kProjection;
    if (current_ != entry.tensor) {
      current_ = entry.tensor;
      if (int8) {
        int8_ = source_.read_int8(*current_);
      } else {
        ternary_ = source_.read_ternary(*current_);
      }
    }
    if (entry.is_scale) {
      sink(bytes_of(int8 ? int8_.scales : ternary_.scales));
    } else {
      sink(int8 ? bytes_of(int8_.values) : bytes_of(ternary_.packed));
    }
  }

 private:
  const ModelSource& source_;
  const TensorSpec* current_ = nullptr;
  Int8Rows int8_;
  TernaryRows ternary_;
};

std::string digest_of(const std::function<void(const ByteSink&)>& write) {
  Sha256 hash;
  write([&hash](std::span<const std::byte> bytes) { hash.update(bytes); });
  return hash.finish_hex();
}

}  // namespace

DirectoryTexts directory_texts(const ModelSource& source) {
  if (std::optional<DirectoryTexts> own = source.texts()) {
    return *std::move(own);
  }
  const ModelConfig& config = source.config();
  const std::vector<TensorSpec> target = tensors_of(config, false);
  const std::vector<TensorSpec> draft = tensors_of(config, true);
  std::vector<Entry> entries = target_entries(target);
  bool all_bf16 = true;
  for (Entry& entry : entries) {
    const bool exact = is_bf16_exact(source.read_values(*entry.tensor));
    entry.header.dtype = exact ? DType::kBf16 : DType::kF32;
    all_bf16 = all_bf16 && exact;
  }
  return {write_config_json(config, all_bf16 ? "bf16" : "f32"), header_of(entries, config.name),
          header_of(draft_entries(draft), config.name + "-draft")};
}

void write_target_file(const ModelSource& source, const std::string& header, const ByteSink& sink) {
  const std::vector<TensorSpec> tensors = tensors_of(source.config(), false);
  write_front(header, sink);
  std::vector<std::byte> bf16;
  for (const Entry& entry : in_header_order(target_entries(tensors), header, kTargetName)) {
    const std::vector<float> values = source.read_values(*entry.tensor);
    if (entry.header.dtype == DType::kF32) {
      sink(bytes_of(values));
      continue;
    }
    if (entry.header.dtype != DType::kBf16 || !is_bf16_exact(values)) {
      refuse(kTargetName, entry.header.name,
             "is " + std::string(dtype_name(entry.header.dtype)) +
                 ", which does not hold its values exactly");
    }
    bf16.resize(values.size() * dtype_bytes(DType::kBf16));
    to_bf16(values, bf16);
    sink(bf16);
  }
}

void write_draft_file(const ModelSource& source, const std::string& header, const ByteSink& sink) {
  const std::vector<TensorSpec> tensors = tensors_of(source.config(), true);
  const std::vector<Entry> known = draft_entries(tensors);
  write_front(header, sink);
  QuantisedRows rows(source);
  for (const Entry& entry : in_header_order(known, header, kDraftName)) {
    const TensorRole role = entry.tensor->role;
    const bool quantised = role == TensorRole::kProjection || role == TensorRole::kMlp;
    const DType codes = role == TensorRole::kProjection ? DType::kI8 : DType::kU8;
    const DType expected = quantised && !entry.is_scale ? codes : DType::kF32;
    if (entry.header.dtype != expected) {
      refuse(kDraftName, entry.header.name,
             "is " + std::string(dtype_name(entry.header.dtype)) + "; expected " +
                 std::string(dtype_name(expected)));
    }
    if (quantised) {
      rows.write(entry, sink);
    } else {
      sink(bytes_of(source.read_values(*entry.tensor)));
    }
  }
}

std::string directory_identity(const ModelSource& source, const DirectoryTexts& texts) {
  const auto target = [&](const ByteSink& sink) {
    write_target_file(source, texts.target_header, sink);
  };
  const auto draft = [&](const ByteSink& sink) {
    write_draft_file(source, texts.draft_header, sink);
  };
  return identity_of({kConfigName, sha256_hex(texts.config)}, {kTargetName, digest_of(target)},
                     {kDraftName, digest_of(draft)});
}

}  // namespace spel::engine

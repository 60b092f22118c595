#include "engine/files/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "config/base/checked.h"
#include "config/base/error.h"
#include "config/json/file_values.h"

namespace spel::engine {
namespace {

static_assert(std::endian::native == std::endian::little,
              "model files are little-endian and are read without byte swapping");

constexpr std::size_t kPrefixBytes = 8;
constexpr std::size_t kAlignment = 8;

struct DTypeInfo {
  DType dtype;
  std::string_view name;
  std::size_t bytes;
};
constexpr std::array<DTypeInfo, 15> kDTypes = {{{DType::kF32, "F32", 4},
                                                {DType::kBf16, "BF16", 2},
                                                {DType::kF16, "F16", 2},
                                                {DType::kI32, "I32", 4},
                                                {DType::kI8, "I8", 1},
                                                {DType::kU8, "U8", 1},
                                                {DType::kF64, "F64", 8},
                                                {DType::kI64, "I64", 8},
                                                {DType::kU64, "U64", 8},
                                                {DType::kU32, "U32", 4},
                                                {DType::kI16, "I16", 2},
                                                {DType::kU16, "U16", 2},
                                                {DType::kBool, "BOOL", 1},
                                                {DType::kF8E4M3, "F8_E4M3", 1},
                                                {DType::kF8E5M2, "F8_E5M2", 1}}};

const DTypeInfo& info(DType dtype) {
  return *std::find_if(kDTypes.begin(), kDTypes.end(),
                       [dtype](const DTypeInfo& entry) { return entry.dtype == dtype; });
}

[[noreturn]] void refuse(const std::string& source, const std::string& message) {
  throw Error(ErrorCode::kCorrupt, source + ": " + message);
}

/// A tensor as its header entry states it, before its place in the data is known to be good.
struct Entry {
  TensorHeader header;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

std::vector<std::uint64_t> read_numbers(const JsonValue& value, const std::string& where,
                                        std::size_t count_max) {
  std::vector<std::uint64_t> numbers;
  for (const JsonValue& number : elements_of(value, where, count_max)) {
    numbers.push_back(whole_number(number, where, std::numeric_limits<std::uint64_t>::max()));
  }
  return numbers;
}

DType read_dtype(const JsonValue& value, const std::string& where) {
  const std::string& found = text_of(value, where);
  const auto* known =
      std::find_if(kDTypes.begin(), kDTypes.end(),
                   [&found](const DTypeInfo& entry) { return entry.name == found; });
  if (known == kDTypes.end()) {
    std::string names;
    for (const DTypeInfo& entry : kDTypes) {
      names += (names.empty() ? "" : ", ") + std::string(entry.name);
    }
    refuse_value(value, where, "one of " + names);
  }
  return known->dtype;
}

Entry read_entry(const JsonValue& value, const std::string& name, const std::string& where) {
  Entry entry;
  entry.header.name = name;
  std::size_t found = 0;
  for (const JsonValue::Member& member : members_of(value, where)) {
    const std::string place = where + "." + shown_text(member.key);
    if (member.key == "dtype") {
      entry.header.dtype = read_dtype(member.value, place);
    } else if (member.key == "shape") {
      entry.header.shape = read_numbers(member.value, place, SafetensorsView::kDimsMax);
    } else if (member.key == "data_offsets") {
      const std::vector<std::uint64_t> offsets = read_numbers(member.value, place, 2);
      if (offsets.size() != 2) {
        refuse(place, "expected two numbers, found " + std::to_string(offsets.size()));
      }
      entry.begin = offsets[0];
      entry.end = offsets[1];
    } else {
      refuse(place, "expected only dtype, shape and data_offsets");
    }
    ++found;
  }
  if (found != 3) {
    refuse(where,
           "expected dtype, shape and data_offsets, found " + std::to_string(found) + " of them");
  }
  return entry;
}

std::vector<Entry> read_entries(std::string_view text, const std::string& source) {
  const std::string header = source + " header";
  const JsonObject json = read_file_object(
      text, header,
      {.bytes = SafetensorsView::kHeaderBytesMax, .members = SafetensorsView::kTensorsMax});
  std::vector<Entry> entries;
  entries.reserve(json.size());
  for (const auto& [name, place] : json.members()) {
    const std::string where = header + ": " + shown_text(name);
    const JsonValue value = file_member(json, name, header);
    if (name != "__metadata__") {
      entries.push_back(read_entry(value, name, where));
      continue;
    }
    // Free text by the format's rule; it is checked and not kept.
    for (const JsonValue::Member& member : members_of(value, where)) {
      (void)text_of(member.value, where + "." + shown_text(member.key));
    }
  }
  return entries;
}

void check_cover(std::vector<Entry>& entries, std::uint64_t data_size, const std::string& source) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t covered = 0;
  for (const Entry& entry : entries) {
    const std::string& name = entry.header.name;
    if (entry.begin != covered) {
      refuse(source, "tensor " + name + " begins at data byte " + std::to_string(entry.begin) +
                         "; expected " + std::to_string(covered) +
                         " (tensors must follow one another without gap or overlap)");
    }
    const std::uint64_t expected = entry.header.data_bytes();
    if (entry.end < entry.begin || entry.end - entry.begin != expected) {
      refuse(source, "tensor " + name + " has data_offsets [" + std::to_string(entry.begin) + ", " +
                         std::to_string(entry.end) + "]; its shape needs " +
                         std::to_string(expected) + " bytes");
    }
    covered = entry.end;
  }
  if (covered != data_size) {
    refuse(source, "expected " + std::to_string(covered) + " bytes of tensor data, found " +
                       std::to_string(data_size) +
                       (covered > data_size ? ": the file is cut short; fetch it again"
                                            : ": bytes follow the last tensor"));
  }
}

}  // namespace

std::string_view dtype_name(DType dtype) { return info(dtype).name; }
std::size_t dtype_bytes(DType dtype) { return info(dtype).bytes; }
bool is_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBf16 || dtype == DType::kF16;
}

std::uint64_t TensorHeader::data_bytes() const {
  std::uint64_t bytes = dtype_bytes(dtype);
  for (const std::uint64_t dim : shape) {
    bytes = checked_mul(bytes, dim, name.c_str());
  }
  return bytes;
}

SafetensorsView::SafetensorsView(std::span<const std::byte> bytes, std::string source)
    : source_(std::move(source)) {
  if (bytes.size() < kPrefixBytes) {
    refuse(source_, "expected at least " + std::to_string(kPrefixBytes) + " bytes, found " +
                        std::to_string(bytes.size()));
  }
  std::uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), kPrefixBytes);
  const std::size_t rest = bytes.size() - kPrefixBytes;
  if (header_size > rest || header_size > kHeaderBytesMax) {
    refuse(source_, "header length is " + std::to_string(header_size) + "; expected at most " +
                        std::to_string(std::min<std::size_t>(rest, kHeaderBytesMax)) +
                        " in a file of " + std::to_string(bytes.size()) + " bytes");
  }
  const auto header_bytes = static_cast<std::size_t>(header_size);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kPrefixBytes,
                              header_bytes);
  header_ = text;
  const std::span<const std::byte> data = bytes.subspan(kPrefixBytes + header_bytes);
  std::vector<Entry> entries = read_entries(text, source_);
  check_cover(entries, data.size(), source_);
  tensors_.reserve(entries.size());
  for (Entry& entry : entries) {
    tensors_.push_back(TensorView{std::move(entry.header.name), entry.header.dtype,
                                  std::move(entry.header.shape),
                                  data.subspan(static_cast<std::size_t>(entry.begin),
                                               static_cast<std::size_t>(entry.end - entry.begin))});
  }
  std::sort(tensors_.begin(), tensors_.end(),
            [](const TensorView& a, const TensorView& b) { return a.name < b.name; });
}

const TensorView* SafetensorsView::find(std::string_view name) const {
  const auto at = std::lower_bound(
      tensors_.begin(), tensors_.end(), name,
      [](const TensorView& tensor, std::string_view wanted) { return tensor.name < wanted; });
  return at != tensors_.end() && at->name == name ? &*at : nullptr;
}

std::string safetensors_json(const std::vector<TensorHeader>& tensors,
                             std::string_view model_name) {
  std::string json = R"({"__metadata__":{"format":"pt","model":)";
  write_json_string(model_name, json);
  json += "}";
  std::uint64_t offset = 0;
  for (const TensorHeader& tensor : tensors) {
    json += ',';
    write_json_string(tensor.name, json);
    json += R"(:{"dtype":")";
    json += dtype_name(tensor.dtype);
    json += R"(","shape":[)";
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
      json += i > 0 ? "," : "";
      json += std::to_string(tensor.shape[i]);
    }
    const std::uint64_t end = checked_add(offset, tensor.data_bytes(), "safetensors data");
    json += R"(],"data_offsets":[)" + std::to_string(offset) + "," + std::to_string(end) + "]}";
    offset = end;
  }
  json += "}";
  json.append((kAlignment - json.size() % kAlignment) % kAlignment, ' ');
  return json;
}

std::string safetensors_length(std::string_view json) {
  const std::uint64_t size = json.size();
  std::string out(kPrefixBytes, '\0');
  std::memcpy(out.data(), &size, kPrefixBytes);
  return out;
}

std::string safetensors_header(const std::vector<TensorHeader>& tensors,
                               std::string_view model_name) {
  const std::string json = safetensors_json(tensors, model_name);
  return safetensors_length(json) + json;
}

std::vector<TensorHeader> tensors_in_header(std::string_view json, const std::string& source) {
  std::vector<Entry> entries = read_entries(json, source);
  std::uint64_t size = 0;
  for (const Entry& entry : entries) {
    size = std::max(size, entry.end);
  }
  check_cover(entries, size, source);
  std::vector<TensorHeader> tensors;
  tensors.reserve(entries.size());
  for (Entry& entry : entries) {
    tensors.push_back(std::move(entry.header));
  }
  return tensors;
}

}  // namespace spel::engine

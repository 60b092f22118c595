// The safetensors container: a JSON header of named tensors, then their bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spel::engine {

/// The element types of the format. Others' files have tensors of types that nothing here reads.
enum class DType {
  kF32,
  kBf16,
  kF16,
  kI32,
  kI8,
  kU8,
  kF64,
  kI64,
  kU64,
  kU32,
  kI16,
  kU16,
  kBool,
  kF8E4M3,
  kF8E5M2,
};

[[nodiscard]] std::string_view dtype_name(DType dtype);
[[nodiscard]] std::size_t dtype_bytes(DType dtype);
/// One that to_float() reads.
[[nodiscard]] bool is_float(DType dtype);

/// One tensor inside a file that outlives it.
struct TensorView {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> data;  ///< Not necessarily aligned to the element size.
};

/// A parsed file. The views point into the bytes it was made from.
class SafetensorsView {
 public:
  // Room for every tensor of a model of many experts in one file, at 128 bytes a tensor.
  static constexpr std::size_t kTensorsMax = 1U << 16;
  static constexpr std::size_t kHeaderBytesMax = 8U << 20;
  static constexpr std::size_t kDimsMax = 8;

  /// Throws Error(kCorrupt), naming `source` and where it went wrong, unless the header is in
  /// bounds and well formed, every tensor's byte count is its shape's, and the tensors cover the
  /// data exactly: no gap, no overlap, no byte before, between or after them.
  SafetensorsView(std::span<const std::byte> bytes, std::string source);

  [[nodiscard]] const std::vector<TensorView>& tensors() const noexcept { return tensors_; }
  /// nullptr if there is no tensor of that name.
  [[nodiscard]] const TensorView* find(std::string_view name) const;
  [[nodiscard]] const std::string& source() const noexcept { return source_; }
  /// The JSON, padding included.
  [[nodiscard]] std::string_view header() const noexcept { return header_; }

 private:
  std::string source_;
  std::string_view header_;
  std::vector<TensorView> tensors_;  ///< Sorted by name.
};

/// A tensor to be written: its bytes are supplied later, in the same order.
struct TensorHeader {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::uint64_t> shape;

  [[nodiscard]] std::uint64_t data_bytes() const;
};

/// The JSON header, padded to 8 bytes, for tensors written one after another.
[[nodiscard]] std::string safetensors_json(const std::vector<TensorHeader>& tensors,
                                           std::string_view model_name);
/// The 8 bytes before a header.
[[nodiscard]] std::string safetensors_length(std::string_view json);
/// Both.
[[nodiscard]] std::string safetensors_header(const std::vector<TensorHeader>& tensors,
                                             std::string_view model_name);

/// The tensors a JSON header lists, by their place in the data. Throws as SafetensorsView does.
[[nodiscard]] std::vector<TensorHeader> tensors_in_header(std::string_view json,
                                                          const std::string& source);

}  // namespace spel::engine

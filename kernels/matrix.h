// Weight matrices, packed once at load into the layout the kernels read.
//
// All three multiply as y = W x with W [rows][cols]. Strict numerics (kernels/NUMERICS.md): an
// output element is one chain of fused multiply-adds over k = 0 … cols-1 (dense) or one exact
// integer sum (low-bit), so it depends on that row of W and on x alone: not on how many x there
// are, on the number of threads, or on the instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <variant>

namespace spel::kernels {

/// Owned memory aligned to 64 bytes (huge pages where the system gives them), zero-initialised.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t bytes);
  AlignedBuffer(AlignedBuffer&&) noexcept = default;
  AlignedBuffer& operator=(AlignedBuffer&&) noexcept = default;

  [[nodiscard]] std::byte* data() noexcept { return data_.get(); }
  [[nodiscard]] const std::byte* data() const noexcept { return data_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  struct Free {
    void operator()(std::byte* p) const noexcept;
  };
  std::unique_ptr<std::byte[], Free> data_;
  std::size_t size_ = 0;
};

enum class DenseType { kF32, kBf16 };

/// f32 or bf16 weights in panels of 16 output rows (kPanelRows); the last panel is zero-padded.
class DenseMatrix {
 public:
  static constexpr std::size_t kPanelRows = 16;

  DenseMatrix() = default;
  /// `row_major` is [rows][cols]. With kBf16 every value must be bf16-exact, else
  /// Error(kInvalidArgument): a rounded copy would not give the same bits as f32.
  DenseMatrix(std::span<const float> row_major, std::size_t rows, std::size_t cols, DenseType type);

  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t cols() const noexcept { return cols_; }
  [[nodiscard]] DenseType type() const noexcept { return type_; }
  [[nodiscard]] std::size_t panels() const noexcept {
    return (rows_ + kPanelRows - 1) / kPanelRows;
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return packed_.size(); }
  [[nodiscard]] std::size_t panel_bytes() const noexcept { return panel_bytes_; }
  [[nodiscard]] const std::byte* panel(std::size_t p) const noexcept {
    return packed_.data() + p * panel_bytes_;
  }

 private:
  std::size_t rows_ = 0;
  std::size_t cols_ = 0;
  DenseType type_ = DenseType::kF32;
  std::size_t panel_bytes_ = 0;
  AlignedBuffer packed_;
};

/// int8 weights with one scale per row ("q8").
class Int8Matrix {
 public:
  Int8Matrix() = default;
  /// `values` is [rows][cols] in [-127, 127], `scales` is [rows].
  Int8Matrix(std::span<const std::int8_t> values, std::span<const float> scales, std::size_t rows,
             std::size_t cols);

  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t cols() const noexcept { return cols_; }
  [[nodiscard]] const float* scales() const noexcept;
  [[nodiscard]] std::size_t bytes() const noexcept { return packed_.size() + scales_.size(); }
  [[nodiscard]] const AlignedBuffer& packed() const noexcept { return packed_; }

 private:
  std::size_t rows_ = 0;
  std::size_t cols_ = 0;
  AlignedBuffer packed_;
  AlignedBuffer scales_;
};

/// Weights in {-1, 0, +1} with one scale per row.
class TernaryMatrix {
 public:
  TernaryMatrix() = default;
  /// `packed` is [rows][cols/4], four codes a byte, low bits first: 0 -> 0, 1 -> +1, 3 -> -1,
  /// 2 -> 0. `cols` must be a multiple of 4. Re-laid here for the dot-product kernels.
  TernaryMatrix(std::span<const std::uint8_t> packed, std::span<const float> scales,
                std::size_t rows, std::size_t cols);

  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t cols() const noexcept { return cols_; }
  [[nodiscard]] const float* scales() const noexcept;
  [[nodiscard]] std::size_t bytes() const noexcept { return packed_.size() + scales_.size(); }
  [[nodiscard]] const AlignedBuffer& packed() const noexcept { return packed_; }

 private:
  std::size_t rows_ = 0;
  std::size_t cols_ = 0;
  AlignedBuffer packed_;
  AlignedBuffer scales_;
};

/// Weights in any form.
using Matrix = std::variant<DenseMatrix, Int8Matrix, TernaryMatrix>;

/// Scales of rows included.
[[nodiscard]] inline std::size_t bytes_of(const Matrix& matrix) {
  return std::visit([](const auto& form) { return form.bytes(); }, matrix);
}
/// Without them.
[[nodiscard]] std::size_t weight_bytes_of(const Matrix& matrix);

}  // namespace spel::kernels

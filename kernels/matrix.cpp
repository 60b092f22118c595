#include "kernels/matrix.h"

#include <bit>
#include <cstring>
#include <string>

#include "config/base/checked.h"
#include "config/base/error.h"

namespace spel::kernels {
namespace {

constexpr std::size_t kRows = DenseMatrix::kPanelRows;
constexpr std::size_t kGroupBytes = 64;
/// Most columns for which every int32 accumulator of every kernel stays in range.
constexpr std::size_t kInt8ColsMax = std::size_t{1} << 17;
constexpr std::size_t kTernaryColsMax = std::size_t{1} << 19;

std::size_t ceil_div(std::size_t a, std::size_t b) { return a / b + (a % b != 0 ? 1 : 0); }

std::size_t product(std::size_t a, std::size_t b) {
  return checked_mul<std::size_t>(a, b, "matrix size");
}

void require(bool ok, const std::string& message) {
  if (!ok) {
    throw Error(ErrorCode::kInvalidArgument, message);
  }
}

void require_count(const char* what, std::size_t found, std::size_t expected) {
  require(found == expected, std::string(what) + ": expected " + std::to_string(expected) +
                                 " values, found " + std::to_string(found));
}

/// Row scales padded to whole panels, so that kernels load sixteen at a time.
AlignedBuffer padded_scales(std::span<const float> scales) {
  AlignedBuffer buffer(product(ceil_div(scales.size(), kRows) * kRows, sizeof(float)));
  if (!scales.empty()) {
    std::memcpy(buffer.data(), scales.data(), scales.size_bytes());
  }
  return buffer;
}

void write_f32(std::byte* panel, std::size_t lane, std::span<const float> row) {
  for (std::size_t k = 0; k < row.size(); ++k) {
    std::memcpy(panel + 4 * (k * kRows + lane), &row[k], sizeof(float));
  }
}

/// Columns 2j and 2j+1 share a 32-bit lane, low half first: each widens with one instruction.
void write_bf16(std::byte* panel, std::size_t lane, std::span<const float> row) {
  for (std::size_t k = 0; k < row.size(); ++k) {
    const auto bits = std::bit_cast<std::uint32_t>(row[k]);
    if ((bits & 0xFFFFU) != 0) {  // Not require(): its message would be built for every weight.
      throw Error(ErrorCode::kInvalidArgument, "weight " + std::to_string(row[k]) +
                                                   " is not bf16-exact: load these weights as f32");
    }
    const auto half = static_cast<std::uint16_t>(bits >> 16);
    std::memcpy(panel + 4 * (k / 2 * kRows + lane) + 2 * (k % 2), &half, sizeof(half));
  }
}

}  // namespace

DenseMatrix::DenseMatrix(std::span<const float> row_major, std::size_t rows, std::size_t cols,
                         DenseType type)
    : rows_(rows), cols_(cols), type_(type) {
  require_count("dense weights", row_major.size(), product(rows, cols));
  const bool is_f32 = type == DenseType::kF32;
  panel_bytes_ = product(is_f32 ? cols : ceil_div(cols, 2), 4 * kRows);
  packed_ = AlignedBuffer(product(panels(), panel_bytes_));
  for (std::size_t r = 0; r < rows; ++r) {
    std::byte* panel = packed_.data() + r / kRows * panel_bytes_;
    const auto row = row_major.subspan(r * cols, cols);
    is_f32 ? write_f32(panel, r % kRows, row) : write_bf16(panel, r % kRows, row);
  }
}

Int8Matrix::Int8Matrix(std::span<const std::int8_t> values, std::span<const float> scales,
                       std::size_t rows, std::size_t cols)
    : rows_(rows), cols_(cols), scales_(padded_scales(scales)) {
  require_count("int8 weights", values.size(), product(rows, cols));
  require_count("int8 scales", scales.size(), rows);
  require(cols <= kInt8ColsMax, "int8 weights: at most " + std::to_string(kInt8ColsMax) +
                                    " columns keep the sums exact, found " + std::to_string(cols));
  const std::size_t groups = ceil_div(cols, 4);
  packed_ = AlignedBuffer(product(product(ceil_div(rows, kRows), groups), kGroupBytes));
  for (std::size_t r = 0; r < rows; ++r) {
    std::byte* panel = packed_.data() + r / kRows * groups * kGroupBytes;
    for (std::size_t k = 0; k < cols; ++k) {
      const std::int8_t value = values[r * cols + k];
      if (value < -127) {
        throw Error(ErrorCode::kInvalidArgument, "int8 weights: -128 is outside [-127, 127]");
      }
      panel[k / 4 * kGroupBytes + r % kRows * 4 + k % 4] = static_cast<std::byte>(value + 128);
    }
  }
}

const float* Int8Matrix::scales() const noexcept {
  return reinterpret_cast<const float*>(scales_.data());
}

TernaryMatrix::TernaryMatrix(std::span<const std::uint8_t> packed, std::span<const float> scales,
                             std::size_t rows, std::size_t cols)
    : rows_(rows), cols_(cols), scales_(padded_scales(scales)) {
  require(cols % 4 == 0,
          "ternary weights: columns must be a multiple of 4, found " + std::to_string(cols));
  require_count("ternary weights", packed.size(), product(rows, cols / 4));
  require_count("ternary scales", scales.size(), rows);
  require(cols <= kTernaryColsMax, "ternary weights: at most " + std::to_string(kTernaryColsMax) +
                                       " columns keep the sums exact, found " +
                                       std::to_string(cols));
  // Stored codes 0, 1, 2, 3 mean 0, +1, 0, -1; the kernels want the weight plus one.
  constexpr unsigned kPlusOne[4] = {1, 2, 1, 0};
  const std::size_t groups = ceil_div(cols, 16);
  packed_ = AlignedBuffer(product(product(ceil_div(rows, kRows), groups), kGroupBytes));
  for (std::size_t r = 0; r < rows; ++r) {
    std::byte* panel = packed_.data() + r / kRows * groups * kGroupBytes;
    for (std::size_t k = 0; k < cols; ++k) {
      const unsigned code = (packed[r * (cols / 4) + k / 4] >> (2 * (k % 4))) & 3U;
      const std::size_t field = k % 16 / 4;
      std::byte& to = panel[k / 16 * kGroupBytes + r % kRows * 4 + k % 4];
      to |= static_cast<std::byte>(kPlusOne[code] << (2 * field));
    }
  }
}

const float* TernaryMatrix::scales() const noexcept {
  return reinterpret_cast<const float*>(scales_.data());
}

namespace {

std::size_t weight_bytes(const DenseMatrix& matrix) { return matrix.bytes(); }
template <typename LowBit>
std::size_t weight_bytes(const LowBit& matrix) {
  return matrix.packed().size();
}

}  // namespace

std::size_t weight_bytes_of(const Matrix& matrix) {
  return std::visit([](const auto& form) { return weight_bytes(form); }, matrix);
}

}  // namespace spel::kernels

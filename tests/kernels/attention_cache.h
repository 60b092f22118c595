// One key-value head's cache, and what a query that attends to it gets by the definition.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/kernels/support.h"

namespace spel::kernels {

/// The positions past the last are filled with what must never be read into the result.
struct AttentionCache {
  AttentionCache(Random& random, std::size_t positions_in, std::size_t dim_in)
      : positions(positions_in), dim(dim_in), keys((positions + 15) / 16 * 16 * dim, 1e30F) {
    rows = random.normals(positions * dim);
    values = random.normals(positions * dim);
    for (std::size_t j = 0; j < positions; ++j) {
      Kernels::select().store_key(keys.data(), j, dim, rows.data() + j * dim);
    }
  }

  /// softmax(scale * q K^T) V in double.
  [[nodiscard]] std::vector<double> attended(const float* q, double scale) const {
    std::vector<double> weights(positions);
    double top = -1e300;
    for (std::size_t j = 0; j < positions; ++j) {
      for (std::size_t d = 0; d < dim; ++d) {
        weights[j] += scale * static_cast<double>(q[d]) * rows[j * dim + d];
      }
      top = std::max(top, weights[j]);
    }
    double sum = 0.0;
    for (double& weight : weights) {
      sum += weight = std::exp(weight - top);
    }
    std::vector<double> out(dim);
    for (std::size_t j = 0; j < positions; ++j) {
      for (std::size_t d = 0; d < dim; ++d) {
        out[d] += weights[j] / sum * values[j * dim + d];
      }
    }
    return out;
  }

  std::size_t positions, dim;
  std::vector<float> keys;  ///< As AttentionHead and AttentionBlock want them.
  std::vector<float> rows;  ///< The same, [positions][dim].
  std::vector<float> values;
};

}  // namespace spel::kernels

#include "engine/model/rope_table.h"

#include "kernels/scalar_math.h"

namespace spel::engine {

RopeTable::RopeTable(std::size_t max_seq, std::size_t dims, double theta)
    : half_(dims / 2), cos_(max_seq * half_), sin_(max_seq * half_) {
  const double log_theta = kernels::log_f64(theta);
  for (std::size_t i = 0; i < half_; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(dims);
    const auto frequency = static_cast<float>(kernels::exp_f64(exponent * log_theta));
    for (std::size_t position = 0; position < max_seq; ++position) {
      const float angle = static_cast<float>(position) * frequency;
      cos_[position * half_ + i] = static_cast<float>(kernels::cos_f64(angle));
      sin_[position * half_ + i] = static_cast<float>(kernels::sin_f64(angle));
    }
  }
}

}  // namespace spel::engine

// exp, log, sin and cos as fixed sequences of IEEE operations: the same bits on every machine,
// which libm does not promise. The vector kernels evaluate the same sequences.
#pragma once

namespace spel::kernels {

[[nodiscard]] float exp_f32(float x);      ///< Within 2 ulp; 0 below -103.97, inf above 88.72.
[[nodiscard]] float log_f32(float x);      ///< Within 2 ulp for normal x > 0; -inf at 0; NaN below.
[[nodiscard]] float sigmoid_f32(float x);  ///< 1 / (1 + exp(-x))
[[nodiscard]] double exp_f64(double x);    ///< For tables built at load.
[[nodiscard]] double log_f64(double x);
[[nodiscard]] double sin_f64(double x);  ///< |x| up to 2^20.
[[nodiscard]] double cos_f64(double x);

}  // namespace spel::kernels

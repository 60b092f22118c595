// Constants of the fixed exp sequence, shared by scalar_math.cpp and the vector kernels.
#pragma once

namespace spel::kernels {

// exp(x) = 2^n * p(r), n = round(x log2 e), r = x - n ln 2 in [-0.347, 0.347].
// ln 2 is split so that n * kLn2Hi is exact for |n| < 2^9; p is the Taylor series to degree 7,
// whose truncation error there (5e-9) is below a tenth of an ulp.
inline constexpr float kExpLow = -104.0F;  ///< exp below this rounds to 0.
inline constexpr float kExpHigh = 89.0F;   ///< exp above this overflows.
inline constexpr float kLog2E = 0x1.715476p+0F;
inline constexpr float kLn2Hi = 0x1.62e4p-1F;
inline constexpr float kLn2Lo = 0x1.7f7d1cp-20F;
inline constexpr float kRoundMagic = 0x1.8p+23F;  ///< Adding it rounds |x| < 2^22 to an integer.
inline constexpr float kExpC7 = 0x1.a01a02p-13F;
inline constexpr float kExpC6 = 0x1.6c16c2p-10F;
inline constexpr float kExpC5 = 0x1.111112p-7F;
inline constexpr float kExpC4 = 0x1.555556p-5F;
inline constexpr float kExpC3 = 0x1.555556p-3F;
inline constexpr float kExpC2 = 0.5F;

// The same in f64: the Taylor series to degree 13, highest power first.
inline constexpr double kExpLow64 = -746.0;  ///< exp here rounds to 0.
inline constexpr double kExpHigh64 = 710.0;  ///< exp here overflows.
inline constexpr double kRoundMagic64 = 0x1.8p+52;
inline constexpr double kLog2E64 = 0x1.71547652b82fep+0;
inline constexpr double kLn2Hi64 = 0x1.62e42feep-1;
inline constexpr double kLn2Lo64 = 0x1.a39ef35793c76p-33;
inline constexpr int kExpTerms64 = 14;
// Not inline: every file has its own, so that no instruction set's object shares a symbol.
constexpr double kExp64[kExpTerms64] = {1.0 / 6227020800,
                                        1.0 / 479001600,
                                        1.0 / 39916800,
                                        1.0 / 3628800,
                                        1.0 / 362880,
                                        1.0 / 40320,
                                        1.0 / 5040,
                                        1.0 / 720,
                                        1.0 / 120,
                                        1.0 / 24,
                                        1.0 / 6,
                                        0.5,
                                        1.0,
                                        1.0};

}  // namespace spel::kernels

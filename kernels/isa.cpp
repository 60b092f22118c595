#include "kernels/isa.h"

#include <array>

namespace spel::kernels {
namespace {

constexpr std::array kAllIsas = {Isa::kScalar, Isa::kNeon, Isa::kAvx2, Isa::kAvx512};

}  // namespace

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return "scalar";
    case Isa::kNeon:
      return "neon";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "unknown";
}

std::optional<Isa> parse_isa(std::string_view name) {
  for (const Isa isa : kAllIsas) {
    if (isa_name(isa) == name) {
      return isa;
    }
  }
  return std::nullopt;
}

}  // namespace spel::kernels

#include "kernels/isa.h"

#include <array>
#include <cstddef>

#include "kernels/registry.h"

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

std::span<const Isa> attainable_isas() {
  struct List {
    List() {
      for (const Kernels& kernels : KernelRegistry::attainable()) {
        if (count == 0 || isas[count - 1] != kernels.isa()) {
          isas[count++] = kernels.isa();
        }
      }
    }
    std::array<Isa, kAllIsas.size()> isas{};
    std::size_t count = 0;
  };
  static const List list;
  return std::span(list.isas).first(list.count);
}

}  // namespace spel::kernels

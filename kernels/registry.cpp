#include "kernels/registry.h"

#include <array>
#include <cstddef>
#include <new>
#include <string>

#include "config/base/error.h"
#include "kernels/function_table.h"
#ifdef SPEL_KERNELS_X86
#include <cpuid.h>
#endif
#if defined(SPEL_KERNELS_NEON) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace spel::kernels {
namespace {

#ifdef SPEL_KERNELS_X86
// __builtin_cpu_supports also asks whether the operating system saves the wide registers.
bool has_fma() { return __builtin_cpu_supports("avx") && __builtin_cpu_supports("fma"); }
bool has_avx2() { return has_fma() && __builtin_cpu_supports("avx2"); }
bool has_avx2_vnni() {
  // Asked of the processor itself: older compilers do not know the name of this feature. It uses
  // the registers of AVX2, so nothing more is asked of the operating system.
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  constexpr unsigned kAvxVnniBit = 1U << 4;
  return has_avx2() && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 &&
         (eax & kAvxVnniBit) != 0;
}
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vnni");
}
#endif

#ifdef SPEL_KERNELS_NEON
bool has_neon_dotprod() {
#ifdef __linux__
  return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#else
  return true;  // Every 64-bit Apple processor we build for has it.
#endif
}
#endif

bool always() { return true; }

struct Candidate {
  Isa isa;
  std::string_view variant;
  const FunctionTable* table;
  bool (*runs_here)();
};

constexpr Candidate kCandidates[] = {
#ifdef SPEL_KERNELS_X86
    {Isa::kAvx512, "avx512", &kAvx512Table, has_avx512},
    {Isa::kAvx2, "avx2+vnni", &kAvx2VnniTable, has_avx2_vnni},
    {Isa::kAvx2, "avx2", &kAvx2Table, has_avx2},
    {Isa::kScalar, "scalar+fma", &kScalarFmaTable, has_fma},
#endif
#ifdef SPEL_KERNELS_NEON
    {Isa::kNeon, "neon", &kNeonTable, has_neon_dotprod},
#endif
    {Isa::kScalar, "scalar", &kScalarTable, always},
};
constexpr std::size_t kCandidateCount = sizeof(kCandidates) / sizeof(kCandidates[0]);

}  // namespace

std::span<const Kernels> KernelRegistry::attainable() {
  /// Room for every candidate; the first `count` are constructed.
  struct Sets {
    Sets() {
      for (const Candidate& candidate : kCandidates) {
        if (!candidate.runs_here()) {
          continue;
        }
        new (storage + count * sizeof(Kernels))
            Kernels(candidate.isa, candidate.variant, *candidate.table);
        ++count;
      }
    }
    alignas(Kernels) std::byte storage[kCandidateCount * sizeof(Kernels)];
    std::size_t count = 0;
  };
  static const Sets sets;
  return {std::launder(reinterpret_cast<const Kernels*>(sets.storage)), sets.count};
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
    std::array<Isa, kCandidateCount> isas{};
    std::size_t count = 0;
  };
  static const List list;
  return std::span(list.isas).first(list.count);
}

const Kernels& Kernels::select(std::optional<Isa> forced) {
  const auto sets = KernelRegistry::attainable();
  if (!forced) {
    return sets.front();
  }
  for (const Kernels& kernels : sets) {
    if (kernels.isa() == *forced) {
      return kernels;
    }
  }
  std::string known;
  for (const Isa isa : attainable_isas()) {
    if (!known.empty()) {
      known += ", ";
    }
    known += isa_name(isa);
  }
  throw Error(ErrorCode::kInvalidArgument, "kernel set " + std::string(isa_name(*forced)) +
                                               " cannot run here; attainable: " + known);
}

}  // namespace spel::kernels

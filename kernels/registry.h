// Every kernel set this binary holds and this processor can run; attainable_isas() and
// Kernels::select() choose from it. Internal to kernels/ and its tests.
#pragma once

#include <span>

#include "kernels/kernels.h"

namespace spel::kernels {

struct KernelRegistry {
  /// Best first, never empty. Two entries may share an Isa (with and without an extension): all
  /// give the same bits, and select() takes the first.
  [[nodiscard]] static std::span<const Kernels> attainable();
  /// For tests that call each function alone.
  [[nodiscard]] static const FunctionTable& table_of(const Kernels& kernels) {
    return kernels.table_;
  }
};

}  // namespace spel::kernels

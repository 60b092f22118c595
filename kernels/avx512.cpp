// The kernels for AVX-512 F, BW, VL, DQ and VNNI.
#include "kernels/function_table.h"
#include "kernels/vec/wide_avx512.h"
// The bodies are written against the lanes included above.
#include "kernels/generic/table.h"

namespace spel::kernels {

constinit const FunctionTable kAvx512Table = make_table();

}  // namespace spel::kernels

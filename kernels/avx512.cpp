// The kernels for AVX-512 F, BW, VL, DQ and VNNI.
#include "kernels/vec/avx512.h"

#include "kernels/function_table.h"
// The bodies are written against the lanes included above.
#include "kernels/generic/table.h"

namespace spel::kernels {

constinit const FunctionTable kAvx512Table = make_table();

}  // namespace spel::kernels

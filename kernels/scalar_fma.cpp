// scalar.cpp again for processors with FMA, where a fused multiply-add is an instruction and not a
// libm call. The same operations, so the same bits.
#include "kernels/function_table.h"
#include "kernels/vec/scalar.h"
// The bodies are written against the lanes included above.
#include "kernels/generic/table.h"

namespace spel::kernels {

constinit const FunctionTable kScalarFmaTable = make_table();

}  // namespace spel::kernels

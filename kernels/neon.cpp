// The kernels for AArch64 NEON with the dot-product extension.
#include "kernels/function_table.h"
#include "kernels/vec/wide_neon.h"
// The bodies are written against the lanes included above.
#include "kernels/generic/table.h"

namespace spel::kernels {

constinit const FunctionTable kNeonTable = make_table();

}  // namespace spel::kernels

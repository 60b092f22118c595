// The kernels for AArch64 NEON with the dot-product extension.
#include "kernels/vec/neon.h"

#include "kernels/function_table.h"
// The bodies are written against the lanes included above.
#include "kernels/generic/table.h"

namespace spel::kernels {

constinit const FunctionTable kNeonTable = make_table();

}  // namespace spel::kernels

// The kernels in plain C++, for the baseline of the target architecture.
#include "kernels/function_table.h"
#include "kernels/vec/wide_scalar.h"
// The bodies are written against the lanes included above.
#include "kernels/generic/table.h"

namespace spel::kernels {

constinit const FunctionTable kScalarTable = make_table();

}  // namespace spel::kernels

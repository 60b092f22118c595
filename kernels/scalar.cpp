// The kernels in plain C++, for the baseline of the target architecture.
#include "kernels/vec/scalar.h"

#include "kernels/function_table.h"
// The bodies are written against the lanes included above.
#include "kernels/generic/table.h"

namespace spel::kernels {

constinit const FunctionTable kScalarTable = make_table();

}  // namespace spel::kernels

// The order in which a server ends.
#pragma once

#include "server/app.h"
#include "server/stop_signals.h"

namespace spel::server {

/// After the first signal: not ready but still taking requests for drain_delay; then no new
/// connections, and up to drain_timeout for what runs; what is left is cancelled and told so;
/// everything joins. A second signal skips the waiting. Returns the exit status: 0 after a shutdown
/// that joined. Where something cannot be joined the process ends here.
[[nodiscard]] int shut_down(App& app, StopSignals& signals);

}  // namespace spel::server

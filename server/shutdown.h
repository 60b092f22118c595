// Signals, and the order in which a server ends.
#pragma once

#include "server/app.h"

namespace spel::server {

/// Keeps SIGINT and SIGTERM from killing the process, for this thread and those it starts from now
/// on, until wait_and_shut_down() takes them. SIGPIPE is ignored. Before any thread is started.
void block_shutdown_signals();

/// Waits for SIGINT or SIGTERM, then: no new connections, streams get up to drain_timeout to end,
/// what is left is cancelled and told so, everything joins. A second signal skips the waiting and
/// has the process gone within a second, if need be with the status of a death by signal. Returns
/// the exit status: 0 after a shutdown that joined.
[[nodiscard]] int wait_and_shut_down(App& app);

}  // namespace spel::server

// From a configuration to a running engine.
#pragma once

#include <memory>

#include "config/base/error.h"
#include "config/server_config.h"
#include "server/backend.h"

namespace spel::server {

/// The model is there, and the store of its notes cannot be opened.
class NoteStoreError : public Error {
 public:
  using Error::Error;
};

/// Loads the model and starts its engine; takes as long as that takes. Throws Error, and of it
/// NoteStoreError.
[[nodiscard]] std::unique_ptr<const Backend> load_backend(const config::ServerConfig& config);

/// Physical cores this process may use; at least 1.
[[nodiscard]] std::size_t physical_cores();

}  // namespace spel::server

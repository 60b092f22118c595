// Answers that are written part by part, so that no more than a part is held while a client reads.
#pragma once

#include <functional>
#include <string>

#include "server/exchange.h"

namespace spel::server {

/// Appends the next part of a JSON text; false if that was the last.
using NextPart = std::function<bool(std::string& out)>;

/// A text of one part is sent with its length, a longer one in chunks.
[[nodiscard]] Task<void> send_json_parts(Exchange& exchange, NextPart next);

}  // namespace spel::server

// Origins and host names as browsers send them. A value that no request can ever have would be
// accepted and do nothing, so it is refused, with what was probably meant.
#pragma once

#include <string>
#include <string_view>

namespace spel::config {

/// Empty for "*" and for what an Origin field can be: scheme://host, with a port if it is not the
/// scheme's own. Otherwise what to write instead.
[[nodiscard]] std::string origin_advice(std::string_view origin);

/// The same for "*" and a host name or address, with or without a port.
[[nodiscard]] std::string host_advice(std::string_view host);

}  // namespace spel::config

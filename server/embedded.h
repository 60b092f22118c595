// Files that are part of the program; see embed.cmake.
#pragma once

#include <string_view>

namespace spel::server::embedded {

/// The live page.
[[nodiscard]] std::string_view index_html();
/// The description of the interface.
[[nodiscard]] std::string_view openapi_json();

}  // namespace spel::server::embedded

// Files that are part of the program; see embed.cmake.
#pragma once

#include <string_view>

namespace spel::server::embedded {

/// static/index.html with what it inserts: the live page.
[[nodiscard]] std::string_view index_html();
}  // namespace spel::server::embedded

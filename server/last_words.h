// What can still be said when nothing else works any more.
#pragma once

#include <string_view>

namespace spel::server {

/// Writes to standard error if that takes it at once. Allocates nothing, waits for nobody.
void say_last(std::string_view text) noexcept;

/// From now on an exception that nobody catches, or that leaves a noexcept function, says what it
/// was before the process ends.
void install_last_words();

}  // namespace spel::server

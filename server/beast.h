// The small parts of Beast that headers need.
#pragma once

// clang-format off
#include <ostream>  // Boost 1.81's string_view uses it without including it.
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/verb.hpp>
// clang-format on

namespace spel::server {

using Verb = boost::beast::http::verb;

}  // namespace spel::server

// The names this folder uses for Asio, fixed once: one executor type, one awaitable type.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <system_error>

namespace spel::server {

namespace net = boost::asio;

using IoError = boost::system::error_code;
using Clock = std::chrono::steady_clock;

/// Everything of one connection runs on its own strand, so that its coroutines, timers and the
/// engine's notifications never run at once, however many threads serve the context. Concrete
/// rather than any_io_executor: it is copied with every operation.
using Executor = net::strand<net::io_context::executor_type>;

/// GCC 12 miscompiles some co_await expressions: none is written inside a condition, a switch or a
/// conditional expression here; the result goes to a variable first.
template <typename T>
using Task = net::awaitable<T, Executor>;

inline constexpr net::use_awaitable_t<Executor> use_task{};

}  // namespace spel::server

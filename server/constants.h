// Fixed figures of the HTTP layer that nobody needs to tune.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace spel::server {

inline constexpr std::string_view kVersion = "0.1.0";

/// Two, so that one long JSON body does not hold up everybody else's tokens.
inline constexpr std::size_t kIoThreads = 2;

/// Kernel memory one slow reader can pin: with the default buffers 1,000 of them hold over 1 GiB.
inline constexpr int kSendBufferBytes = 32 * 1024;

/// Beyond the connection cap, this many more are let in for the health and metrics endpoints only,
/// so that a full server can still be watched.
inline constexpr std::size_t kSpareConnections = 16;
inline constexpr std::chrono::milliseconds kSpareTimeout{1000};

/// A refused client may still be sending: what it sends is read and dropped for so long, since
/// closing with unread bytes would reset the connection and lose the answer.
inline constexpr std::chrono::milliseconds kLingerTimeout{2000};
inline constexpr std::size_t kLingerBytes = std::size_t{4} << 20;

/// Read-ahead beyond a request's header: pipelined requests and body bytes.
inline constexpr std::size_t kReadAheadBytes = 8 * 1024;

/// Told to clients that are refused for now, where nothing better is known.
inline constexpr std::uint32_t kRetryAfterSeconds = 1;

/// Tokens a stream may run ahead of its reader before the engine parks the sequence.
inline constexpr std::size_t kStreamCapacity = 64;

}  // namespace spel::server

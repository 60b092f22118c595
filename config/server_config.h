// Every setting of `spel serve`, validated.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "config/base/limits.h"
#include "config/base/names.h"
#include "config/base/shipped_model.h"

namespace spel::config {

/// Read once at start and passed on as const. Choices are kept as their names ("adaptive",
/// "bf16", …), already checked against what the option table allows.
struct ServerConfig {
  // Where to listen.
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;  ///< 0: any free port; the log says which.
  std::string unix_socket;    ///< Not empty: listen there instead of on host:port.
  std::string tls_cert;       ///< PEM files; both or neither.
  std::string tls_key;
  std::string api_keys_file;               ///< One key a line; empty: no keys asked for.
  std::vector<std::string> cors_origins;   ///< Exact origins; empty: no CORS headers at all.
  std::vector<std::string> allowed_hosts;  ///< Beside localhost, 127.0.0.1, [::1] and `host`.

  // The model and how it runs.
  std::string model = kShippedModel;
  std::string name;  ///< The id clients see; empty: the model's own.
  std::string weights_dtype = "bf16";
  std::string numerics = "strict";
  std::string isa = "auto";
  std::string kernel = "auto";
  std::size_t target_threads = 0;  ///< 0: one for each physical core.
  std::size_t draft_threads = 1;
  std::size_t max_seq = 4096;  ///< Context; never more than the model's own.
  std::size_t sequences = 8;
  std::size_t queue = 64;
  std::size_t prefill_chunk = 128;
  std::size_t prefix_cache = 4;

  // Chat, where a request does not say.
  std::string chat_template = "auto";    ///< "auto": the model's own; "off": the plain one; a file.
  std::size_t chat_max_tokens = 256;     ///< Of an answer; what is thought before it comes on top.
  std::string enable_thinking = "auto";  ///< "auto": as the template has it.
  std::size_t thinking_budget = 1024;    ///< Tokens of a thought; 0: no bound of its own.
  std::string reasoning_format = "auto";  ///< "none": thoughts stay in the content.

  // Speculation, where a request does not say.
  std::size_t spec_k = limits::kSpecKDefault;  ///< 0: never draft.
  std::string governor{name_of(GovernorKind::kAdaptive)};
  double alpha_threshold = 0.35;
  std::size_t governor_window = 16;

  // What clients send.
  bool normalize_text = false;  ///< Read typographic characters as ASCII.

  // Limits of the HTTP side. There is no value that means "no limit".
  std::size_t connections = 1024;
  std::size_t header_bytes = 8192;
  std::size_t header_fields = 100;
  std::size_t body_bytes = limits::kBodyBytesDefault;
  std::size_t wire_bytes = 4 * limits::kBodyBytesDefault;  ///< Framing included.
  std::size_t json_depth = limits::kJsonDepthDefault;
  std::chrono::milliseconds header_timeout{10'000};
  std::chrono::milliseconds body_timeout{30'000};
  std::chrono::milliseconds idle_timeout{60'000};
  std::chrono::milliseconds write_timeout{10'000};
  std::chrono::milliseconds request_timeout{600'000};  ///< Queue, prefill and decode together.
  std::chrono::milliseconds drain_timeout{10'000};
  std::chrono::milliseconds drain_delay{0};       ///< 0: stop listening at once.
  std::chrono::milliseconds stream_heartbeat{0};  ///< 0: none.

  // Files and logs.
  std::string data_dir;  ///< NoteBank's; empty: banks live in memory only.
  std::string log_level = "info";
  bool log_json = false;
};

}  // namespace spel::config

#include "config/options.h"

#include <algorithm>
#include <cctype>

#include "config/web_names.h"

namespace spel::config {

namespace {

constexpr double kHour = 3600.0;
constexpr double kDay = 24 * kHour;

std::vector<Option> make_table() {
  using C = ServerConfig;
  return {
      {"host", TextOption{&C::host, 255, true}, "Address or name to listen on"},
      {"port", PortOption{&C::port}, "TCP port; 0: any free one, which the log names"},
      {"unix_socket", TextOption{&C::unix_socket, 107},
       "Path of a unix socket to listen on instead of host and port"},
      {"tls_cert", TextOption{&C::tls_cert}, "Certificate chain (PEM); needs tls_key"},
      {"tls_key", TextOption{&C::tls_key}, "Private key (PEM); needs tls_cert"},
      {"api_keys_file", TextOption{&C::api_keys_file},
       "File of API keys, one a line, read again when it changes; without it no key is asked for"},
      {"cors_origins", ListOption{&C::cors_origins, &origin_advice},
       "Origins a browser may call from, * for any; none: CORS is off"},
      {"allowed_hosts", ListOption{&C::allowed_hosts, &host_advice},
       "Host names accepted beside localhost, 127.0.0.1, [::1] and host; * for any"},
      {"model", TextOption{&C::model, 4096, true}, "Model directory or SPELW001 file",
       "SPEL_WEIGHTS"},
      {"name", TextOption{&C::name, limits::kModelNameMax, false, true},
       "Model id shown to clients; empty: the model's own"},
      {"weights_dtype", ChoiceOption{&C::weights_dtype, {"bf16", "f32"}},
       "Weights in memory; changes speed, not output"},
      {"numerics", ChoiceOption{&C::numerics, {"strict", "fast"}},
       "strict: the same bits always; fast: through a BLAS, for comparison"},
      {"isa", ChoiceOption{&C::isa, {"auto", "avx512", "avx2", "neon", "scalar"}},
       "Instruction set of the kernels"},
      {"kernel", ChoiceOption{&C::kernel, {"auto", "dotprod", "addsub", "scalar"}},
       "Kernel of the draft's ternary products"},
      {"target_threads", CountOption{&C::target_threads, 0, limits::kTargetThreadsMax},
       "Threads of the target; 0: one for each physical core"},
      {"draft_threads", CountOption{&C::draft_threads, 1, limits::kDraftThreadsMax},
       "Threads of the draft"},
      {"max_seq", CountOption{&C::max_seq, 2, limits::kMaxSeqMax},
       "Context in tokens; never more than the model's own"},
      {"sequences", CountOption{&C::sequences, 1, limits::kSequencesMax},
       "Sequences running at once"},
      {"queue", CountOption{&C::queue, 1, limits::kQueueMax},
       "Sequences waiting beyond those; full: 503"},
      {"prefill_chunk", CountOption{&C::prefill_chunk, 1, 4096}, "Prompt tokens in one step"},
      {"prefix_cache", CountOption{&C::prefix_cache, 0, 64},
       "Prompt states kept for requests that extend or repeat them; 0: none"},
      {"chat_template", TextOption{&C::chat_template, 4096, true},
       "auto: the model's own chat template; off: one line for each message; or a file of Jinja"},
      {"chat_max_tokens", CountOption{&C::chat_max_tokens, 1, limits::kMaxSeqMax},
       "Most tokens of a chat's answer where a request does not say; thoughts come on top"},
      {"enable_thinking", ChoiceOption{&C::enable_thinking, {"auto", "on", "off"}},
       "Whether a model that can thinks before it answers, where a request does not say; auto: as "
       "its template has it"},
      {"thinking_budget", CountOption{&C::thinking_budget, 0, limits::kMaxSeqMax},
       "Tokens after which a thought is closed, where a request does not say; 0: never"},
      {"reasoning_format", ChoiceOption{&C::reasoning_format, {"auto", "none"}},
       "auto: thoughts come apart from the answer, in reasoning_content; none: in its text"},
      {"spec_k", CountOption{&C::spec_k, 0, limits::kSpecKMax},
       "Proposals in a round where a request does not say; 0: never draft"},
      {"governor",
       ChoiceOption{&C::governor,
                    {name_of(GovernorKind::kAdaptive), name_of(GovernorKind::kTrip),
                     name_of(GovernorKind::kOff)}},
       "What decides whether drafting pays; off: always spec_k"},
      {"alpha_threshold", RatioOption{&C::alpha_threshold, 0.0, 1.0},
       "Acceptance below which the trip governor suspends drafting"},
      {"governor_window", CountOption{&C::governor_window, 1, limits::kGovernorWindowMax},
       "Rounds the trip governor looks back on"},
      {"normalize_text", SwitchOption{&C::normalize_text},
       "Read curly quotes, dashes and accented letters as ASCII; answers say how many"},
      {"connections", CountOption{&C::connections, 1, 65536}, "Open connections"},
      {"header_bytes", CountOption{&C::header_bytes, 256, 1U << 20},
       "Request line and headers together"},
      {"header_fields", CountOption{&C::header_fields, 4, 1000}, "Header fields of a request"},
      {"body_bytes", CountOption{&C::body_bytes, 1024, limits::kBodyBytesMax}, "Body of a request"},
      {"wire_bytes", CountOption{&C::wire_bytes, 1024, 8 * limits::kBodyBytesMax},
       "Bytes read for one request, framing included; at least body_bytes"},
      {"json_depth", CountOption{&C::json_depth, 4, limits::kJsonDepthMax},
       "Nesting of a JSON body"},
      {"header_timeout", SecondsOption{&C::header_timeout, kHour},
       "Seconds until the headers are there"},
      {"body_timeout", SecondsOption{&C::body_timeout, kHour}, "Seconds until the body is there"},
      {"idle_timeout", SecondsOption{&C::idle_timeout, kDay},
       "Seconds a kept connection may be silent"},
      {"write_timeout", SecondsOption{&C::write_timeout, kHour},
       "Seconds a write may stall before the reader is dropped"},
      {"request_timeout", SecondsOption{&C::request_timeout, kDay},
       "Seconds for one request: queue, prefill and decode"},
      {"drain_timeout", SecondsOption{&C::drain_timeout, kHour},
       "Seconds to finish running requests after SIGTERM"},
      {"drain_delay", SecondsOption{&C::drain_delay, kHour, 0.0},
       "Seconds between SIGTERM and the end of listening: not ready, still serving"},
      {"stream_heartbeat", SecondsOption{&C::stream_heartbeat, kHour, 0.0},
       "Seconds of silence after which a stream carries a comment; 0: never"},
      {"data_dir", TextOption{&C::data_dir}, "Where NoteBank keeps its banks; empty: in memory"},
      {"log_level", ChoiceOption{&C::log_level, {"trace", "debug", "info", "warn", "error", "off"}},
       "Least severity logged"},
      {"log_json", SwitchOption{&C::log_json}, "Log lines as JSON"},
  };
}

}  // namespace

std::string Option::flag() const {
  std::string flag = "--" + std::string(key);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string Option::variable() const {
  std::string variable = "SPEL_" + std::string(key);
  std::transform(variable.begin(), variable.end(), variable.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return variable;
}

const std::vector<Option>& option_table() {
  static const std::vector<Option> table = make_table();
  return table;
}

}  // namespace spel::config

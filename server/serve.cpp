#include "server/serve.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <thread>

#include "config/base/error.h"
#include "config/base/thread.h"
#include "config/load.h"
#include "server/app.h"
#include "server/model_loader.h"
#include "server/note_service.h"
#include "server/shutdown.h"
#include "server/stop_signals.h"
#include "server/thread_needs.h"
#include "server/trim.h"

namespace spel::server {
namespace {

constexpr int kExitUsage = 2;

std::string_view signal_name(int signal) {
  return signal == SIGTERM ? "SIGTERM" : signal == SIGHUP ? "SIGHUP" : "SIGINT";
}

/// Every connection is a descriptor, and the usual soft limit is lower than the connection cap.
void raise_descriptor_limit(std::size_t connections) {
  rlimit limit{};
  const rlim_t wanted = connections + 128;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < wanted) {
    limit.rlim_cur =
        limit.rlim_max == RLIM_INFINITY || limit.rlim_max > wanted ? wanted : limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
  }
}

std::string curl_line(const App& app, const std::string& model) {
  const config::ServerConfig& config = app.config();
  std::string line = "curl -N ";
  if (!config.unix_socket.empty()) {
    line += "--unix-socket " + config.unix_socket + " http://localhost";
  } else {
    line += app.urls().front();
  }
  line += "/v1/completions ";
  if (!config.api_keys_file.empty()) {
    line += "-H 'Authorization: Bearer YOUR_KEY' ";
  }
  return line + R"(-d '{"model":")" + model +
         R"(","prompt":"Once upon a time","max_tokens":64,"stream":true}')";
}

void announce(App& app) {
  const Backend& backend = *app.lifecycle().backend();
  const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
  app.log().event(LogLevel::kInfo, "ready",
                  {{"model", backend.model_id},
                   {"parameters", number(backend.parameters)},
                   {"draft_parameters", number(backend.draft_parameters)},
                   {"isa", backend.isa},
                   {"ternary", backend.kernel},
                   {"weights", backend.weights_dtype},
                   {"numerics", backend.numerics},
                   {"target_threads", number(backend.target_threads)},
                   {"draft_threads", number(backend.draft_threads)},
                   {"context", number(backend.engine->max_seq())},
                   {"sequences", number(backend.engine->config().sequences)},
                   {"governor", app.config().governor},
                   {"k", number(app.config().spec_k)}});
  if (backend.draft_parameters == 0) {
    app.log().event(LogLevel::kWarning, "no draft model: everything is decoded plainly");
  } else if (app.config().spec_k == 0) {
    app.log().event(LogLevel::kInfo, "drafting is off unless a request asks for it: spec_k is 0");
  }
  if (backend.notes) {
    for (const std::string& warning : backend.notes->bank().warnings()) {
      app.log().event(LogLevel::kWarning, warning);
    }
    if (const std::string why = backend.notes->bank().read_only_because(); !why.empty()) {
      app.log().event(LogLevel::kWarning, "notes can be read and not written: " + why);
    }
  }
  // To a terminal and unescaped: it is there to be pasted.
  std::printf("\ntry:\n  %s\n\n", curl_line(app, backend.model_id).c_str());
  std::fflush(stdout);
}

/// Nearly all memory beside the weights is states, which these three settings size.
std::string out_of_memory(const config::ServerConfig& config) {
  return "not enough memory for the states of " + std::to_string(config.sequences) +
         " sequences and " + std::to_string(config.prefix_cache) + " kept prompts of up to " +
         std::to_string(config.max_seq) +
         " tokens each; lower --sequences, --prefix-cache or --max-seq";
}

/// The commonest mistake, found before an address is announced; the loader finds the others.
void require_model(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::status(path, error).type() == std::filesystem::file_type::not_found) {
    throw Error(ErrorCode::kNotFound,
                "cannot load the model: " + path.string() + ": no such file or directory");
  }
}

/// Loads the model on a thread of its own, so that health checks are answered and signals obeyed
/// meanwhile.
class Loader {
 public:
  Loader(App& app, StopSignals& signals)
      : thread_(start_thread("the thread that loads the model",
                             [this, &app, &signals] { run(app, signals); })) {}
  ~Loader() { thread_.join(); }
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// A file is being read, which cannot be interrupted.
  [[nodiscard]] bool busy() const noexcept { return busy_; }
  [[nodiscard]] bool failed() const noexcept { return failed_; }

 private:
  void run(App& app, StopSignals& signals) {
    const auto give_up = [&](const std::string& message) {
      app.log().event(LogLevel::kError, message);
      failed_ = true;
      busy_ = false;
      signals.stop();
    };
    try {
      app.set_backend(load_backend(app.config()));
      announce(app);
      busy_ = false;
    } catch (const std::bad_alloc&) {
      give_up("cannot load the model: " + out_of_memory(app.config()));
    } catch (const ThreadError& error) {
      give_up("cannot load the model: " + (error.what() + thread_advice(app.config())));
    } catch (const NoteStoreError& error) {
      give_up(std::string("cannot open the note store: ") + error.what());
    } catch (const std::exception& error) {
      give_up(std::string("cannot load the model: ") + error.what());
    }
  }

  std::atomic<bool> busy_{true};
  std::atomic<bool> failed_{false};
  std::thread thread_;
};

int run(config::LoadedConfig loaded) {
  StopSignals signals;
  raise_descriptor_limit(loaded.config.connections);
  const LogOptions log{parse_log_level(loaded.config.log_level), loaded.config.log_json};
  App app(std::move(loaded.config), log);
  for (const std::string& warning : loaded.warnings) {
    app.log().event(LogLevel::kWarning, warning);
  }
  app.start();
  for (const std::string& url : app.urls()) {
    app.log().event(LogLevel::kInfo, "listening", {{"url", url}});
  }
  Loader loader(app, signals);
  if (const int signal = signals.wait(); signal != 0) {
    app.log().event(LogLevel::kInfo,
                    loader.busy() ? "stopping while the model is being loaded"
                                  : "shutting down: draining; a second signal ends at once",
                    {{"signal", std::string_view(signal_name(signal))}});
  }
  const int status = shut_down(app, signals);
  if (loader.busy()) {
    app.log().event(LogLevel::kInfo, "stopped");
    app.log().close();
    std::_Exit(status);  // Nothing depends on what is being read.
  }
  app.log().event(LogLevel::kInfo, "stopped");
  return loader.failed() ? EXIT_FAILURE : status;
}

}  // namespace

int serve(const std::vector<std::string>& arguments) {
  give_large_blocks_back();
  std::string advice;
  try {
    config::LoadedConfig loaded =
        config::load_server_config(arguments, config::process_environment());
    if (loaded.action == config::Action::kPrint) {
      std::fputs(loaded.text.c_str(), stdout);
      return EXIT_SUCCESS;
    }
    require_model(loaded.config.model);
    advice = thread_advice(loaded.config);
    return run(std::move(loaded));
  } catch (const ThreadError& error) {
    std::fprintf(stderr, "spel serve: %s%s\n", error.what(), advice.c_str());
  } catch (const Error& error) {
    std::fprintf(stderr, "spel serve: %s\n", error.what());
    return error.code() == ErrorCode::kInvalidArgument ? kExitUsage : EXIT_FAILURE;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "spel serve: %s\n", error.what());
  }
  return EXIT_FAILURE;
}

}  // namespace spel::server

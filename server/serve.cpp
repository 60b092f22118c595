#include "server/serve.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

#include "config/base/error.h"
#include "config/load.h"
#include "server/app.h"
#include "server/model_loader.h"
#include "server/shutdown.h"

namespace spel::server {
namespace {

constexpr int kExitUsage = 2;

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

int run(config::LoadedConfig loaded) {
  block_shutdown_signals();
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
  // Health checks are answered meanwhile, and a signal stops the wait.
  std::atomic<bool> loading{true};
  std::atomic<bool> failed{false};
  std::thread loader([&app, &loading, &failed] {
    const auto give_up = [&](const std::string& message) {
      loading = false;
      failed = true;
      app.log().event(LogLevel::kError, message);
      (void)::kill(::getpid(), SIGTERM);
    };
    try {
      app.set_backend(load_backend(app.config()));
      loading = false;
      announce(app);
    } catch (const std::bad_alloc&) {
      give_up("cannot load the model: " + out_of_memory(app.config()));
    } catch (const NoteStoreError& error) {
      give_up(std::string("cannot open the note store: ") + error.what());
    } catch (const std::exception& error) {
      give_up(std::string("cannot load the model: ") + error.what());
    }
  });
  const int status = wait_and_shut_down(app);
  if (loading) {
    std::_Exit(status);  // Reading a file cannot be interrupted, and nothing depends on it.
  }
  loader.join();
  return failed ? EXIT_FAILURE : status;
}

}  // namespace

int serve(const std::vector<std::string>& arguments) {
  try {
    config::LoadedConfig loaded =
        config::load_server_config(arguments, config::process_environment());
    if (loaded.action == config::Action::kPrint) {
      std::fputs(loaded.text.c_str(), stdout);
      return EXIT_SUCCESS;
    }
    require_model(loaded.config.model);
    return run(std::move(loaded));
  } catch (const Error& error) {
    std::fprintf(stderr, "spel serve: %s\n", error.what());
    return error.code() == ErrorCode::kInvalidArgument ? kExitUsage : EXIT_FAILURE;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "spel serve: %s\n", error.what());
  }
  return EXIT_FAILURE;
}

}  // namespace spel::server

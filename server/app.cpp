#include "server/app.h"

#include <algorithm>
#include <utility>

#include "config/base/thread.h"
#include "proto/notebank.h"
#include "server/constants.h"
#include "server/handlers/handlers.h"

namespace spel::server {
namespace {

/// Large request bodies held at once, as a multiple of the body limit.
constexpr std::size_t kBodiesAtOnce = 64;
/// … and never less than so many texts for NoteBank.
constexpr std::size_t kNoteBodiesAtOnce = 4;
/// Of a byte of text that has become a token.
constexpr std::size_t kTokenBytes = sizeof(engine::TokenId);

}  // namespace

App::App(config::ServerConfig config, const LogOptions& log)
    : config_(std::move(config)),
      log_(log),
      keys_(config_.api_keys_file,
            [this](LogLevel level, std::string_view message) { log_.event(level, message); }),
      hosts_(config_.host, config_.allowed_hosts),
      cors_(config_.cors_origins),
      bodies_(
          std::max(kBodiesAtOnce * config_.body_bytes, kNoteBodiesAtOnce * proto::kNoteBodyBytes)),
      answers_(kNoteBodiesAtOnce * kTokenBytes * proto::kNoteTextBytesMax),
      io_(static_cast<int>(kIoThreads)),
      context_(make_context()),
      work_(net::make_work_guard(io_)),
      listener_(io_, context_) {}

App::~App() {
  begin_drain();
  cancel_generations();
  close_connections();
  (void)wait_drained(Clock::now() + std::chrono::seconds(5));
  stop();
}

ServerContext App::make_context() {
  const HandlerContext context{config_, lifecycle_, metrics_, log_, {reading_thread_, answers_}};
  for (const auto add :
       {&add_completion_routes, &add_figure_routes, &add_health_routes, &add_model_routes,
        &add_notebank_routes, &add_page_routes, &add_tokenize_routes}) {
    add(router_, context);
  }
  metrics_.add_routes(router_.patterns());
  return ServerContext{config_,  router_, keys_,     hosts_,  cors_, lifecycle_,
                       metrics_, log_,    sessions_, bodies_, ids_};
}

void App::start() {
  listener_.open();
  listener_.start();
  for (std::size_t i = 0; i < kIoThreads; ++i) {
    threads_.push_back(start_thread("a thread for connections", [this] {
      while (true) {
        try {
          io_.run();
          return;
        } catch (const std::exception& error) {
          log_.event(LogLevel::kError, "an exception reached the event loop",
                     {{"error", std::string_view(error.what())}});
        }
      }
    }));
  }
}

void App::set_backend(std::unique_ptr<const Backend> backend) {
  lifecycle_.set_ready(std::move(backend));
}

bool App::begin_leaving() { return lifecycle_.set_leaving(); }

void App::begin_drain() {
  lifecycle_.set_draining();
  listener_.close();
  if (const Backend* backend = lifecycle_.backend()) {
    backend->engine->begin_drain();
  }
  sessions_.stop_all(StopKind::kDrain);
}

bool App::wait_drained(Clock::time_point deadline) { return sessions_.wait_empty(deadline); }

void App::cancel_generations() {
  if (const Backend* backend = lifecycle_.backend()) {
    backend->engine->cancel_all();
  }
}

void App::close_connections() { sessions_.stop_all(StopKind::kNow); }

void App::stop() {
  work_.reset();
  io_.stop();
  for (std::thread& thread : threads_) {
    thread.join();
  }
  threads_.clear();
}

}  // namespace spel::server

#include "server/session.h"

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <charconv>
#include <chrono>
#include <ctime>
#include <exception>
#include <new>
#include <random>
#include <utility>

#include "config/base/error.h"
#include "server/constants.h"

namespace spel::server {
namespace {

constexpr std::size_t kIdBytesMax = 64;
constexpr std::size_t kLoggedPathMax = 256;
/// For the log, as nginx has it: the client left before there was an answer.
constexpr int kClientGone = 499;

bool is_safe_id(std::string_view id) {
  constexpr std::string_view kSymbols = "-_.";
  return !id.empty() && id.size() <= kIdBytesMax && std::all_of(id.begin(), id.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kSymbols.find(c) != std::string_view::npos;
  });
}

std::string hex(std::uint64_t value, int digits) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text(static_cast<std::size_t>(digits), '0');
  for (auto place = text.rbegin(); place != text.rend(); ++place, value >>= 4U) {
    *place = kDigits[value & 15U];
  }
  return text;
}

ConnectionLimits connection_limits(const config::ServerConfig& config) {
  ConnectionLimits limits;
  limits.buffer_bytes = config.header_bytes + kReadAheadBytes;
  limits.write_stall = config.write_timeout;
  limits.shortest_deadline =
      std::min({config.header_timeout, config.body_timeout, config.idle_timeout,
                config.write_timeout, kLingerTimeout, kSpareTimeout});
  return limits;
}

}  // namespace

RequestIds::RequestIds() : prefix_("req-") {
  std::random_device random;
  prefix_ += hex(random(), 8) + "-";
}

std::string RequestIds::next() { return prefix_ + hex(++count_, 8); }

Session::Session(ServerContext& context, std::unique_ptr<Transport> transport,
                 const SessionOptions& options)
    : context_(context),
      options_(options),
      connection_(
          std::make_shared<Connection>(std::move(transport), connection_limits(context.config))),
      reader_(*connection_, context.config) {}

void Session::start() {
  context_.sessions.add(shared_from_this());
  context_.metrics.connection_opened();
  net::co_spawn(executor(), run(), [self = shared_from_this()](std::exception_ptr error) {
    if (error) {
      (void)self->failure(std::move(error));  // For the log: there is nobody to answer any more.
    }
    self->connection_->close();
    self->connection_->release();
    self->context_.metrics.connection_closed();
    self->context_.sessions.remove(self.get());
  });
}

void Session::stop(StopKind kind) {
  net::post(executor(), [self = shared_from_this(), kind] {
    self->draining_ = true;
    if (kind == StopKind::kNow) {
      self->connection_->close();
    } else if (self->idle_) {
      self->connection_->interrupt();
    }
  });
}

Task<void> Session::run() {
  connection_->open();
  const auto patience = options_.spare ? kSpareTimeout : context_.config.header_timeout;
  const bool connected = co_await connection_->handshake(Clock::now() + patience);
  if (!connected) {
    co_return;
  }
  Clock::time_point first_byte_by = Clock::now() + patience;
  // A drain that began before this session was in the group is seen here.
  while (!draining_ && !close_ && context_.lifecycle.phase() != Phase::kDraining) {
    idle_ = true;
    const RequestReader::Outcome outcome = co_await reader_.read_head(first_byte_by);
    if (outcome == RequestReader::Outcome::kClosed) {
      break;
    }
    idle_ = false;
    begin_request();
    if (outcome == RequestReader::Outcome::kRefused) {
      close_ = true;
      (void)co_await send(error_response(reader_.refusal()));
    } else {
      co_await serve_one();
    }
    finish_request();
    first_byte_by = Clock::now() + context_.config.idle_timeout;
  }
  idle_ = true;  // From here on a drain need not wait.
  if (!draining_) {
    co_await connection_->finish();
  }
}

void Session::begin_request() {
  began_ = Clock::now();
  answer_ = Answer::kNone;
  body_done_ = !reader_.head().has_body();
  route_ = nullptr;
  status_ = 0;
  bytes_out_ = 0;
  close_ = options_.spare;
  request_ = std::move(reader_.head().request);
  request_.arrived = began_;
  if (!is_safe_id(request_.id)) {
    request_.id = context_.ids.next();
  }
}

void Session::finish_request() {
  context_.metrics.count_request(route_ != nullptr ? route_->index : Metrics::kNoRoute, status_);
  if (status_ == 0) {
    status_ = kClientGone;
  }
  const bool quiet = route_ != nullptr && route_->options.is_probe && status_ < 400;
  const LogLevel level = quiet ? LogLevel::kDebug : LogLevel::kInfo;
  if (context_.log.enabled(level)) {
    const std::chrono::duration<double, std::milli> took = Clock::now() - began_;
    const std::string_view method = to_string(request_.method);
    context_.log.event(level, "request",
                       {{"id", request_.id},
                        {"method", request_.head_only ? "HEAD" : method},
                        {"path", std::string_view(request_.path).substr(0, kLoggedPathMax)},
                        {"status", std::int64_t{status_}},
                        {"ms", took.count()},
                        {"bytes", static_cast<std::int64_t>(bytes_out_)}});
  }
}

std::optional<Response> Session::judge_head(const Handler*& handler) {
  if (options_.check_host && !request_.host.empty() && !context_.hosts.allows(request_.host)) {
    return error_response(proto::forbidden("this Host is not one the server answers to"));
  }
  if (options_.check_host && request_.host.empty() && request_.version >= 11) {
    return error_response(proto::invalid_request("the Host field is empty"));
  }
  if (request_.path == "*") {
    return Response(204, {}, {});
  }
  route_ = context_.router.find(request_.path, request_.parameters);
  if (route_ != nullptr) {
    if (auto preflight = context_.cors.preflight(request_, route_->allow)) {
      return preflight;
    }
  }
  const bool is_public = route_ != nullptr && route_->options.is_public;
  if (!is_public && !context_.keys.allows(request_.authorization)) {
    return error_response(
        proto::authentication_error("a valid API key is needed: Authorization: Bearer KEY"));
  }
  if (!context_.cors.allows(request_)) {
    return error_response(proto::forbidden("pages of this origin may not use the server"));
  }
  if (route_ == nullptr) {
    return error_response(
        proto::not_found("no such path; /openapi.json lists them", {}, "unknown_path"));
  }
  if (request_.method == Verb::options) {
    Response response(204, {}, {});
    response.add_header("Allow", route_->allow);
    return response;
  }
  handler = route_->handler(request_.method);
  if (handler == nullptr) {
    Response response = error_response(proto::method_not_allowed(
        "this path does not take that method; allowed: " + route_->allow));
    response.add_header("Allow", route_->allow);
    return response;
  }
  if (options_.spare && !route_->options.is_probe) {
    return error_response(proto::unavailable("too many connections"));
  }
  if (route_->options.needs_model && !context_.lifecycle.takes_work()) {
    return error_response(context_.lifecycle.phase() == Phase::kLoading
                              ? proto::unavailable("the model is still loading", "loading")
                              : proto::unavailable("the server is shutting down", "shutting_down"));
  }
  return std::nullopt;
}

Task<void> Session::serve_one() {
  const Handler* handler = nullptr;
  std::optional<Response> verdict = judge_head(handler);
  if (verdict) {
    // What is left of the request is not read, so nothing after it could be understood.
    close_ = close_ || reader_.head().has_body();
    (void)co_await send(std::move(*verdict));
    co_return;
  }
  co_await handle(*handler);
}

Task<bool> Session::receive_body() {
  const Head& head = reader_.head();
  const std::size_t limit = std::max(context_.config.body_bytes, route_->options.body_bytes);
  if (head.content_length.value_or(0) > limit) {
    close_ = true;
    (void)co_await send(error_response(body_too_large(limit)));
    co_return false;
  }
  bool ok = true;
  if (head.expects_continue && connection_->pending().empty()) {
    constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    const std::array buffers{net::const_buffer(kContinue.data(), kContinue.size())};
    ok = co_await connection_->write(buffers);
  }
  RequestReader::Outcome outcome = RequestReader::Outcome::kClosed;
  body_ = {{}, BodyCharge(context_.bodies)};
  if (ok) {
    outcome = co_await reader_.read_body(limit, body_);
  }
  if (outcome == RequestReader::Outcome::kOk) {
    body_done_ = true;
    co_return true;
  }
  body_ = {};
  close_ = true;
  if (outcome == RequestReader::Outcome::kRefused) {
    (void)co_await send(error_response(reader_.refusal()));
  }
  co_return false;
}

Task<void> Session::handle(const Handler& handler) {
  std::exception_ptr error;
  std::optional<Response> answer;
  try {
    if (reader_.head().has_body()) {
      const bool complete = co_await receive_body();
      if (!complete) {
        co_return;
      }
    }
    if (const auto* sync = std::get_if<SyncHandler>(&handler)) {
      answer = (*sync)(request_);
    } else {
      co_await std::get<AsyncHandler>(handler)(*this);
    }
  } catch (...) {
    error = std::current_exception();
  }
  connection_->unwatch();
  body_ = {};
  close_ = close_ || connection_->overrun();
  if (connection_->gone()) {
    close_ = true;
    co_return;
  }
  if (error) {
    // Of a body that was not read to its end nothing after it could be understood.
    close_ = close_ || !body_done_;
    if (answer_ == Answer::kNone) {
      answer = failure(error);
    } else {
      (void)failure(error);
      close_ = true;
    }
  }
  if (answer) {
    (void)co_await send(std::move(*answer));
  }
  if (answer_ != Answer::kComplete) {
    close_ = true;
  }
}

Response Session::failure(std::exception_ptr error) {
  try {
    std::rethrow_exception(std::move(error));
  } catch (const proto::RequestError& refused) {
    return error_response(refused.error());
  } catch (const std::bad_alloc&) {
    context_.log.event(LogLevel::kWarning, "not enough memory for a request",
                       {{"id", request_.id}});
    return error_response(proto::out_of_memory());
  } catch (const std::exception& problem) {
    // The text may name files: it is for the log, not for the client.
    context_.log.event(LogLevel::kError, "a request failed",
                       {{"id", request_.id}, {"error", std::string_view(problem.what())}});
  } catch (...) {
    context_.log.event(LogLevel::kError, "a request failed", {{"id", request_.id}});
  }
  return error_response(proto::server_error("internal error; the log has request " + request_.id));
}

std::string_view Session::date() {
  const std::time_t now = std::time(nullptr);
  if (now != date_second_) {
    std::tm parts{};
    (void)gmtime_r(&now, &parts);
    std::array<char, 40> text{};
    const std::size_t size =
        std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
    date_.assign(text.data(), size);
    date_second_ = now;
  }
  return date_;
}

std::string Session::head_bytes(Response& response, Framing framing) {
  context_.cors.decorate(request_, response);
  close_ = close_ || draining_ || !request_.keep_alive || framing == Framing::kUntilClose ||
           context_.lifecycle.phase() == Phase::kLeaving;
  framing_ = framing;
  status_ = response.status();
  HeadOptions options;
  options.version = request_.version;
  options.keep_alive = !close_;
  options.framing = framing;
  options.date = date();
  options.request_id = request_.id;
  return serialize_head(response, options);
}

Task<bool> Session::send(Response response) {
  const std::string head = head_bytes(response, Framing::kLength);
  answer_ = Answer::kComplete;
  const std::string_view body = request_.head_only ? std::string_view() : response.body();
  const std::array buffers{net::const_buffer(head.data(), head.size()),
                           net::const_buffer(body.data(), body.size())};
  bytes_out_ += body.size();
  co_return co_await connection_->write(buffers);
}

Task<bool> Session::begin_stream(Response head) {
  const std::string bytes =
      head_bytes(head, request_.version >= 11 ? Framing::kChunked : Framing::kUntilClose);
  answer_ = Answer::kStreaming;
  const std::array buffers{net::const_buffer(bytes.data(), bytes.size())};
  co_return co_await connection_->write(buffers);
}

Task<bool> Session::write_stream(std::string_view bytes) {
  if (bytes.empty()) {
    co_return true;  // An empty chunk would end the body.
  }
  bytes_out_ += bytes.size();
  if (framing_ != Framing::kChunked) {
    const std::array buffers{net::const_buffer(bytes.data(), bytes.size())};
    co_return co_await connection_->write(buffers);
  }
  constexpr std::string_view kLineEnd = "\r\n";
  std::array<char, 20> size{};
  char* end = std::to_chars(size.data(), size.data() + size.size(), bytes.size(), 16).ptr;
  *end++ = '\r';
  *end++ = '\n';
  const std::array buffers{
      net::const_buffer(size.data(), static_cast<std::size_t>(end - size.data())),
      net::const_buffer(bytes.data(), bytes.size()),
      net::const_buffer(kLineEnd.data(), kLineEnd.size())};
  co_return co_await connection_->write(buffers);
}

Task<bool> Session::end_stream() {
  answer_ = Answer::kComplete;
  if (framing_ != Framing::kChunked) {
    co_return true;
  }
  constexpr std::string_view kLast = "0\r\n\r\n";
  const std::array buffers{net::const_buffer(kLast.data(), kLast.size())};
  co_return co_await connection_->write(buffers);
}

}  // namespace spel::server

// Paths and methods to handlers.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "server/exchange.h"

namespace spel::server {

/// Answers at once. May throw proto::RequestError.
using SyncHandler = std::function<Response(const Request&)>;
/// Answers over time.
using AsyncHandler = std::function<Task<void>(Exchange&)>;
using Handler = std::variant<SyncHandler, AsyncHandler>;

struct RouteOptions {
  bool needs_model = true;     ///< 503 while loading and while draining.
  bool is_public = false;      ///< Answered without an API key. Everything else asks for one.
  bool is_probe = false;       ///< Answered on spare connections; logged at debug level only.
  bool takes_rest = false;     ///< The last {…} matches all that is left of a path, "/" included.
  std::size_t body_bytes = 0;  ///< The largest body, where the configured one is too small.
};

struct Route {
  std::string pattern;  ///< Also its label in the metrics.
  RouteOptions options;
  std::vector<std::pair<Verb, Handler>> handlers;
  std::string allow;  ///< The Allow field.
  std::size_t index = 0;

  [[nodiscard]] const Handler* handler(Verb method) const;
};

/// Built once before listening; then immutable and safe from any thread.
class Router {
 public:
  /// A segment "{name}" of `pattern` matches one non-empty segment of a path; see takes_rest. The
  /// options of a pattern are those it was first added with.
  void add(Verb method, const std::string& pattern, const RouteOptions& options, Handler handler);

  /// Nullptr: no such path. Fills `parameters`.
  [[nodiscard]] const Route* find(std::string_view path,
                                  std::vector<std::string>& parameters) const;

  [[nodiscard]] std::vector<std::string> patterns() const;

 private:
  std::vector<std::unique_ptr<Route>> routes_;
  std::map<std::string, const Route*, std::less<>> exact_;  ///< Patterns without parameters.
};

}  // namespace spel::server

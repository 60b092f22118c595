// Cross-origin requests: which pages may talk to the server.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/message.h"

namespace spel::server {

/// Immutable, safe from any thread. Without origins there are no CORS fields at all.
class Cors {
 public:
  explicit Cors(const std::vector<std::string>& origins)
      : origins_(origins.begin(), origins.end()) {}

  /// False for a request that a page of another origin, not listed, makes and that could change
  /// something: browsers send those without asking first when they look simple enough.
  [[nodiscard]] bool allows(const Request& request) const;

  /// The answer to a preflight; `methods` are the route's. Nothing if it is not one.
  [[nodiscard]] std::optional<Response> preflight(const Request& request,
                                                  std::string_view methods) const;

  /// Adds what lets the page read the answer. The origin written is the configured one.
  void decorate(const Request& request, Response& response) const;

 private:
  std::set<std::string, std::less<>> origins_;
};

}  // namespace spel::server

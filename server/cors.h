// Cross-origin requests: which pages may talk to the server.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/message.h"

namespace spel::server {

/// Immutable, safe from any thread. Without origins there are no CORS fields at all. The origin "*"
/// stands for every page. Credentials of the browser (cookies) are never allowed: an API key is
/// what a page has to bring, as any other client.
class Cors {
 public:
  explicit Cors(const std::vector<std::string>& origins)
      : origins_(origins.begin(), origins.end()), any_(origins_.contains("*")) {}

  /// False for a request that a page of another origin, not listed, makes and that could change
  /// something: browsers send those without asking first when they look simple enough.
  [[nodiscard]] bool allows(const Request& request) const;

  /// The answer to a preflight; `methods` are the route's. Nothing if it is not one. The fields a
  /// page asks for are allowed, whatever their names: clients add their own (x-stainless-…), and
  /// none of them means anything here.
  [[nodiscard]] std::optional<Response> preflight(const Request& request,
                                                  std::string_view methods) const;

  /// Adds what lets the page read the answer. The origin written is the configured one.
  void decorate(const Request& request, Response& response) const;

 private:
  [[nodiscard]] bool lists(const std::string& origin) const {
    return any_ || origins_.contains(origin);
  }

  std::set<std::string, std::less<>> origins_;
  bool any_;
};

}  // namespace spel::server

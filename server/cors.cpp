#include "server/cors.h"

namespace spel::server {
namespace {

bool same_origin(const Request& request) {
  const std::size_t scheme = request.origin.find("://");
  return scheme != std::string::npos &&
         std::string_view(request.origin).substr(scheme + 3) == request.host;
}

}  // namespace

bool Cors::allows(const Request& request) const {
  const bool safe = request.method == Verb::get || request.method == Verb::options;
  return safe || request.origin.empty() || same_origin(request) ||
         origins_.contains(request.origin);
}

std::optional<Response> Cors::preflight(const Request& request, std::string_view methods) const {
  if (request.method != Verb::options || request.origin.empty() ||
      request.requested_method.empty() || !origins_.contains(request.origin)) {
    return std::nullopt;
  }
  Response response(204, {}, {});
  response.add_header("Access-Control-Allow-Methods", std::string(methods));
  response.add_header("Access-Control-Allow-Headers", "Authorization, Content-Type, X-Request-Id");
  response.add_header("Access-Control-Max-Age", "600");
  return response;
}

void Cors::decorate(const Request& request, Response& response) const {
  if (origins_.empty()) {
    return;
  }
  response.add_header("Vary", "Origin");
  const auto known = origins_.find(request.origin);
  if (known != origins_.end()) {
    response.add_header("Access-Control-Allow-Origin", *known);
    response.add_header("Access-Control-Expose-Headers", "X-Request-Id, Retry-After");
  }
}

}  // namespace spel::server

#include "server/cors.h"

#include <algorithm>

namespace spel::server {
namespace {

bool same_origin(const Request& request) {
  const std::size_t scheme = request.origin.find("://");
  return scheme != std::string::npos &&
         std::string_view(request.origin).substr(scheme + 3) == request.host;
}

/// The fields a preflight asks for, if they are a list of names as browsers write it; otherwise
/// those every client of this interface sends.
std::string allowed_fields(std::string_view requested) {
  constexpr std::string_view kUsual = "Authorization, Content-Type, X-Request-Id";
  const bool listed = std::all_of(requested.begin(), requested.end(), [](char c) {
    constexpr std::string_view kSymbols = "!#$%&'*+-.^_`|~, ";
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kSymbols.find(c) != std::string_view::npos;
  });
  return std::string(listed && !requested.empty() ? requested : kUsual);
}

}  // namespace

bool Cors::allows(const Request& request) const {
  const bool safe = request.method == Verb::get || request.method == Verb::options;
  return safe || request.origin.empty() || same_origin(request) || lists(request.origin);
}

std::optional<Response> Cors::preflight(const Request& request, std::string_view methods) const {
  if (request.method != Verb::options || request.origin.empty() ||
      request.requested_method.empty() || !lists(request.origin)) {
    return std::nullopt;
  }
  Response response(204, {}, {});
  response.add_header("Access-Control-Allow-Methods", std::string(methods));
  response.add_header("Access-Control-Allow-Headers", allowed_fields(request.requested_fields));
  response.add_header("Access-Control-Max-Age", "600");
  return response;
}

void Cors::decorate(const Request& request, Response& response) const {
  if (origins_.empty()) {
    return;
  }
  if (!any_) {
    response.add_header("Vary", "Origin");
  }
  const auto known = origins_.find(any_ ? "*" : request.origin);
  if (known != origins_.end()) {
    response.add_header("Access-Control-Allow-Origin", *known);
    response.add_header("Access-Control-Expose-Headers", "X-Request-Id, Retry-After");
  }
}

}  // namespace spel::server

#include "server/router.h"

#include <algorithm>

namespace spel::server {
namespace {

/// Takes the next segment off `path`, which begins with '/'.
std::string_view next_segment(std::string_view& path) {
  path.remove_prefix(1);
  const std::string_view segment = path.substr(0, std::min(path.find('/'), path.size()));
  path.remove_prefix(segment.size());
  return segment;
}

bool matches(const Route& route, std::string_view path, std::vector<std::string>& parameters) {
  std::string_view pattern = route.pattern;
  parameters.clear();
  while (!pattern.empty() && !path.empty()) {
    const std::string_view expected = next_segment(pattern);
    if (expected.starts_with('{') && pattern.empty() && route.options.takes_rest) {
      parameters.emplace_back(path.substr(1));
      return path.size() > 1;
    }
    const std::string_view found = next_segment(path);
    if (expected.starts_with('{')) {
      if (found.empty()) {
        return false;
      }
      parameters.emplace_back(found);
    } else if (expected != found) {
      return false;
    }
  }
  return pattern.empty() && path.empty();
}

}  // namespace

const Handler* Route::handler(Verb method) const {
  for (const auto& [verb, handler] : handlers) {
    if (verb == method) {
      return &handler;
    }
  }
  return nullptr;
}

void Router::add(Verb method, const std::string& pattern, const RouteOptions& options,
                 Handler handler) {
  auto known = std::find_if(routes_.begin(), routes_.end(),
                            [&](const auto& route) { return route->pattern == pattern; });
  if (known == routes_.end()) {
    auto route = std::make_unique<Route>();
    route->pattern = pattern;
    route->options = options;
    route->index = routes_.size();
    routes_.push_back(std::move(route));
    known = routes_.end() - 1;
    if (pattern.find('{') == std::string::npos) {
      exact_[pattern] = known->get();
    }
  }
  Route& route = **known;
  route.handlers.emplace_back(method, std::move(handler));
  route.allow += (route.allow.empty() ? "" : ", ") + std::string(to_string(method));
  if (method == Verb::get) {
    route.allow += ", HEAD";
  }
}

const Route* Router::find(std::string_view path, std::vector<std::string>& parameters) const {
  parameters.clear();
  if (const auto exact = exact_.find(path); exact != exact_.end()) {
    return exact->second;
  }
  if (!path.starts_with('/')) {
    return nullptr;
  }
  for (const auto& route : routes_) {
    if (route->pattern.find('{') != std::string::npos && matches(*route, path, parameters)) {
      return route.get();
    }
  }
  return nullptr;
}

std::vector<std::string> Router::patterns() const {
  std::vector<std::string> result;
  for (const auto& route : routes_) {
    result.push_back(route->pattern);
  }
  return result;
}

}  // namespace spel::server

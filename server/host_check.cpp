#include "server/host_check.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>

namespace spel::server {
namespace {

/// Without port and brackets, in lower case, without the root's dot.
std::string bare_name(std::string_view host) {
  if (host.starts_with('[')) {
    const std::size_t end = std::min(host.find(']'), host.size());
    host = host.substr(1, end - 1);
  } else if (std::count(host.begin(), host.end(), ':') <= 1) {
    host = host.substr(0, host.find(':'));
  }
  if (host.ends_with('.')) {
    host.remove_suffix(1);
  }
  std::string result(host);
  std::transform(result.begin(), result.end(), result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return result;
}

}  // namespace

HostCheck::HostCheck(const std::string& bound, const std::vector<std::string>& allowed)
    : names_{"localhost", "127.0.0.1", "::1"},
      any_address_(bound == "0.0.0.0" || bound == "::" || bound == "*") {
  if (!any_address_ && !bound.empty()) {
    names_.insert(bare_name(bound));
  }
  for (const std::string& name : allowed) {
    any_name_ = any_name_ || name == "*";
    names_.insert(bare_name(name));
  }
}

bool HostCheck::allows(std::string_view host) const {
  const std::string name = bare_name(host);
  if (any_name_ || names_.contains(name)) {
    return true;
  }
  if (!any_address_) {
    return false;
  }
  boost::system::error_code error;
  (void)boost::asio::ip::make_address(name, error);
  return !error;
}

}  // namespace spel::server

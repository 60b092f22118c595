// Which Host values are answered: a page that points its own name at this machine (DNS rebinding)
// is not among them.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spel::server {

/// Immutable, safe from any thread.
class HostCheck {
 public:
  /// `bound` is what the server listens on. Bound to every interface, any literal address is
  /// accepted as well: rebinding needs a name. `allowed` with "*" accepts every name, and with it
  /// every page that points its own name here.
  HostCheck(const std::string& bound, const std::vector<std::string>& allowed);

  /// `host` is a Host field or an authority, with or without a port.
  [[nodiscard]] bool allows(std::string_view host) const;

 private:
  std::set<std::string, std::less<>> names_;
  bool any_address_ = false;
  bool any_name_ = false;
};

}  // namespace spel::server

#include "config/web_names.h"

#include <algorithm>

namespace spel::config {

namespace {

constexpr std::string_view kAny = "*";
constexpr std::string_view kSchemeEnd = "://";

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return result;
}

/// Without what follows the host and port, and without a user before them.
std::string_view authority_of(std::string_view text) {
  text = text.substr(0, text.find_first_of("/?#"));
  const auto user = text.rfind('@');
  return user == std::string_view::npos ? text : text.substr(user + 1);
}

bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7F; });
}

std::string write(const std::string& text) { return "write " + text; }

}  // namespace

std::string origin_advice(std::string_view origin) {
  if (origin == kAny) {
    return {};
  }
  if (origin == "null") {
    return "\"null\" is what sandboxed pages of any site send: write * if all pages are meant";
  }
  if (origin.find('*') != std::string_view::npos) {
    return "patterns are not understood: write each origin, or * alone for all pages";
  }
  if (!is_plain(origin)) {
    return "write the origin as browsers send it: no blanks, other alphabets as xn--…";
  }
  const auto end = origin.find(kSchemeEnd);
  if (end == 0 || end == std::string_view::npos) {
    const std::string host = lower(authority_of(origin));
    return write("http://" + host + " or https://" + host);
  }
  const std::string scheme = lower(origin.substr(0, end));
  std::string host = lower(authority_of(origin.substr(end + kSchemeEnd.size())));
  if (host.empty()) {
    return write("scheme://host");
  }
  // Browsers leave out the port that a scheme implies.
  const std::string_view implied = scheme == "http" ? ":80" : scheme == "https" ? ":443" : "";
  if (!implied.empty() && host.ends_with(implied)) {
    host.resize(host.size() - implied.size());
  }
  const std::string meant = scheme + std::string(kSchemeEnd) + host;
  return meant == origin ? std::string() : write(meant);
}

std::string host_advice(std::string_view host) {
  if (host == kAny) {
    return {};
  }
  if (host.find('*') != std::string_view::npos) {
    return "patterns are not understood: write each name, or * alone for all names";
  }
  if (!is_plain(host)) {
    return "write the name as browsers send it: no blanks, other alphabets as xn--…";
  }
  const auto scheme = host.find(kSchemeEnd);
  const std::string_view rest =
      scheme == std::string_view::npos ? host : host.substr(scheme + kSchemeEnd.size());
  const std::string_view meant = authority_of(rest);
  return meant == host ? std::string() : write(meant.empty() ? "a host name" : std::string(meant));
}

}  // namespace spel::config

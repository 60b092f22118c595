// The command lines of the tools: positional arguments, --name value, --name=value, and flags.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace spel::engine::tools {

/// What a tool accepts.
struct OptionNames {
  std::set<std::string> with_value;  ///< Without the dashes.
  std::set<std::string> flags;
  std::size_t positional_max = 0;
};

/// A parsed command line. Throws Error(kInvalidArgument) naming the argument for anything not in
/// `names`, a missing value, or an option given twice.
class Options {
 public:
  Options(std::span<const std::string> args, const OptionNames& names);

  [[nodiscard]] const std::vector<std::string>& positional() const noexcept { return positional_; }
  [[nodiscard]] bool has(const std::string& name) const;
  [[nodiscard]] std::optional<std::string> value(const std::string& name) const;

 private:
  std::vector<std::string> positional_;
  std::map<std::string, std::string> values_;
  std::set<std::string> flags_;
};

/// A whole decimal number in [0, max], or Error(kInvalidArgument) naming `what`.
[[nodiscard]] std::uint64_t parse_unsigned(const std::string& what, const std::string& text,
                                           std::uint64_t max);
/// The same in [min, max].
[[nodiscard]] std::uint64_t parse_between(const std::string& what, const std::string& text,
                                          std::uint64_t min, std::uint64_t max);

/// A finite number above 0, or Error(kInvalidArgument) naming `what`.
[[nodiscard]] double parse_positive(const std::string& what, const std::string& text);

}  // namespace spel::engine::tools

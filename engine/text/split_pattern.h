// The regular expression that cuts a text into words. Internal to engine/text.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace spel::engine {

/// Matches and what lies between them become pieces of their own. Immutable, safe from any thread.
class SplitPattern {
 public:
  /// Throws Error(kCorrupt) with `where` and the place in the pattern, if it cannot be compiled.
  SplitPattern(const std::string& pattern, const std::string& where);
  ~SplitPattern();
  SplitPattern(SplitPattern&&) noexcept;
  SplitPattern& operator=(SplitPattern&&) noexcept;

  /// Calls `piece` for each, in order; none is empty, and together they are `text`, which is valid
  /// UTF-8. Throws Error(kInvalidArgument) if a match takes more steps than a text is given.
  void split(std::string_view text, const std::function<void(std::string_view)>& piece) const;

 private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace spel::engine

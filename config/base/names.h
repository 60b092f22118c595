// Names that settings, requests, answers, logs and metrics share, each spelled here and nowhere
// else.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "config/base/limits.h"

namespace spel {

/// The values of an enumeration with their names, in the order in which they are listed.
template <typename Enum>
inline constexpr std::array<std::pair<Enum, std::string_view>, 0> kNames{};

/// Empty for a value without one.
template <typename Enum>
[[nodiscard]] constexpr std::string_view name_of(Enum value) noexcept {
  for (const auto& [each, name] : kNames<Enum>) {
    if (each == value) {
      return name;
    }
  }
  return {};
}

template <typename Enum>
[[nodiscard]] constexpr std::optional<Enum> value_named(std::string_view wanted) noexcept {
  for (const auto& [value, name] : kNames<Enum>) {
    if (name == wanted) {
      return value;
    }
  }
  return std::nullopt;
}

/// For messages: "a", "b"`last`"c", the names in quotes.
template <typename Enum>
[[nodiscard]] std::string quoted_names(std::string_view last = ", ") {
  std::string list;
  for (const auto& entry : kNames<Enum>) {
    if (!list.empty()) {
      list += &entry == &kNames<Enum>.back() ? last : ", ";
    }
    list.append("\"").append(entry.second).append("\"");
  }
  return list;
}

/// off: no governor, always k proposals. trip: the document's. adaptive: picks k by measured gain.
enum class GovernorKind { kOff, kTrip, kAdaptive };
template <>
inline constexpr std::array<std::pair<GovernorKind, std::string_view>, 3> kNames<GovernorKind>{
    {{GovernorKind::kOff, "off"},
     {GovernorKind::kTrip, "trip"},
     {GovernorKind::kAdaptive, "adaptive"}}};

/// How a generation ends.
enum class FinishReason { kStop, kLength, kCancelled, kDeadline, kError };
template <>
inline constexpr std::array<std::pair<FinishReason, std::string_view>, 5> kNames<FinishReason>{
    {{FinishReason::kStop, "stop"},
     {FinishReason::kLength, "length"},
     {FinishReason::kCancelled, "cancelled"},
     {FinishReason::kDeadline, "deadline"},
     {FinishReason::kError, "error"}}};

/// How notes are ranked for a query; see memory/README.md.
enum class Ranker {
  kSum,     ///< The query's keys against the note's, token by token over all channels.
  kNative,  ///< The document's: sum over channels of query times key.
  kVotes,   ///< The document's diagnostic: each channel votes for its best note.
  kText,    ///< What the query's text and the note's have in common; asks nothing of the model.
  kFused,   ///< kText, and kSum among what it holds for much the same.
};
inline constexpr Ranker kRankerDefault = Ranker::kFused;
template <>
inline constexpr std::array<std::pair<Ranker, std::string_view>, 5> kNames<Ranker>{
    {{Ranker::kFused, "fused"},
     {Ranker::kText, "text"},
     {Ranker::kSum, "sum"},
     {Ranker::kNative, "native"},
     {Ranker::kVotes, "votes"}}};

/// 1 … kBankNameMax of [A-Za-z0-9_-]: safe in a path, in a URL and in a log.
[[nodiscard]] constexpr bool is_bank_name(std::string_view name) noexcept {
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  return !name.empty() && name.size() <= limits::kBankNameMax &&
         name.find_first_not_of(kAllowed) == std::string_view::npos;
}
/// What one is, for messages.
[[nodiscard]] inline std::string bank_name_form() {
  return "1 to " + std::to_string(limits::kBankNameMax) + R"( letters, digits, "-" and "_")";
}

}  // namespace spel

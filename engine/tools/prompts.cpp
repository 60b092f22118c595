#include "engine/tools/prompts.h"

#include <array>
#include <fstream>
#include <random>
#include <string_view>

#include "config/base/error.h"

namespace spel::engine::tools {
namespace {

constexpr std::string_view kFact = "KEY_15=1907; ";
constexpr std::string_view kQuery = "?KEY_15=";
constexpr std::array<std::size_t, 3> kFactOffsets = {30, 158, 286};
constexpr std::size_t kRecallTokens = 379;

constexpr std::array<std::string_view, 24> kWords = {
    "river",  "garden", "winter",  "letter",  "copper",  "window", "market",  "silver",
    "bridge", "candle", "forest",  "orchard", "harbor",  "meadow", "thunder", "pocket",
    "saddle", "basket", "lantern", "pebble",  "feather", "kettle", "ribbon",  "anchor"};

bool is_blank(const std::string& line) {
  return line.find_first_not_of(" \t\r") == std::string::npos;
}

}  // namespace

std::vector<TokenId> random_prompt(std::size_t count, std::size_t vocab, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) {
    token = static_cast<TokenId>(generator() % vocab);
  }
  return tokens;
}

std::string recall_prompt() {
  std::string text;
  std::size_t word = 0;
  // Words up to exactly `end`, the last one cut where the fact or the query begins.
  const auto fill_to = [&](std::size_t end) {
    while (text.size() < end) {
      text += kWords[word++ * 7 % kWords.size()];
      text += ' ';
    }
    text.resize(end);
    text.back() = ' ';
  };
  for (const std::size_t offset : kFactOffsets) {
    fill_to(offset);
    text += kFact;
  }
  fill_to(kRecallTokens - kQuery.size());
  return text.append(kQuery);
}

std::vector<std::string> read_prompts(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    throw Error(ErrorCode::kNotFound, "--prompts: cannot read " + path);
  }
  std::vector<std::string> lines;
  bool blank_lines = false;
  for (std::string line; std::getline(file, line);) {
    // A blank line at either end separates nothing.
    blank_lines = blank_lines || (is_blank(line) && !lines.empty());
    if (!is_blank(line) || !lines.empty()) {
      lines.push_back(std::move(line));
    }
  }
  while (!lines.empty() && is_blank(lines.back())) {
    lines.pop_back();
  }
  std::vector<std::string> prompts;
  bool open = false;
  for (const std::string& line : lines) {
    if (is_blank(line)) {
      open = false;
    } else if (open && blank_lines) {
      prompts.back() += "\n" + line;
    } else {
      prompts.push_back(line);
      open = true;
    }
  }
  if (prompts.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "--prompts: " + path + " holds no prompt");
  }
  return prompts;
}

}  // namespace spel::engine::tools

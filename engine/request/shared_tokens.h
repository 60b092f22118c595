// A prompt on its way from a request's body to the sequence that reads it.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "engine/types.h"

namespace spel::engine {

/// Token ids that many read and nobody changes: copies share them, as the choices of one prompt do.
class SharedTokens {
 public:
  SharedTokens() = default;
  SharedTokens(std::vector<TokenId> tokens)  // NOLINT(google-explicit-constructor): what they are.
      : tokens_(std::make_shared<const std::vector<TokenId>>(std::move(tokens))) {}
  SharedTokens(std::initializer_list<TokenId> tokens) : SharedTokens(std::vector(tokens)) {}

  [[nodiscard]] std::size_t size() const noexcept { return tokens_ ? tokens_->size() : 0; }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] const TokenId* data() const noexcept { return tokens_ ? tokens_->data() : nullptr; }
  [[nodiscard]] const TokenId* begin() const noexcept { return data(); }
  [[nodiscard]] const TokenId* end() const noexcept { return data() + size(); }
  [[nodiscard]] TokenId front() const { return tokens_->front(); }
  [[nodiscard]] TokenId operator[](std::size_t i) const { return (*tokens_)[i]; }

 private:
  std::shared_ptr<const std::vector<TokenId>> tokens_;
};

}  // namespace spel::engine

#include "proto/vocabulary.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "proto/error_body.h"

namespace spel::proto {

namespace {

void require_in_vocabulary(const std::vector<TokenId>& ids, std::size_t vocab_size,
                           const std::string& param) {
  const auto place = std::find_if(ids.begin(), ids.end(), [&](TokenId id) {
    return id < 0 || static_cast<std::size_t>(id) >= vocab_size;
  });
  if (place != ids.end()) {
    throw RequestError(invalid_request(
        "\"" + param + "\" holds token id " + std::to_string(*place) +
            ", which is out of vocabulary (0 to " + std::to_string(vocab_size - 1) + ").",
        param, "out_of_vocabulary"));
  }
}

}  // namespace

void check_token_ids(const GenerationOptions& options, std::size_t vocab_size) {
  require_in_vocabulary(options.stop_token_ids, vocab_size, "stop_token_ids");
  std::vector<TokenId> biased;
  biased.reserve(options.logit_bias.size());
  for (const auto& [id, bias] : options.logit_bias) {
    biased.push_back(id);
  }
  require_in_vocabulary(biased, vocab_size, "logit_bias");
}

void check_token_ids(const CompletionRequest& request, std::size_t vocab_size) {
  check_token_ids(request.options, vocab_size);
  for (const auto& prompt : request.prompts) {
    if (const auto* ids = std::get_if<std::vector<TokenId>>(&prompt)) {
      require_in_vocabulary(*ids, vocab_size, "prompt");
    }
  }
}

void check_token_ids(const DetokenizeRequest& request, std::size_t vocab_size) {
  require_in_vocabulary(request.tokens, vocab_size, "tokens");
}

}  // namespace spel::proto

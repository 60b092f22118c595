#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "config/base/limits.h"
#include "proto/error_body.h"
#include "proto/generation_fields.h"

namespace spel::proto {

namespace {

using nlohmann::json;

/// A member other servers act on and we do not. Ignoring it would answer another question than the
/// one asked, so it is refused unless its value asks for nothing.
struct Unsupported {
  std::string_view name;
  std::string_view neutral;  ///< The value that asks for nothing, as JSON text; empty: see below.
};

constexpr std::array kUnsupported = {
    Unsupported{"suffix", ""},
    Unsupported{"min_tokens", "0"},
    Unsupported{"include_stop_str_in_output", ""},
    Unsupported{"use_beam_search", ""},
    Unsupported{"length_penalty", "1.0"},
    Unsupported{"repeat_penalty", "1.0"},
    Unsupported{"n_predict", ""},
    Unsupported{"n_probs", "0"},
    Unsupported{"prompt_logprobs", ""},
    Unsupported{"prompt_embeds", ""},
    Unsupported{"truncate_prompt_tokens", ""},
    Unsupported{"allowed_token_ids", ""},
    Unsupported{"bad_words", ""},
    Unsupported{"grammar", ""},
    Unsupported{"json_schema", ""},
    Unsupported{"structured_outputs", ""},
    Unsupported{"guided_json", ""},
    Unsupported{"guided_regex", ""},
    Unsupported{"guided_choice", ""},
    Unsupported{"guided_grammar", ""},
    Unsupported{"regex", ""},
    Unsupported{"ebnf", ""},
    Unsupported{"tools", ""},
    Unsupported{"tool_choice", R"("none")"},
    Unsupported{"functions", ""},
    Unsupported{"function_call", R"("none")"},
    Unsupported{"audio", ""},
    Unsupported{"prediction", ""},
    Unsupported{"web_search_options", ""},
    Unsupported{"lora", ""},
    Unsupported{"mirostat", "0"},
    Unsupported{"samplers", ""},
};

bool asks_for_nothing(const json& value, std::string_view neutral) {
  if (!neutral.empty()) {
    return value == json::parse(neutral);
  }
  if (value.is_boolean()) {
    return !value.get<bool>();
  }
  if (value.is_string()) {
    return value.get_ref<const std::string&>().empty();
  }
  return value.is_structured() && value.empty();
}

void refuse_unsupported(Fields& fields) {
  for (const auto& [name, neutral] : kUnsupported) {
    const json* value = fields.find(name);
    if (value != nullptr && !asks_for_nothing(*value, neutral)) {
      fields.fail(name, "is not supported by this server.", "unsupported_parameter");
    }
  }
  if (auto format = fields.object("response_format")) {
    const auto type = format->text("type", limits::kModelNameMax);
    if (type != "text") {
      fields.fail("response_format", R"(may only be {"type":"text"}.)", "unsupported_parameter");
    }
  }
}

/// `value` as the float nearest to it.
float to_float(double value) { return static_cast<float>(value); }

void read_sampling(Fields& fields, GenerationOptions& options) {
  options.temperature =
      to_float(fields.number("temperature", {.min = 0.0, .max = 2.0}).value_or(1.0));
  // vLLM's clients write "off" as -1, the rest as 0.
  constexpr std::int64_t kTopKMax = std::numeric_limits<std::int32_t>::max();
  const auto top_k = fields.integer("top_k", -1, kTopKMax).value_or(0);
  options.top_k = static_cast<std::int32_t>(std::max<std::int64_t>(top_k, 0));
  options.top_p = to_float(fields.number("top_p", {.min = 0.0, .max = 1.0}).value_or(1.0));
  if (options.top_p == 0.0F) {
    // The smallest set of tokens that reaches probability 0: the first one.
    options.top_k = 1;
    options.top_p = 1.0F;
  }
  options.min_p = to_float(fields.number("min_p", {.min = 0.0, .max = 1.0}).value_or(0.0));
  constexpr NumberRange kPenalty = {.min = -2.0, .max = 2.0};
  options.presence_penalty = to_float(fields.number("presence_penalty", kPenalty).value_or(0.0));
  options.frequency_penalty = to_float(fields.number("frequency_penalty", kPenalty).value_or(0.0));
  options.repetition_penalty =
      to_float(fields.number("repetition_penalty", {.min = 0.0, .max = 2.0, .min_open = true})
                   .value_or(1.0));
  if (options.repetition_penalty == 0.0F) {
    // Above 0 as a double and not as a float: dividing by it would give no number.
    options.repetition_penalty = std::numeric_limits<float>::min();
  }
  options.seed = fields.integer("seed", std::numeric_limits<std::int64_t>::min(),
                                std::numeric_limits<std::int64_t>::max());
}

void read_logit_bias(Fields& fields, GenerationOptions& options) {
  const json* bias = fields.find("logit_bias");
  if (bias == nullptr) {
    return;
  }
  if (!bias->is_object()) {
    fields.fail("logit_bias", "must be an object of token ids and numbers.", "invalid_value");
  }
  if (bias->size() > limits::kLogitBiasMax) {
    fields.fail("logit_bias",
                "must not have more than " + std::to_string(limits::kLogitBiasMax) + " entries.",
                "invalid_value");
  }
  for (const auto& [key, value] : bias->items()) {
    TokenId id = -1;
    const auto [end, status] = std::from_chars(key.data(), key.data() + key.size(), id);
    const bool canonical = key.size() == 1 || (!key.empty() && key.front() != '0');
    // Only the canonical form: "7" and "07" must not be two biases of one token.
    if (status != std::errc() || end != key.data() + key.size() || id < 0 || !canonical) {
      fields.fail("logit_bias", "must have token ids as keys, written as decimal integers.",
                  "invalid_value");
    }
    const double number = require_number(value, "logit_bias", {.min = -100.0, .max = 100.0});
    options.logit_bias.emplace_back(id, to_float(number));
  }
  std::sort(options.logit_bias.begin(), options.logit_bias.end());
}

void read_stops(Fields& fields, GenerationOptions& options) {
  const json* stop = fields.find("stop");
  if (stop != nullptr) {
    const auto add = [&](const json& value) {
      if (!value.is_string()) {
        fields.fail("stop", "must be a string or an array of strings.", "invalid_value");
      }
      const auto& text = value.get_ref<const std::string&>();
      if (text.empty() || text.size() > limits::kStopBytesMax) {
        fields.fail(
            "stop",
            "strings must be 1 to " + std::to_string(limits::kStopBytesMax) + " bytes long.",
            "invalid_value");
      }
      options.stop.push_back(text);
    };
    if (stop->is_array()) {
      if (stop->size() > limits::kStopStringsMax) {
        fields.fail(
            "stop",
            "must not have more than " + std::to_string(limits::kStopStringsMax) + " strings.",
            "invalid_value");
      }
      std::for_each(stop->begin(), stop->end(), add);
    } else {
      add(*stop);
    }
  }
  const json* ids = fields.find("stop_token_ids");
  if (ids != nullptr) {
    if (!ids->is_array() || ids->size() > limits::kStopTokensMax) {
      fields.fail(
          "stop_token_ids",
          "must be an array of at most " + std::to_string(limits::kStopTokensMax) + " token ids.",
          "invalid_value");
    }
    options.stop_token_ids = read_token_ids(*ids, "stop_token_ids");
  }
  options.ignore_eos = fields.boolean("ignore_eos").value_or(false);
}

void read_stream(Fields& fields, GenerationOptions& options) {
  options.stream = fields.boolean("stream").value_or(false);
  auto stream_options = fields.object("stream_options");
  if (!stream_options) {
    return;
  }
  if (!options.stream) {
    fields.fail("stream_options", "is only allowed with \"stream\": true.", "invalid_value");
  }
  options.stream_options.include_usage = stream_options->boolean("include_usage").value_or(false);
  options.unknown_fields += stream_options->unknown();
}

void read_speculation(Fields& fields, GenerationOptions& options) {
  auto members = fields.object("speculation");
  if (!members) {
    return;
  }
  SpeculationOptions& speculation = options.speculation;
  if (const auto mode = members->text("mode", limits::kModelNameMax)) {
    if (*mode == "on" || *mode == "off") {
      speculation.enabled = *mode == "on";
    } else if (*mode != "auto") {
      members->fail("mode", R"(must be "on", "off" or "auto".)", "invalid_value");
    }
  }
  speculation.k = members->count("k", 0, limits::kSpecKMax);
  if (speculation.k == 0U) {
    speculation.enabled = false;
  }
  if (const auto governor = members->text("governor", limits::kModelNameMax)) {
    speculation.governor = parse_governor(*governor);
    if (!speculation.governor) {
      members->fail("governor", R"(must be "off", "trip" or "adaptive".)", "invalid_value");
    }
  }
  speculation.alpha_threshold = members->number("alpha_threshold", {.min = 0.0, .max = 1.0});
  speculation.window = members->count("window", 1, limits::kGovernorWindowMax);
  options.unknown_fields += members->unknown();
}

void read_notebank(Fields& fields, GenerationOptions& options) {
  auto members = fields.object("notebank");
  if (!members) {
    return;
  }
  NoteBankOptions notebank;
  notebank.bank = members->text("bank", limits::kModelNameMax).value_or("");
  if (!is_bank_name(notebank.bank)) {
    members->fail("bank",
                  "must be a name of 1 to " + std::to_string(limits::kBankNameMax) +
                      " letters, digits, \"-\" and \"_\".",
                  "invalid_value");
  }
  notebank.top = members->count("top", 1, limits::kNoteTopMax).value_or(notebank.top);
  notebank.ranker = read_ranker(*members).value_or(notebank.ranker);
  options.unknown_fields += members->unknown();
  options.notebank = std::move(notebank);
}

}  // namespace

std::string_view governor_name(Governor governor) {
  switch (governor) {
    case Governor::kOff:
      return "off";
    case Governor::kTrip:
      return "trip";
    case Governor::kAdaptive:
      return "adaptive";
  }
  return "off";
}

std::optional<Governor> parse_governor(std::string_view name) {
  for (const auto governor : {Governor::kOff, Governor::kTrip, Governor::kAdaptive}) {
    if (name == governor_name(governor)) {
      return governor;
    }
  }
  return std::nullopt;
}

bool is_bank_name(std::string_view name) {
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  return !name.empty() && name.size() <= limits::kBankNameMax &&
         name.find_first_not_of(kAllowed) == std::string_view::npos;
}

void read_generation_options(Fields& fields, GenerationOptions& options) {
  options.model = fields.text("model", limits::kModelNameMax).value_or("");
  static_cast<void>(fields.find("user"));  // OpenAI's abuse tracking: nothing to do here.
  read_stream(fields, options);
  options.n = fields.count("n", 1, limits::kChoicesMax).value_or(1);
  if (const auto best_of = fields.count("best_of", 1, limits::kChoicesMax);
      best_of && *best_of != options.n) {
    fields.fail("best_of", "is only supported when it equals \"n\".", "unsupported_parameter");
  }
  read_sampling(fields, options);
  read_logit_bias(fields, options);
  read_stops(fields, options);
  options.return_token_ids = fields.boolean("return_token_ids").value_or(false);
  read_speculation(fields, options);
  read_notebank(fields, options);
  refuse_unsupported(fields);
}

std::optional<Ranker> read_ranker(Fields& fields) {
  const auto name = fields.text("ranker", limits::kModelNameMax);
  if (!name) {
    return std::nullopt;
  }
  const auto ranker = ranker_of(*name);
  if (!ranker) {
    fields.fail("ranker", "must be one of " + ranker_names() + ".", "invalid_value");
  }
  return ranker;
}

std::vector<TokenId> read_token_ids(const json& array, const std::string& param) {
  std::vector<TokenId> ids;
  ids.reserve(array.size());
  for (const auto& value : array) {
    ids.push_back(static_cast<TokenId>(require_integer(value, param, 0, kTokenIdMax)));
  }
  return ids;
}

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

void check_token_ids(const GenerationOptions& options, std::size_t vocab_size) {
  require_in_vocabulary(options.stop_token_ids, vocab_size, "stop_token_ids");
  std::vector<TokenId> biased;
  biased.reserve(options.logit_bias.size());
  for (const auto& [id, bias] : options.logit_bias) {
    biased.push_back(id);
  }
  require_in_vocabulary(biased, vocab_size, "logit_bias");
}

}  // namespace spel::proto

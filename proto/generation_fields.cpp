#include "proto/generation_fields.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "config/base/limits.h"

namespace spel::proto {

namespace {

using json = JsonValue;

void read_response_format(Fields& fields) {
  auto format = fields.object("response_format");
  if (!format) {
    return;
  }
  if (format->text("type", limits::kModelNameMax) != "text") {
    fields.fail("response_format", R"(may only be {"type":"text"}.)", "unsupported_parameter");
  }
  format->refuse_unknown();
}

/// `value` as the float nearest to it.
float to_float(double value) { return static_cast<float>(value); }

std::optional<float> read_float(Fields& fields, std::string_view name, const NumberRange& range) {
  const auto number = fields.number(name, range);
  return number ? std::optional(to_float(*number)) : std::nullopt;
}

void read_sampling(Fields& fields, GenerationOptions& options) {
  options.temperature = read_float(fields, "temperature", {.min = 0.0, .max = 2.0});
  // vLLM's clients write "off" as -1, the rest as 0.
  constexpr std::int64_t kTopKMax = std::numeric_limits<std::int32_t>::max();
  if (const auto top_k = fields.integer("top_k", -1, kTopKMax)) {
    options.top_k = static_cast<std::int32_t>(std::max<std::int64_t>(*top_k, 0));
  }
  options.top_p = read_float(fields, "top_p", {.min = 0.0, .max = 1.0});
  if (options.top_p == 0.0F) {
    // The smallest set of tokens that reaches probability 0: the first one.
    options.top_k = 1;
    options.top_p = 1.0F;
  }
  options.min_p = read_float(fields, "min_p", {.min = 0.0, .max = 1.0});
  constexpr NumberRange kPenalty = {.min = -2.0, .max = 2.0};
  options.presence_penalty = read_float(fields, "presence_penalty", kPenalty).value_or(0.0F);
  options.frequency_penalty = read_float(fields, "frequency_penalty", kPenalty).value_or(0.0F);
  options.repetition_penalty =
      read_float(fields, "repetition_penalty", {.min = 0.0, .max = 2.0, .min_open = true});
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
    // Only the canonical form: "7", "07" and "-0" must not be several biases of one token.
    if (status != std::errc() || end != key.data() + key.size() || std::to_string(id) != key ||
        id < 0) {
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
      const auto& text = value.text();
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
  StreamOptions& wanted = options.stream_options;
  wanted.include_usage = stream_options->boolean("include_usage").value_or(false);
  wanted.continuous_usage =
      stream_options->boolean("continuous_usage_stats").value_or(false) && wanted.include_usage;
  stream_options->ignore({"include_obfuscation"});  // Padding against eavesdroppers.
  stream_options->refuse_unknown();
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
    speculation.governor = value_named<GovernorKind>(*governor);
    if (!speculation.governor) {
      members->fail("governor", "must be " + quoted_names<GovernorKind>(" or ") + ".",
                    "invalid_value");
    }
  }
  speculation.alpha_threshold = members->number("alpha_threshold", {.min = 0.0, .max = 1.0});
  speculation.window = members->count("window", 1, limits::kGovernorWindowMax);
  members->refuse_unknown();
}

void read_notebank(Fields& fields, GenerationOptions& options, const std::string& bank) {
  static const JsonValue kNone = JsonValue::object();
  auto members = fields.object("notebank");
  if (!members && bank.empty()) {
    return;
  }
  if (!members) {
    members.emplace(kNone, "notebank.");
  }
  NoteBankOptions notebank;
  if (const json* named = members->find("bank");
      !bank.empty() && named != nullptr && !(*named == json(bank))) {
    members->fail("bank", "is not the bank of the path: name it once.", "invalid_value");
  }
  notebank.bank = members->text("bank", limits::kModelNameMax).value_or(bank);
  if (!is_bank_name(notebank.bank)) {
    members->fail("bank", "must be a name of " + bank_name_form() + ".", "invalid_value");
  }
  notebank.top = members->count("top", 1, limits::kNoteTopMax).value_or(notebank.top);
  notebank.ranker = read_ranker(*members).value_or(notebank.ranker);
  if (!bank.empty()) {
    // Beside the path's bank they may stand in the body itself.
    json beside = json::object();
    for (const char* name : {"top", "ranker"}) {
      if (const json* value = fields.find(name)) {
        beside.add_member(name, *value);
      }
    }
    Fields own(beside, "notebank.");
    notebank.top = own.count("top", 1, limits::kNoteTopMax).value_or(notebank.top);
    notebank.ranker = read_ranker(own).value_or(notebank.ranker);
  }
  members->refuse_unknown();
  options.notebank = std::move(notebank);
}

}  // namespace

std::optional<std::size_t> read_max_tokens(Fields& fields) {
  const auto older = fields.count("max_tokens", 0, kMaxTokensMax);
  const auto newer = fields.count("max_completion_tokens", 0, kMaxTokensMax);
  if (older && newer && *older != *newer) {
    fields.fail("max_completion_tokens", "contradicts \"max_tokens\".", "invalid_value");
  }
  return newer ? newer : older;
}

void read_generation_options(Fields& fields, Endpoints endpoint, GenerationOptions& options,
                             const std::string& bank) {
  options.model = fields.text("model", limits::kModelNameMax).value_or("");
  read_stream(fields, options);
  options.n = fields.count("n", 1, limits::kChoicesMax).value_or(1);
  if (const auto best_of = fields.count("best_of", 1, limits::kChoicesMax);
      best_of && *best_of != options.n) {
    fields.fail("best_of", "is only supported when it equals \"n\".", "unsupported_parameter");
  }
  options.min_tokens = fields.count("min_tokens", 0, kMaxTokensMax).value_or(0);
  if (options.max_tokens && options.min_tokens > *options.max_tokens) {
    fields.fail("min_tokens",
                "must not be more than \"max_tokens\", which is " +
                    std::to_string(*options.max_tokens) + ".",
                "invalid_value");
  }
  read_sampling(fields, options);
  read_logit_bias(fields, options);
  read_stops(fields, options);
  options.return_token_ids = fields.boolean("return_token_ids").value_or(false);
  options.skip_special_tokens = fields.boolean("skip_special_tokens").value_or(true);
  options.add_special_tokens = fields.boolean("add_special_tokens");
  read_response_format(fields);
  read_speculation(fields, options);
  read_notebank(fields, options, bank);
  refuse_foreign_fields(fields, endpoint);
}

std::optional<Ranker> read_ranker(Fields& fields) {
  const auto name = fields.text("ranker", limits::kModelNameMax);
  if (!name) {
    return std::nullopt;
  }
  const auto ranker = value_named<Ranker>(*name);
  if (!ranker) {
    fields.fail("ranker", "must be one of " + quoted_names<Ranker>() + ".", "invalid_value");
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

}  // namespace spel::proto

#include "proto/foreign_fields.h"

#include <algorithm>
#include <array>
#include <string>

namespace spel::proto {

namespace {

using json = JsonValue;

constexpr std::string_view kUseMaxTokens = R"(use "max_tokens")";
constexpr std::string_view kNoConstraints = "the text cannot be held to a grammar or a schema";
constexpr std::string_view kRawPrompt = "a prompt is read as it is, whatever it opens";
constexpr std::string_view kNoTools = "this model calls no tools";

constexpr auto kChat = Endpoints::kChat;
constexpr auto kCompletions = Endpoints::kCompletions;

constexpr std::array kTable = {
    // How long.
    ForeignField{"max_new_tokens", kNothing, kUseMaxTokens},
    ForeignField{"n_predict", kNothing, kUseMaxTokens},
    ForeignField{"num_predict", kNothing, kUseMaxTokens},
    ForeignField{"max_length", kNothing, kUseMaxTokens},
    ForeignField{"max_tokens_to_sample", kNothing, kUseMaxTokens},
    ForeignField{"min_new_tokens", "[0]", R"(use "min_tokens")"},
    ForeignField{"min_length", "[0]", R"(use "min_tokens")"},
    ForeignField{"max_time", kNothing, ""},
    ForeignField{"t_max_predict_ms", "[0,-1]", ""},
    ForeignField{"n_indent", "[0]", ""},
    ForeignField{"thinking_token_budget", kNothing, kRawPrompt, kCompletions},
    ForeignField{"thinking_budget", kNothing, kRawPrompt, kCompletions},
    ForeignField{"enable_thinking", kNothing, kRawPrompt, kCompletions},
    ForeignField{"reasoning_effort", R"(["none"])", kRawPrompt, kCompletions},
    ForeignField{"reasoning", kNothing, R"(chat has "reasoning_effort")"},
    ForeignField{"think", kNothing, R"(chat has "enable_thinking")"},
    ForeignField{"verbosity", R"(["medium"])", ""},

    // Where it stops.
    ForeignField{"stop_sequences", kNothing, R"(use "stop")"},
    ForeignField{"stop_regex", kNothing, R"(use "stop")"},
    ForeignField{"include_stop_str_in_output", kNothing, ""},
    ForeignField{"no_stop_trim", kNothing, ""},
    ForeignField{"repetition_detection", kNothing, ""},
    ForeignField{"early_stopping", kNothing, ""},

    // How tokens are chosen.
    ForeignField{"do_sample", "[true]", R"(use "temperature": 0)"},
    ForeignField{"use_beam_search", kNothing, ""},
    ForeignField{"num_beams", "[1]", ""},
    ForeignField{"num_beam_groups", "[1]", ""},
    ForeignField{"diversity_penalty", "[0]", ""},
    ForeignField{"length_penalty", "[1]", ""},
    ForeignField{"penalty_alpha", "[0]", ""},
    ForeignField{"guidance_scale", "[1]", ""},
    ForeignField{"repeat_penalty", "[1]", R"(use "repetition_penalty")"},
    ForeignField{"repeat_last_n", "[-1]", "penalties look back on everything"},
    ForeignField{"penalty_last_n", "[-1]", "penalties look back on everything"},
    ForeignField{"penalize_nl", "[false]", ""},
    ForeignField{"encoder_repetition_penalty", "[1]", ""},
    ForeignField{"no_repeat_ngram_size", "[0]", ""},
    ForeignField{"typical_p", "[1]", ""},
    ForeignField{"typical", "[1]", ""},
    ForeignField{"tfs_z", "[1]", ""},
    ForeignField{"tfs", "[1]", ""},
    ForeignField{"top_a", "[0]", ""},
    ForeignField{"top_n_sigma", "[-1,0]", ""},
    ForeignField{"epsilon_cutoff", "[0]", ""},
    ForeignField{"eta_cutoff", "[0]", ""},
    ForeignField{"min_keep", "[0,1]", ""},
    ForeignField{"dynatemp_range", "[0]", ""},
    ForeignField{"dynatemp_exponent", kAnything, ""},
    ForeignField{"smoothing_factor", "[0]", ""},
    ForeignField{"smoothing_curve", kAnything, ""},
    ForeignField{"mirostat", "[0]", ""},
    ForeignField{"mirostat_mode", "[0]", ""},
    ForeignField{"mirostat_tau", kAnything, ""},
    ForeignField{"mirostat_eta", kAnything, ""},
    ForeignField{"dry_multiplier", "[0]", ""},
    ForeignField{"dry_base", kAnything, ""},
    ForeignField{"dry_allowed_length", kAnything, ""},
    ForeignField{"dry_penalty_last_n", kAnything, ""},
    ForeignField{"dry_sequence_breakers", kAnything, ""},
    ForeignField{"xtc_probability", "[0]", ""},
    ForeignField{"xtc_threshold", kAnything, ""},
    ForeignField{"adaptive_target", "[-1]", ""},
    ForeignField{"adaptive_decay", kAnything, ""},
    ForeignField{"samplers", kNothing, ""},
    ForeignField{"sampler_seq", kNothing, ""},
    ForeignField{"sampler_order", kNothing, ""},
    ForeignField{"temperature_last", "[false]", ""},
    ForeignField{"logits_processors", kNothing, ""},
    ForeignField{"custom_logit_processor", kNothing, ""},
    ForeignField{"watermark", kNothing, ""},
    ForeignField{"bad_words", kNothing, R"(use "logit_bias")"},
    ForeignField{"bad_words_ids", kNothing, R"(use "logit_bias")"},
    ForeignField{"banned_tokens", kNothing, R"(use "logit_bias")"},
    ForeignField{"banned_strings", kNothing, R"(use "logit_bias")"},
    ForeignField{"custom_token_bans", kNothing, R"(use "logit_bias")"},
    ForeignField{"suppress_tokens", kNothing, R"(use "logit_bias")"},
    ForeignField{"allowed_token_ids", kNothing, R"(use "logit_bias")"},

    // What the text must look like.
    ForeignField{"grammar", kNothing, kNoConstraints},
    ForeignField{"grammar_lazy", kNothing, kNoConstraints},
    ForeignField{"json_schema", kNothing, kNoConstraints},
    ForeignField{"structured_outputs", kNothing, kNoConstraints},
    ForeignField{"guided_json", kNothing, kNoConstraints},
    ForeignField{"guided_regex", kNothing, kNoConstraints},
    ForeignField{"guided_choice", kNothing, kNoConstraints},
    ForeignField{"guided_grammar", kNothing, kNoConstraints},
    ForeignField{"structural_tag", kNothing, kNoConstraints},
    ForeignField{"regex", kNothing, kNoConstraints},
    ForeignField{"ebnf", kNothing, kNoConstraints},
    ForeignField{"format", kNothing, kNoConstraints},

    // What is read before it.
    ForeignField{"suffix", kNothing, ""},
    ForeignField{"input_prefix", kNothing, ""},
    ForeignField{"input_suffix", kNothing, ""},
    ForeignField{"input_extra", kNothing, ""},
    ForeignField{"inputs", kNothing, R"(use "prompt" or "messages")"},
    ForeignField{"input", kNothing, R"(use "prompt" or "messages")"},
    ForeignField{"context", kNothing, ""},
    ForeignField{"system", kNothing, R"(use a message of role "system")"},
    ForeignField{"template", kNothing, "the model's own template is used"},
    ForeignField{"raw", kNothing, ""},
    ForeignField{"documents", kNothing, ""},
    ForeignField{"images", kNothing, "this model reads text"},
    ForeignField{"image_data", kNothing, "this model reads text"},
    ForeignField{"multi_modal_data", kNothing, "this model reads text"},
    ForeignField{"prompt_embeds", kNothing, ""},
    ForeignField{"input_embeds", kNothing, ""},
    ForeignField{"truncate", kNothing, "a prompt is read whole or refused"},
    ForeignField{"truncate_prompt_tokens", kNothing, "a prompt is read whole or refused"},
    ForeignField{"truncate_sequence", kNothing, "a prompt is read whole or refused"},
    ForeignField{"n_keep", kAnything, ""},     // Acts when a prompt is cut.
    ForeignField{"n_discard", kAnything, ""},  // Likewise.
    ForeignField{"parse_special", "[false]", "names of tokens in messages are text", kChat},
    ForeignField{"prompt", kNothing, R"(use "messages")", kChat},
    ForeignField{"messages", kNothing, R"(use "prompt")", kCompletions},
    ForeignField{"echo", kNothing, "", kChat},
    ForeignField{"chat_template", kNothing, "the model's own template is used"},
    ForeignField{"chat_template_kwargs", kAnything, "", kCompletions},
    ForeignField{"chat_template_content_format", kAnything, ""},
    ForeignField{"add_generation_prompt", kAnything, "", kCompletions},
    ForeignField{"continue_final_message", kAnything, "", kCompletions},

    // What the answer holds.
    ForeignField{"return_full_text", kNothing, R"(use "echo")"},
    ForeignField{"n_probs", "[0]", R"(use "logprobs")"},
    ForeignField{"top_n_tokens", "[0]", R"(use "logprobs")"},
    ForeignField{"top_logprobs", "[0]", R"(use "logprobs")", kCompletions},
    ForeignField{"prompt_logprobs", kNothing, R"(use "echo" with "logprobs")"},
    ForeignField{"decoder_input_details", kNothing, R"(use "echo" with "logprobs")"},
    ForeignField{"post_sampling_probs", kNothing, ""},
    ForeignField{"logprob_start_len", kNothing, R"(use "echo" with "logprobs")"},
    ForeignField{"return_tokens", kNothing, R"(use "return_token_ids")"},
    ForeignField{"return_tokens_as_token_ids", kNothing, R"(use "return_token_ids")"},
    ForeignField{"return_hidden_states", kNothing, ""},
    ForeignField{"return_progress", kNothing, ""},
    ForeignField{"timings_per_token", kNothing, R"(use "stream_options")"},
    ForeignField{"response_fields", kNothing, ""},
    ForeignField{"details", kNothing, R"(use "logprobs")"},
    ForeignField{"detokenize", "[true]", R"(use "return_token_ids")"},
    ForeignField{"spaces_between_special_tokens", kAnything, ""},
    ForeignField{"num_return_sequences", "[1]", R"(use "n")"},
    ForeignField{"n_cmpl", "[1]", R"(use "n")"},
    ForeignField{"audio", kNothing, ""},
    ForeignField{"modalities", R"([["text"]])", ""},
    ForeignField{"web_search_options", kNothing, ""},
    ForeignField{"moderation", kNothing, ""},

    // Tools.
    ForeignField{"tools", kNothing, kNoTools},
    ForeignField{"tool_choice", R"(["none","auto"])", kNoTools},
    ForeignField{"functions", kNothing, kNoTools},
    ForeignField{"function_call", R"(["none","auto"])", kNoTools},
    ForeignField{"parallel_tool_calls", kAnything, ""},  // There are none to be parallel.

    // Another model than the resident one, or another place for the settings.
    ForeignField{"lora", kNothing, ""},
    ForeignField{"lora_path", kNothing, ""},
    ForeignField{"adapter_id", kNothing, ""},
    ForeignField{"control_vectors", kNothing, ""},
    ForeignField{"options", kNothing, "put its members beside the prompt"},
    ForeignField{"parameters", kNothing, "put its members beside the prompt"},
    ForeignField{"sampling_params", kNothing, "put its members beside the prompt"},
    ForeignField{"extra_body", kNothing, "put its members beside the prompt"},
    ForeignField{"vllm_xargs", kNothing, ""},
    ForeignField{"kv_transfer_params", kNothing, ""},
    ForeignField{"session_params", kNothing, ""},
    ForeignField{"cache_salt", kNothing, "all clients share one prefix cache"},

    // Bookkeeping and hints: the answer is the same.
    ForeignField{"user", kAnything, ""},
    ForeignField{"safety_identifier", kAnything, ""},
    ForeignField{"metadata", kAnything, ""},
    ForeignField{"store", kAnything, ""},
    ForeignField{"service_tier", kAnything, ""},
    ForeignField{"prompt_cache_key", kAnything, ""},
    ForeignField{"prompt_cache_retention", kAnything, ""},
    ForeignField{"cache_prompt", kAnything, ""},
    ForeignField{"id_slot", kAnything, ""},
    ForeignField{"keep_alive", kAnything, ""},
    ForeignField{"priority", kAnything, ""},
    ForeignField{"request_id", kAnything, ""},
    ForeignField{"session_id", kAnything, ""},
    ForeignField{"rid", kAnything, ""},
    ForeignField{"stream_interval", kAnything, ""},
    ForeignField{"sse_ping_interval", kAnything, ""},
    ForeignField{"include_reasoning", kAnything, "", kCompletions},  // There is none.
    ForeignField{"reasoning_format", kAnything, "", kCompletions},
    ForeignField{"separate_reasoning", kAnything, "", kCompletions},
    ForeignField{"stream_reasoning", "[true]", "", kChat},
    ForeignField{"stream_reasoning", kAnything, "", kCompletions},
    // A guess at the answer, to make it come sooner. The draft model guesses here.
    ForeignField{"prediction", kAnything, ""},
};

const ForeignField* find_field(std::string_view name, Endpoints endpoint) {
  const auto* place = std::find_if(kTable.begin(), kTable.end(), [&](const ForeignField& field) {
    return field.name == name &&
           (field.endpoints == Endpoints::kBoth || field.endpoints == endpoint);
  });
  return place == kTable.end() ? nullptr : place;
}

bool is_accepted(const json& value, std::string_view accepted) {
  if (accepted == kAnything) {
    return true;
  }
  if (accepted == kNothing) {
    return asks_for_nothing(value);
  }
  const json list = read_json(accepted);
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

std::span<const ForeignField> foreign_fields() { return kTable; }

bool asks_for_nothing(const json& value) {
  if (value.is_boolean()) {
    return !value.get<bool>();
  }
  if (value.is_string()) {
    return value.text().empty();
  }
  return value.is_structured() && value.empty();
}

void refuse_foreign_fields(Fields& fields, Endpoints endpoint) {
  fields.visit_unasked([&](const std::string& name) {
    const ForeignField* field = find_field(name, endpoint);
    if (field == nullptr) {
      return;
    }
    const json* value = fields.find(name);
    if (value != nullptr && !is_accepted(*value, field->accepted)) {
      const std::string advice = field->advice.empty() ? "" : ": " + std::string(field->advice);
      fields.fail(name, "is not supported by this server" + advice + ".", "unsupported_parameter");
    }
  });
}

}  // namespace spel::proto

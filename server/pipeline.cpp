#include "server/pipeline.h"

#include <algorithm>
#include <random>
#include <set>
#include <span>
#include <utility>

#include "config/base/limits.h"
#include "proto/error_body.h"
#include "proto/text_assembler.h"
#include "proto/vocabulary.h"
#include "server/normalize_text.h"
#include "server/translate.h"

namespace spel::server {
namespace {

using proto::GenerationOptions;
using proto::RequestError;

std::uint64_t random_seed() {
  std::random_device random;
  return (std::uint64_t{random()} << 32U) | random();
}

void check_request(const GenerationOptions& options, std::size_t prompts, const Backend& backend) {
  if (!options.model.empty() && options.model != backend.model_id) {
    throw RequestError(proto::model_not_found(options.model));
  }
  if (options.notebank) {
    // A completion's notes have been read by now: see recall.h.
    throw RequestError(
        proto::not_supported("notes are replayed by /v1/completions, not by chat", "notebank"));
  }
  const engine::EngineConfig& limits = backend.engine->config();
  const std::size_t most = limits.sequences + limits.queue_capacity;
  if (prompts * options.n > most) {
    throw RequestError(
        proto::invalid_request("prompts times n is " + std::to_string(prompts * options.n) +
                                   "; this server holds at most " + std::to_string(most) +
                                   " generations at once (settings \"sequences\" and \"queue\").",
                               prompts > most ? "prompt" : "n", "invalid_value"));
  }
  if (options.min_tokens == 0) {
    return;
  }
  const std::set<engine::TokenId> ends(options.stop_token_ids.begin(),
                                       options.stop_token_ids.end());
  if (ends.size() >= backend.engine->vocab_size()) {
    throw RequestError(proto::invalid_request(
        "\"min_tokens\" cannot be kept: every token is one of \"stop_token_ids\".", "min_tokens",
        "invalid_value"));
  }
}

engine::SpeculationParams speculation_of(const proto::SpeculationOptions& options,
                                         const config::ServerConfig& config) {
  engine::SpeculationParams params;
  params.enabled = options.enabled.value_or(config.spec_k > 0);
  const std::size_t fallback = config.spec_k > 0 ? config.spec_k : limits::kSpecKDefault;
  params.k = options.k.value_or(fallback);
  params.governor = options.governor.value_or(governor_of(config));
  params.alpha_threshold = options.alpha_threshold.value_or(config.alpha_threshold);
  params.window = options.window.value_or(config.governor_window);
  return params;
}

/// What the request says, else what the model's makers do, else the interface's default.
template <typename Value, typename Default>
void choose(Value& value, const std::optional<Value>& asked, const std::optional<Default>& model) {
  value = asked ? *asked : model ? static_cast<Value>(*model) : value;
}

/// All but prompt, max_tokens and seed.
engine::GenerationRequest common_request(const GenerationOptions& options, const Backend& backend,
                                         const config::ServerConfig& config) {
  engine::GenerationRequest request;
  engine::SamplingParams& sampling = request.sampling;
  const engine::GenerationDefaults& model = backend.generation_defaults;
  choose(sampling.temperature, options.temperature, model.temperature);
  choose(sampling.top_k, options.top_k, model.top_k);
  choose(sampling.top_p, options.top_p, model.top_p);
  choose(sampling.min_p, options.min_p, model.min_p);
  choose(sampling.repetition_penalty, options.repetition_penalty, model.repetition_penalty);
  sampling.presence_penalty = options.presence_penalty;
  sampling.frequency_penalty = options.frequency_penalty;
  sampling.logit_bias = options.logit_bias;
  request.speculation = speculation_of(options.speculation, config);
  request.stop = options.stop;
  request.stop_token_ids = options.stop_token_ids;
  request.ignore_eos = options.ignore_eos;
  request.logprobs = options.logprobs;
  request.deadline = engine::Clock::now() + config.request_timeout;
  return request;
}

GenerationPlan start_plan(const GenerationOptions& options) {
  GenerationPlan plan;
  plan.stream = options.stream;
  plan.include_usage = options.stream_options.include_usage;
  plan.continuous_usage = options.stream_options.continuous_usage;
  plan.with_logprobs = options.logprobs.has_value();
  plan.with_token_ids = options.return_token_ids;
  return plan;
}

/// Logprobs that one choice makes the server hold at once: a stream lets go of what it has sent.
std::size_t logprob_entries(const engine::GenerationRequest& request, bool stream) {
  if (!request.logprobs) {
    return 0;
  }
  const std::size_t tokens =
      (request.prompt_logprobs ? request.prompt.size() : 0) + (stream ? 0 : request.max_tokens);
  return tokens * (1 + *request.logprobs);
}

/// The choices of the next prompt.
void add_choices(GenerationPlan& plan, const GenerationOptions& options,
                 engine::GenerationRequest request, std::string echo, std::uint64_t seed,
                 std::size_t max_seq) {
  const std::size_t prompt_tokens = request.prompt.size();
  if (prompt_tokens + 1 > max_seq) {
    throw RequestError(proto::context_overflow(prompt_tokens, max_seq));
  }
  const std::size_t room = max_seq - prompt_tokens;
  request.max_tokens = std::min(options.max_tokens.value(), room);
  request.min_tokens = std::min(options.min_tokens, request.max_tokens);
  plan.logprob_entries += options.n * logprob_entries(request, options.stream);
  if (plan.logprob_entries > limits::kLogprobEntriesMax) {
    throw RequestError(proto::invalid_request(
        "the answer could hold more than " + std::to_string(limits::kLogprobEntriesMax) +
            " logprobs: ask for fewer alternatives, fewer tokens or fewer choices at a time.",
        "logprobs", "invalid_value"));
  }
  const std::size_t prompt = plan.choices.size() / options.n;
  for (std::size_t i = 0; i < options.n; ++i) {
    PlannedChoice choice;
    choice.request = request;
    choice.request.sampling.seed = choice_seed(seed, prompt, i);
    choice.new_prompt = i == 0;
    choice.echo = echo;
    plan.choices.push_back(std::move(choice));
  }
}

std::string text_of(std::span<const engine::TokenId> tokens, const engine::Tokenizer& tokenizer) {
  std::string bytes;
  for (const engine::TokenId token : tokens) {
    bytes += tokenizer.bytes(token);
  }
  return proto::to_valid_utf8(bytes);
}

/// The model says no character that normalize_text() replaces. A stop string that consists of
/// nothing else would end every text at once.
void normalize_stops(GenerationOptions& options) {
  for (std::string& stop : options.stop) {
    std::string text = stop;
    normalize_text(text);
    stop = text.empty() ? stop : std::move(text);
  }
}

std::uint64_t seed_of(const GenerationOptions& options) {
  return options.seed ? static_cast<std::uint64_t>(*options.seed) : random_seed();
}

}  // namespace

std::uint64_t choice_seed(std::uint64_t seed, std::size_t prompt, std::size_t choice) {
  if (prompt == 0 && choice == 0) {
    return seed;
  }
  // splitmix64 over the place: distinct for each, and far apart.
  const std::uint64_t place = (std::uint64_t{prompt} << 32U) | choice;
  std::uint64_t z = seed + 0x9e3779b97f4a7c15ULL * place;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

std::size_t normalize_texts(proto::CompletionRequest& request) {
  std::size_t replaced = 0;
  for (proto::Prompt& prompt : request.prompts) {
    if (auto* text = std::get_if<std::string>(&prompt)) {
      replaced += normalize_text(*text);
    }
  }
  normalize_stops(request.options);
  return replaced;
}

std::size_t normalize_texts(proto::ChatRequest& request) {
  std::size_t replaced = 0;
  for (proto::ChatMessage& message : request.conversation.messages) {
    replaced += normalize_text(message.content);
    replaced += message.reasoning ? normalize_text(*message.reasoning) : 0;
  }
  normalize_stops(request.options);
  return replaced;
}

GenerationPlan plan_completion(proto::CompletionRequest request, const Backend& backend,
                               const config::ServerConfig& config) {
  const engine::Engine& engine = *backend.engine;
  check_request(request.options, request.prompts.size(), backend);
  proto::check_token_ids(request, engine.vocab_size());
  GenerationPlan plan = start_plan(request.options);
  plan.echo = request.echo;
  engine::GenerationRequest common = common_request(request.options, backend, config);
  common.prompt_logprobs = request.echo && request.options.logprobs.has_value();
  const std::uint64_t seed = seed_of(request.options);
  for (proto::Prompt& prompt : request.prompts) {
    engine::GenerationRequest one = common;
    std::string echo;
    if (auto* text = std::get_if<std::string>(&prompt)) {
      one.prompt = encode(engine.tokenizer(), *text, "prompt");
      echo = request.echo ? std::move(*text) : std::string();
    } else {
      one.prompt = std::move(std::get<std::vector<proto::TokenId>>(prompt));
      echo = request.echo ? text_of(one.prompt, engine.tokenizer()) : std::string();
    }
    add_choices(plan, request.options, std::move(one), std::move(echo), seed, engine.max_seq());
  }
  return plan;
}

GenerationPlan plan_chat(proto::ChatRequest request, const Backend& backend,
                         const config::ServerConfig& config) {
  const engine::Engine& engine = *backend.engine;
  check_request(request.options, 1, backend);
  proto::check_token_ids(request.options, engine.vocab_size());
  GenerationPlan plan = start_plan(request.options);
  engine::GenerationRequest one = common_request(request.options, backend, config);
  ChatPrompt prompt = backend.chat.prompt(std::move(request.conversation), engine.tokenizer());
  one.prompt = std::move(prompt.tokens);
  plan.thought = prompt.thought;
  plan.reasoning =
      request.reasoning.value_or(config.reasoning_format == "none" ? proto::ReasoningForm::kInText
                                                                   : proto::ReasoningForm::kApart);
  plan.own_stop = std::move(prompt.stop);
  if (!plan.own_stop.empty()) {
    one.stop.push_back(plan.own_stop);
  }
  const std::size_t thinking = request.thinking_budget.value_or(config.thinking_budget);
  one.sampling.thinking = backend.chat.budget(plan.thought, thinking);
  GenerationOptions& options = request.options;
  if (!options.max_tokens) {
    // What is thought comes on top.
    options.max_tokens =
        std::max(config.chat_max_tokens, options.min_tokens) +
        (one.sampling.thinking ? thinking + one.sampling.thinking->close.size() : 0);
  }
  add_choices(plan, options, std::move(one), {}, seed_of(options), engine.max_seq());
  return plan;
}

}  // namespace spel::server

#include "server/recall.h"

#include <utility>
#include <variant>

#include "proto/error_body.h"
#include "proto/vocabulary.h"
#include "server/note_service.h"
#include "server/translate.h"

namespace spel::server {

std::vector<engine::TokenId> recall(std::span<const memory::Note> notes,
                                    std::span<const engine::TokenId> prompt,
                                    const RecallLimits& limits, proto::ReplayReport& report) {
  const std::size_t needed = prompt.size() + limits.max_tokens;
  std::size_t room = limits.max_seq > needed ? limits.max_seq - needed : 0;
  std::vector<engine::TokenId> tokens;
  for (const memory::Note& note : notes) {
    if (note.tokens.size() > room) {
      continue;
    }
    room -= note.tokens.size();
    tokens.insert(tokens.begin(), note.tokens.begin(), note.tokens.end());
    report.notes.push_back({note.id, note.start, static_cast<double>(note.score)});
  }
  report.tokens = tokens.size();
  tokens.insert(tokens.end(), prompt.begin(), prompt.end());
  return tokens;
}

void encode_prompts(proto::CompletionRequest& request, const engine::Tokenizer& tokenizer) {
  for (proto::Prompt& prompt : request.prompts) {
    if (const auto* text = std::get_if<std::string>(&prompt)) {
      prompt = encode(tokenizer, *text, "prompt");
    }
  }
}

Task<std::vector<proto::ReplayReport>> replay_notes(const Executor& executor,
                                                    const Backend& backend,
                                                    proto::CompletionRequest& request) {
  if (!backend.notes) {
    throw proto::RequestError(
        proto::not_supported("this model has no episodic memory", "notebank"));
  }
  if (request.echo) {
    throw proto::RequestError(proto::invalid_request(
        "\"echo\" cannot be combined with \"notebank\": the prompt is not what was read.", "echo",
        "unsupported_parameter"));
  }
  const engine::Engine& engine = *backend.engine;
  proto::check_token_ids(request, engine.vocab_size());
  const proto::NoteBankOptions wanted = request.options.notebank.value();
  const RecallLimits room{request.options.max_tokens.value_or(1), engine.max_seq()};
  std::vector<proto::ReplayReport> reports;
  for (proto::Prompt& prompt : request.prompts) {
    auto query = std::move(std::get<std::vector<proto::TokenId>>(prompt));
    const auto begin = Clock::now();
    const std::vector<memory::Note> notes =
        co_await backend.notes->address(executor, wanted.bank, query, wanted.ranker, wanted.top);
    proto::ReplayReport report;
    report.bank = wanted.bank;
    prompt = recall(notes, query, room, report);
    report.seconds = engine::seconds_between(begin, Clock::now());
    reports.push_back(std::move(report));
    backend.notes->count_replay();
  }
  request.options.notebank.reset();
  co_return reports;
}

}  // namespace spel::server

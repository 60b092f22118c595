#include "server/recall.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "proto/error_body.h"
#include "server/note_service.h"
#include "server/translate.h"

namespace spel::server {
namespace {

/// Best first, as many as fit into `room`; returns the tokens to read.
std::vector<engine::TokenId> place(const std::vector<memory::Note>& notes, std::size_t room,
                                   proto::ReplayReport& report) {
  std::vector<engine::TokenId> tokens;
  for (const memory::Note& note : notes) {
    if (note.tokens.size() > room) {
      continue;
    }
    room -= note.tokens.size();
    // The best one ends up nearest to the question.
    tokens.insert(tokens.begin(), note.tokens.begin(), note.tokens.end());
    report.notes.push_back({note.id, note.start, static_cast<double>(note.score)});
  }
  report.tokens = tokens.size();
  return tokens;
}

}  // namespace

void encode_prompts(proto::CompletionRequest& request, const engine::Tokenizer& tokenizer) {
  for (proto::Prompt& prompt : request.prompts) {
    if (const auto* text = std::get_if<std::string>(&prompt)) {
      prompt = encode(tokenizer, *text, "prompt");
    }
  }
}

Task<std::vector<proto::ReplayReport>> recall(const Executor& executor, const Backend& backend,
                                              proto::CompletionRequest& request) {
  std::vector<proto::ReplayReport> reports;
  if (!request.options.notebank) {
    co_return reports;
  }
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
  const proto::NoteBankOptions wanted = *request.options.notebank;
  for (proto::Prompt& prompt : request.prompts) {
    const auto query = std::get<std::vector<proto::TokenId>>(prompt);
    const auto begin = Clock::now();
    const std::vector<memory::Note> notes =
        co_await backend.notes->address(executor, wanted.bank, query, wanted.ranker, wanted.top);
    proto::ReplayReport report;
    report.bank = wanted.bank;
    const std::size_t needed = query.size() + request.options.max_tokens.value_or(1);
    const std::size_t room = engine.max_seq() > needed ? engine.max_seq() - needed : 0;
    std::vector<engine::TokenId> tokens = place(notes, room, report);
    report.seconds = engine::seconds_between(begin, Clock::now());
    tokens.insert(tokens.end(), query.begin(), query.end());
    prompt = std::move(tokens);
    reports.push_back(std::move(report));
    backend.notes->count_replay();
  }
  request.options.notebank.reset();
  co_return reports;
}

}  // namespace spel::server

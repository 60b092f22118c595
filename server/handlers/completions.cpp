// POST /v1/completions and /v1/chat/completions: whole answers and streams.
#include <algorithm>
#include <chrono>
#include <random>
#include <utility>
#include <variant>

#include "proto/json_text.h"
#include "proto/notebank.h"
#include "proto/responses.h"
#include "proto/sse.h"
#include "server/answer_parts.h"
#include "server/completion_stream.h"
#include "server/handlers/body.h"
#include "server/handlers/handlers.h"
#include "server/pipeline.h"
#include "server/recall.h"
#include "server/translate.h"

namespace spel::server {
namespace {

/// How the two endpoints' answers differ.
struct AnswerForm {
  const char* id_prefix;
  bool role_first;  ///< A stream's choices begin with a chunk that names the role.
  proto::WholeAnswer::Kind whole;
  std::string (*chunk)(const proto::ResponseHead&, const proto::Choice&, const proto::ChunkTail&);
  std::string (*usage)(const proto::ResponseHead&, const proto::Receipt&);
};

constexpr AnswerForm kCompletionForm{"cmpl-", false, proto::WholeAnswer::Kind::kCompletion,
                                     &proto::completion_chunk, &proto::completion_usage_chunk};
constexpr AnswerForm kChatForm{"chatcmpl-", true, proto::WholeAnswer::Kind::kChat,
                               &proto::chat_chunk, &proto::chat_usage_chunk};

proto::ResponseHead make_head(const AnswerForm& form, const Backend& backend) {
  std::random_device random;
  proto::ResponseHead head;
  head.id = form.id_prefix;
  for (int i = 0; i < 3; ++i) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    for (std::uint32_t value = random(), digit = 0; digit < 8; ++digit, value >>= 4U) {
      head.id.push_back(kDigits[value & 15U]);
    }
  }
  head.created = std::chrono::duration_cast<std::chrono::seconds>(
                     std::chrono::system_clock::now().time_since_epoch())
                     .count();
  head.model = backend.model_id;
  head.system_fingerprint = backend.fingerprint;
  return head;
}

Task<void> answer_whole(Exchange& exchange, CompletionStream& stream, const AnswerForm& form,
                        const proto::ResponseHead& head) {
  co_await stream.finish();
  if (const auto error = stream.error()) {
    throw proto::RequestError(*error);
  }
  proto::WholeAnswer answer(form.whole, head);
  std::size_t at = 0;
  const auto next = [&](std::string& out) {
    if (at == 0) {
      answer.begin(out);
    }
    for (; at < stream.choices().size() && out.size() < proto::kAnswerPartBytes; ++at) {
      answer.add(stream.choices()[at].take(), out);
    }
    const bool more = at < stream.choices().size();
    if (!more) {
      proto::WholeAnswer::end(stream.receipt(), out);
    }
    return more;
  };
  co_await send_json_parts(exchange, next);
}

Response stream_head() {
  Response head(200, "text/event-stream; charset=utf-8", {});
  head.add_header("Cache-Control", "no-cache");
  head.add_header("X-Accel-Buffering", "no");
  return head;
}

/// Turns what the choices have to show into frames.
class FrameWriter {
 public:
  FrameWriter(const AnswerForm& form, const proto::ResponseHead& head, const GenerationPlan& plan,
              CompletionStream& stream)
      : form_(form),
        head_(head),
        plan_(plan),
        stream_(stream),
        ended_(plan.choices.size(), false) {}

  [[nodiscard]] std::string roles() const {
    std::string frames;
    for (std::size_t i = 0; form_.role_first && i < plan_.choices.size(); ++i) {
      frames += proto::sse_data(proto::chat_role_chunk(head_, i, tail()));
    }
    return frames;
  }

  /// Everything that can be shown now; the end of the stream when all choices have ended well, an
  /// error event when one has not.
  [[nodiscard]] std::string next() {
    const std::optional<proto::ApiError> error = stream_.error();
    std::string frames;
    for (std::size_t i = 0; i < ended_.size(); ++i) {
      ChoiceReader& choice = stream_.choices()[i];
      const bool ends = choice.finish().has_value() && !error;
      if (ended_[i] || (!choice.has_output() && !ends)) {
        continue;
      }
      proto::Choice output = choice.take();
      const proto::Choice end = split_end(output);
      if (!output.text.empty() || !output.reasoning.empty() || !output.tokens.empty()) {
        frames += proto::sse_data(form_.chunk(head_, output, tail()));
      }
      if (ends) {
        ended_[i] = true;
        --left_;
        frames += end_frame(end);
      }
    }
    if (error) {
      return frames + proto::sse_error(*error);  // Not an end like any other: no [DONE].
    }
    if (left_ == 0) {
      if (plan_.include_usage) {
        frames += proto::sse_data(form_.usage(head_, stream_.receipt()));
      }
      frames += proto::sse_done();
    }
    return frames;
  }

 private:
  /// Takes off `output` what says that it is the last: that goes into a chunk of its own, always,
  /// as OpenAI's does, so that no client has to look for an end beside a text.
  [[nodiscard]] static proto::Choice split_end(proto::Choice& output) {
    proto::Choice end;
    end.index = output.index;
    end.finish_reason = std::exchange(output.finish_reason, std::nullopt);
    end.stop_reason = std::exchange(output.stop_reason, {});
    end.stop_token = std::exchange(output.stop_token, std::nullopt);
    return end;
  }

  [[nodiscard]] std::string end_frame(const proto::Choice& end) const {
    proto::ChunkTail end_tail = tail();
    std::optional<proto::Receipt> receipt;
    if (left_ == 0 && !plan_.include_usage) {
      receipt = stream_.receipt();
      end_tail.receipt = &*receipt;
    }
    return proto::sse_data(form_.chunk(head_, end, end_tail));
  }

  [[nodiscard]] proto::ChunkTail tail() const {
    proto::ChunkTail tail;
    tail.usage_null = plan_.include_usage;
    if (plan_.continuous_usage) {
      tail.usage = stream_.usage_so_far();
    }
    return tail;
  }

  const AnswerForm& form_;
  const proto::ResponseHead& head_;
  const GenerationPlan& plan_;
  CompletionStream& stream_;
  std::vector<bool> ended_;
  std::size_t left_ = ended_.size();
};

/// Waits for the next event and breaks the silence meanwhile, for proxies that take it for death.
/// False: the client has gone.
Task<bool> advance(Exchange& exchange, CompletionStream& stream,
                   std::chrono::milliseconds heartbeat) {
  if (heartbeat.count() == 0) {
    co_await stream.advance();
    co_return true;
  }
  while (true) {
    const bool something = co_await stream.advance_until(Clock::now() + heartbeat);
    if (something) {
      co_return true;
    }
    const bool alive = co_await exchange.write_stream(proto::sse_ping());
    if (!alive) {
      co_return false;
    }
  }
}

Task<void> answer_stream(Exchange& exchange, CompletionStream& stream, const AnswerForm& form,
                         const proto::ResponseHead& head, const GenerationPlan& plan,
                         std::chrono::milliseconds heartbeat) {
  // The status line waits for the first event: what fails before there is any output is an error
  // with a status of its own. Unless the silence is to be broken: that takes a status line.
  if (heartbeat.count() == 0) {
    co_await stream.advance();
    const std::optional<proto::ApiError> early = stream.error();
    if (early && !stream.has_output()) {
      co_await stream.finish();
      throw proto::RequestError(*early);
    }
  }
  FrameWriter writer(form, head, plan, stream);
  bool alive = co_await exchange.begin_stream(stream_head());
  std::string frames = writer.roles();
  while (alive) {
    const bool failed = stream.error().has_value();
    frames += writer.next();
    alive = co_await exchange.write_stream(frames);
    frames.clear();
    if (failed) {
      exchange.abort_stream();
      break;
    }
    if (stream.finished()) {
      if (alive) {
        (void)co_await exchange.end_stream();
      }
      break;
    }
    if (alive) {
      alive = co_await advance(exchange, stream, heartbeat);
    }
  }
  stream.cancel();
  co_await stream.finish();
}

/// What a whole answer's choices hold before it is sent.
std::size_t answer_bytes(const GenerationPlan& plan) {
  if (plan.stream || !(plan.with_logprobs || plan.with_token_ids)) {
    return 0;
  }
  std::size_t bytes = 0;
  for (const PlannedChoice& choice : plan.choices) {
    const engine::GenerationRequest& request = choice.request;
    const std::size_t tokens = request.max_tokens + (plan.echo ? request.prompt.size() : 0);
    bytes += tokens * (sizeof(proto::TokenReport) +
                       request.logprobs.value_or(0) * sizeof(proto::TokenAlternative));
  }
  return bytes;
}

Task<void> generate(HandlerContext context, Exchange& exchange, const AnswerForm& form,
                    GenerationPlan plan) {
  const Backend& backend = *context.lifecycle.backend();
  BodyCharge charge(context.reading.answers);
  // One request may hold half of what there is, however much it asks for.
  if (!charge.hold(std::min(answer_bytes(plan), context.reading.answers.total() / 2))) {
    throw proto::RequestError(proto::unavailable("too many large answers at once"));
  }
  const proto::ResponseHead head = make_head(form, backend);
  CompletionStream stream(exchange.executor(), plan, backend, context.metrics,
                          exchange.request().arrived);
  stream.submit();
  exchange.watch([&stream] { stream.cancel(); });
  if (plan.stream) {
    co_await answer_stream(exchange, stream, form, head, plan, context.config.stream_heartbeat);
  } else {
    co_await answer_whole(exchange, stream, form, head);
  }
}

template <typename Request>
std::size_t normalize_if_set(const HandlerContext& context, Request& request) {
  return context.config.normalize_text ? normalize_texts(request) : 0;
}

/// A completion whose notes have to be found first.
struct WithNotes {
  proto::CompletionRequest request;
  std::size_t normalized_characters = 0;
};
using ReadCompletion = std::variant<GenerationPlan, WithNotes>;

ReadCompletion prepare(const HandlerContext& context, proto::CompletionRequest request) {
  context.metrics.count_unknown_fields(request.options.unknown_fields);
  const Backend& backend = *context.lifecycle.backend();
  const std::size_t normalized = normalize_if_set(context, request);
  if (!request.options.notebank) {
    GenerationPlan plan = plan_completion(std::move(request), backend, context.config);
    plan.normalized_characters = normalized;
    return plan;
  }
  encode_prompts(request, backend.engine->tokenizer());
  return WithNotes{std::move(request), normalized};
}

Task<void> complete(HandlerContext context, Exchange& exchange, ReadCompletion read) {
  if (auto* plan = std::get_if<GenerationPlan>(&read)) {
    co_await generate(context, exchange, kCompletionForm, std::move(*plan));
    co_return;
  }
  auto [request, normalized] = std::get<WithNotes>(std::move(read));
  const Backend& backend = *context.lifecycle.backend();
  std::vector<proto::ReplayReport> replays =
      co_await replay_notes(exchange.executor(), backend, request);
  GenerationPlan plan = plan_completion(std::move(request), backend, context.config);
  plan.replays = std::move(replays);
  plan.normalized_characters = normalized;
  co_await generate(context, exchange, kCompletionForm, std::move(plan));
}

Task<void> completion(HandlerContext context, Exchange& exchange) {
  ReadCompletion read =
      co_await read_body(context, exchange, Where::kBySize, [&](std::string_view body) {
        return prepare(context, proto::parse_completion_request(body, json_limits(context.config)));
      });
  co_await complete(context, exchange, std::move(read));
}

/// A completion whose notes come from the bank of the path.
Task<void> replay(HandlerContext context, Exchange& exchange) {
  const std::string bank = exchange.request().parameters.at(0);
  if (!is_bank_name(bank)) {
    throw proto::RequestError(proto::not_found("there is no such bank"));
  }
  ReadCompletion read =
      co_await read_body(context, exchange, Where::kBySize, [&](std::string_view body) {
        return prepare(context,
                       proto::parse_note_replay_request(body, bank, json_limits(context.config)));
      });
  co_await complete(context, exchange, std::move(read));
}

Task<void> chat(HandlerContext context, Exchange& exchange) {
  // A template is a program, and what it makes of a small body can be large.
  const Where where =
      context.lifecycle.backend()->chat.runs_a_template() ? Where::kElsewhere : Where::kBySize;
  GenerationPlan plan = co_await read_body(context, exchange, where, [&](std::string_view body) {
    proto::ChatRequest request = proto::parse_chat_request(body, json_limits(context.config));
    context.metrics.count_unknown_fields(request.options.unknown_fields);
    const std::size_t normalized = normalize_if_set(context, request);
    GenerationPlan made =
        plan_chat(std::move(request), *context.lifecycle.backend(), context.config);
    made.normalized_characters = normalized;
    return made;
  });
  co_await generate(context, exchange, kChatForm, std::move(plan));
}

}  // namespace

void add_completion_routes(Router& router, const HandlerContext& context) {
  router.add(Verb::post, "/v1/completions", {},
             AsyncHandler([context](Exchange& exchange) { return completion(context, exchange); }));
  router.add(Verb::post, "/v1/notebanks/{bank}/replay", {},
             AsyncHandler([context](Exchange& exchange) { return replay(context, exchange); }));
  router.add(Verb::post, "/v1/chat/completions", {},
             AsyncHandler([context](Exchange& exchange) { return chat(context, exchange); }));
}

}  // namespace spel::server

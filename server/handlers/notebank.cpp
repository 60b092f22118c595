// The episodic memory's endpoints; replay is a completion and lives with those.
#include "proto/notebank.h"

#include <charconv>
#include <optional>
#include <utility>

#include "config/base/error.h"
#include "proto/error_body.h"
#include "proto/sse.h"
#include "server/handlers/body.h"
#include "server/handlers/handlers.h"
#include "server/normalize_text.h"
#include "server/note_service.h"
#include "server/offload.h"
#include "server/translate.h"

namespace spel::server {
namespace {

constexpr int kCreated = 201;

NoteService& service_of(const HandlerContext& context) {
  const Backend& backend = *context.lifecycle.backend();
  if (!backend.notes) {
    throw proto::RequestError(proto::not_supported("this model has no episodic memory"));
  }
  return *backend.notes;
}

const std::string& bank_of(const Request& request) {
  const std::string& bank = request.parameters.at(0);
  if (!is_bank_name(bank)) {
    throw proto::RequestError(
        proto::not_found("there is no such bank: a name has " + bank_name_form()));
  }
  return bank;
}

std::int64_t note_id_of(const Request& request) {
  const std::string& text = request.parameters.at(1);
  std::int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id < 1) {
    throw proto::RequestError(proto::not_found("there is no such note: an id is a number"));
  }
  return id;
}

proto::BankView bank_view(const memory::BankInfo& bank) {
  return {bank.name, bank.model, bank.notes, bank.bytes, bank.damaged, bank.created};
}

Task<void> list_banks(HandlerContext /*context*/, Exchange& exchange, NoteService& notes) {
  const auto banks =
      co_await offload(notes.pool(), exchange.executor(), [&] { return notes.bank().banks(); });
  std::vector<proto::BankView> views;
  views.reserve(banks.size());
  for (const memory::BankInfo& bank : banks) {
    views.push_back(bank_view(bank));
  }
  (void)co_await exchange.send(json_response(proto::banks_response(views)));
}

Task<void> get_bank(HandlerContext /*context*/, Exchange& exchange, NoteService& notes) {
  const std::string name = bank_of(exchange.request());
  const memory::BankInfo bank =
      co_await offload(notes.pool(), exchange.executor(), [&] { return notes.bank().bank(name); });
  (void)co_await exchange.send(json_response(proto::bank_response(bank_view(bank))));
}

Task<void> delete_bank(HandlerContext /*context*/, Exchange& exchange, NoteService& notes) {
  const std::string name = bank_of(exchange.request());
  (void)co_await offload(notes.pool(), exchange.executor(), [&] {
    notes.bank().remove_bank(name);
    return true;
  });
  (void)co_await exchange.send(json_response(proto::deleted_response(name)));
}

Task<void> get_note(HandlerContext /*context*/, Exchange& exchange, NoteService& notes) {
  const std::string bank = bank_of(exchange.request());
  const std::int64_t id = note_id_of(exchange.request());
  const memory::Note note = co_await offload(notes.pool(), exchange.executor(),
                                             [&] { return notes.bank().note(bank, id); });
  (void)co_await exchange.send(json_response(proto::note_response(to_view(note))));
}

Task<void> delete_note(HandlerContext /*context*/, Exchange& exchange, NoteService& notes) {
  const std::string bank = bank_of(exchange.request());
  const std::int64_t id = note_id_of(exchange.request());
  (void)co_await offload(notes.pool(), exchange.executor(), [&] {
    notes.bank().remove_note(bank, id);
    return true;
  });
  (void)co_await exchange.send(json_response(proto::deleted_response(std::to_string(id))));
}

Response stream_head() {
  Response head(200, "text/event-stream; charset=utf-8", {});
  head.add_header("Cache-Control", "no-cache");
  head.add_header("X-Accel-Buffering", "no");
  return head;
}

Task<void> write(HandlerContext context, Exchange& exchange, NoteService& notes) {
  const std::string bank = bank_of(exchange.request());
  const proto::JsonLimits limits{.bytes = proto::kNoteBodyBytes,
                                 .depth = context.config.json_depth};
  proto::NoteWriteRequest request =
      co_await read_body(context, exchange, Where::kBySize, [&](std::string_view body) {
        auto parsed = proto::parse_note_write_request(body, limits);
        if (context.config.normalize_text) {
          normalize_text(parsed.text);
        }
        return parsed;
      });
  context.metrics.count_unknown_fields(request.unknown_fields);
  // At most a token for each byte; the text itself goes when it has become tokens.
  BodyCharge charge(context.reading.answers);
  if (!charge.hold(request.text.size() * sizeof(engine::TokenId))) {
    throw proto::RequestError(proto::unavailable("too many long texts at once"));
  }
  bool gone = false;
  exchange.watch([&gone] { gone = true; });
  const bool stream = request.stream;
  bool streaming = false;
  std::optional<proto::ApiError> failed;
  try {
    const auto on_progress = [&](const NoteService::Progress& progress) -> Task<bool> {
      if (gone || !stream) {
        co_return !gone;
      }
      // The status line waits for the first part: until then an error has a status.
      if (!streaming) {
        streaming = co_await exchange.begin_stream(stream_head());
      }
      const bool alive = co_await exchange.write_stream(proto::sse_data(
          proto::note_write_progress(progress.tokens, progress.total, progress.notes)));
      co_return alive;
    };
    const proto::NoteWriteResult result =
        co_await notes.write(exchange.executor(), bank, std::move(request), on_progress);
    if (!stream) {
      (void)co_await exchange.send(
          Response(kCreated, "application/json", proto::note_write_response(result)));
      co_return;
    }
    std::string end = proto::sse_data(proto::note_write_response(result));
    end += proto::sse_done();
    const bool alive = co_await exchange.write_stream(end);
    if (alive) {
      (void)co_await exchange.end_stream();
    }
    co_return;
  } catch (const proto::RequestError& error) {
    failed = error.error();
  } catch (const Error& error) {
    context.log.event(LogLevel::kError, "a write to the note store failed",
                      {{"error", std::string_view(error.what())}});
    failed = to_api_error(error);
  }
  if (!streaming) {
    throw proto::RequestError(*failed);
  }
  (void)co_await exchange.write_stream(proto::sse_error(*failed));
  exchange.abort_stream();
}

Task<void> address(HandlerContext context, Exchange& exchange, NoteService& notes) {
  const std::string bank = bank_of(exchange.request());
  const engine::Tokenizer& tokenizer = context.lifecycle.backend()->engine->tokenizer();
  std::vector<engine::TokenId> query;
  const proto::NoteAddressRequest request =
      co_await read_body(context, exchange, Where::kBySize, [&](std::string_view body) {
        proto::NoteAddressRequest wanted =
            proto::parse_note_address_request(body, json_limits(context.config));
        context.metrics.count_unknown_fields(wanted.unknown_fields);
        if (context.config.normalize_text) {
          normalize_text(wanted.query);
        }
        query = encode(tokenizer, std::exchange(wanted.query, {}), "query");
        return wanted;
      });
  const auto begin = Clock::now();
  const std::vector<memory::Note> found = co_await notes.address(
      exchange.executor(), bank, std::move(query), request.ranker, request.top);
  const double seconds = engine::seconds_between(begin, Clock::now());
  std::vector<proto::NoteView> views;
  views.reserve(found.size());
  for (const memory::Note& note : found) {
    views.push_back(to_view(note));
  }
  (void)co_await exchange.send(json_response(proto::note_address_response(bank, views, seconds)));
}

using NoteHandler = Task<void> (*)(HandlerContext, Exchange&, NoteService&);

/// An error of the store becomes an answer; its own words go to the log.
Task<void> guarded(HandlerContext context, Exchange& exchange, NoteHandler handler) {
  std::optional<proto::ApiError> failed;
  try {
    co_await handler(context, exchange, service_of(context));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound && error.code() != ErrorCode::kInvalidArgument) {
      context.log.event(LogLevel::kError, "the note store failed",
                        {{"error", std::string_view(error.what())}});
    }
    failed = to_api_error(error);
  }
  if (failed) {
    throw proto::RequestError(*failed);
  }
}

}  // namespace

void add_notebank_routes(Router& router, const HandlerContext& context) {
  const auto add = [&](Verb verb, const char* path, NoteHandler handler,
                       const RouteOptions& options = {}) {
    router.add(verb, path, options, AsyncHandler([context, handler](Exchange& exchange) {
                 return guarded(context, exchange, handler);
               }));
  };
  add(Verb::get, "/v1/notebanks", &list_banks);
  add(Verb::get, "/v1/notebanks/{bank}", &get_bank);
  add(Verb::delete_, "/v1/notebanks/{bank}", &delete_bank);
  add(Verb::get, "/v1/notebanks/{bank}/notes/{id}", &get_note);
  add(Verb::delete_, "/v1/notebanks/{bank}/notes/{id}", &delete_note);
  add(Verb::post, "/v1/notebanks/{bank}/write", &write, {.body_bytes = proto::kNoteBodyBytes});
  add(Verb::post, "/v1/notebanks/{bank}/address", &address);
}

}  // namespace spel::server

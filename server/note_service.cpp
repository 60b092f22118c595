#include "server/note_service.h"

#include <algorithm>
#include <span>
#include <utility>

#include "config/base/error.h"
#include "memory/passages.h"
#include "proto/text_assembler.h"
#include "server/offload.h"
#include "server/translate.h"

namespace spel::server {
namespace {

/// Tokens of a text captured at once, after so many that are only context. Short, so that a query
/// never waits long behind a book.
constexpr std::size_t kWindowTokens = 2 * memory::kChunkTokens;
constexpr std::size_t kContextTokens = 32;
/// Of a query, read before it is compared.
constexpr std::size_t kQueryTokensRead = 128;

std::string text_of(std::span<const engine::TokenId> tokens, const engine::Tokenizer& tokenizer) {
  std::string bytes;
  for (const engine::TokenId token : tokens) {
    bytes += tokenizer.bytes(token);
  }
  return proto::to_valid_utf8(bytes);
}

memory::ChannelShape shape_of(const engine::Engine& engine) {
  const engine::CaptureShape shape = engine.capture_shape();
  return {shape.channels, shape.head_dim};
}

}  // namespace

proto::ApiError to_api_error(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kInvalidArgument:
      return proto::invalid_request(error.what(), {}, "wrong_model");
    case ErrorCode::kNotFound:
      return proto::not_found(error.what());
    case ErrorCode::kIo:
      return proto::http_error(507, "the note store could not write: no space, or a failing disk");
    case ErrorCode::kUnavailable:
      return proto::unavailable("the note store cannot be written to now; the log says why");
    case ErrorCode::kCorrupt:
      return proto::server_error("this is damaged in the note store; the log says where");
    case ErrorCode::kInternal:
      break;
  }
  return proto::server_error("the note store failed; the log says how");
}

proto::NoteView to_view(const memory::Note& note) {
  return {note.id,      note.text, note.tokens, note.start, static_cast<double>(note.score),
          note.metadata};
}

NoteService::NoteService(engine::Engine& engine, const kernels::Kernels& kernels,
                         const std::string& data_dir, const std::string& model)
    : engine_(engine), bank_(kernels, data_dir, model, shape_of(engine), engine.vocab_size()) {}

NoteService::~NoteService() { pool_.join(); }

Task<engine::Capture> NoteService::capture(const Executor& executor,
                                           engine::CaptureRequest request) {
  auto delivery = std::make_shared<Delivery<engine::CaptureOutcome>>(executor);
  const engine::SubmitStatus status = engine_.capture(
      std::move(request),
      [delivery](engine::CaptureOutcome outcome) { delivery->deliver(std::move(outcome)); });
  if (status != engine::SubmitStatus::kAccepted) {
    throw proto::RequestError(
        proto::unavailable(status == engine::SubmitStatus::kQueueFull
                               ? "too many texts are being read; try again later"
                               : "the server is shutting down"));
  }
  engine::CaptureOutcome outcome = co_await delivery->take();
  if (!outcome.error.empty()) {
    throw proto::RequestError(proto::unavailable(outcome.error));
  }
  co_return std::move(outcome.capture);
}

Task<proto::NoteWriteResult> NoteService::write(const Executor& executor, std::string bank,
                                                proto::NoteWriteRequest request,
                                                OnProgress on_progress, NoteMaking making) {
  const auto begin = Clock::now();
  const std::vector<engine::TokenId> tokens = co_await offload(pool_, executor, [&] {
    bank_.check_bank(bank);
    // Reading a long text takes hours: its tokens are enough to hold.
    const std::string text = std::exchange(request.text, {});
    return encode(engine_.tokenizer(), text, "text");
  });
  memory::WriterOptions options;
  options.notes_per_chunk = request.notes_per_chunk;
  options.score = making.score;
  memory::Writer writer(bank_.projection(), options);
  proto::NoteWriteResult result;
  result.bank = bank;
  std::vector<memory::NoteDraft> drafts;
  std::size_t unsaved_since = 0;
  std::uint64_t passages_from = 0;
  const auto token_bytes = [this](memory::TokenId token) {
    return std::string(engine_.tokenizer().bytes(token));
  };
  for (std::size_t at = 0; at < tokens.size();) {
    const std::size_t count = std::min(kWindowTokens, tokens.size() - at);
    const std::size_t context = std::min(kContextTokens, at);
    engine::CaptureRequest window;
    const auto first = tokens.begin() + static_cast<std::ptrdiff_t>(at - context);
    window.tokens.assign(first, first + static_cast<std::ptrdiff_t>(context + count));
    window.keep = count;
    const auto captured_from = Clock::now();
    const engine::Capture captured = co_await capture(executor, std::move(window));
    counters_.capture_seconds.fetch_add(engine::seconds_between(captured_from, Clock::now()));
    const bool last = at + count == tokens.size();
    const bool save = last || at + count - unsaved_since >= kAtomicTokens;
    (void)co_await offload(pool_, executor, [&] {
      const auto chosen_from = Clock::now();
      const std::size_t width = bank_.projection().shape().width();
      for (std::size_t t = 0; t < count; t += memory::kChunkTokens) {
        const std::size_t chunk = std::min(memory::kChunkTokens, count - t);
        writer.add({std::span(tokens).subspan(at + t, chunk),
                    std::span(captured.keys).subspan(t * width, chunk * width)},
                   drafts);
      }
      if (last) {
        writer.finish(drafts);
      }
      if (save && making.passages) {
        passages_from = memory::add_passages(
            std::span(tokens).subspan(passages_from, at + count - passages_from), passages_from,
            last, token_bytes, drafts);
      }
      const auto stored_from = Clock::now();
      counters_.choose_seconds.fetch_add(engine::seconds_between(chosen_from, stored_from));
      if (!save || drafts.empty()) {
        return true;
      }
      for (memory::NoteDraft& draft : drafts) {
        draft.text = text_of(draft.tokens, engine_.tokenizer());
        draft.metadata = request.metadata;
      }
      const std::vector<memory::NoteId> ids = bank_.append(bank, drafts);
      counters_.store_seconds.fetch_add(engine::seconds_between(stored_from, Clock::now()));
      for (std::size_t i = 0; i < ids.size() && result.notes.size() < proto::kNotesListedMax; ++i) {
        const memory::NoteDraft& draft = drafts[i];
        result.notes.push_back({ids[i], draft.text, draft.tokens, draft.start,
                                static_cast<double>(draft.score), draft.metadata});
      }
      result.count += ids.size();
      counters_.notes_written += ids.size();
      drafts.clear();
      return true;
    });
    at += count;
    unsaved_since = save ? at : unsaved_since;
    if (on_progress) {
      const bool go_on = co_await on_progress({at, tokens.size(), result.count});
      if (!go_on) {
        break;
      }
    }
  }
  result.tokens = writer.tokens();
  result.chunks = writer.chunks();
  result.seconds = engine::seconds_between(begin, Clock::now());
  ++counters_.writes;
  counters_.write_seconds.fetch_add(result.seconds);
  co_return result;
}

Task<std::vector<memory::Note>> NoteService::address(const Executor& executor, std::string bank,
                                                     std::vector<engine::TokenId> query,
                                                     Ranker ranker, std::size_t top) {
  const auto begin = Clock::now();
  const bool by_text = ranker == Ranker::kText || ranker == Ranker::kFused;
  std::string text;
  if (by_text) {
    const std::size_t last = std::min(query.size(), memory::TextIndex::kQueryBytes);
    text = text_of(std::span(query).last(last), engine_.tokenizer());
  }
  engine::Capture captured;
  if (ranker != Ranker::kText) {
    engine::CaptureRequest request;
    const std::size_t count = std::min(query.size(), kQueryTokensRead);
    request.tokens.assign(query.end() - static_cast<std::ptrdiff_t>(count), query.end());
    request.keep = memory::kQueryTokens;
    request.queries = ranker == Ranker::kNative || ranker == Ranker::kVotes;
    captured = co_await capture(executor, std::move(request));
  }
  std::vector<memory::Note> notes = co_await offload(pool_, executor, [&] {
    try {
      const auto searched_from = Clock::now();
      auto found = bank_.address(bank, {captured.keys, captured.queries, text}, ranker, top);
      counters_.search_seconds.fetch_add(engine::seconds_between(searched_from, Clock::now()));
      return found;
    } catch (const Error& error) {
      throw proto::RequestError(to_api_error(error));
    }
  });
  ++counters_.addresses;
  counters_.address_seconds.fetch_add(engine::seconds_between(begin, Clock::now()));
  co_return notes;
}

}  // namespace spel::server

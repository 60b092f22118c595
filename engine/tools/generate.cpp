#include <algorithm>
#include <iomanip>
#include <limits>
#include <ostream>
#include <sstream>

#include "config/base/error.h"
#include "config/base/limits.h"
#include "engine/tools/command_line.h"
#include "engine/tools/model_rig.h"
#include "engine/tools/shape.h"
#include "engine/tools/tool.h"

namespace spel::engine::tools {
namespace {

constexpr const char* kUsage =
    "usage: spel generate --prompt TEXT [--model PATH] [--max-tokens N] [--temperature T]\n"
    "                     [--seed N] [--k K] [--governor off|trip|adaptive] [--stop TEXT]\n"
    "                     [--weights-dtype bf16|f32] [--stats]\n"
    "  --model        a model directory or SPELW001 file; SPEL_MODEL or the shipped one if not\n"
    "                 given\n"
    "  --max-tokens   128 if not given\n"
    "  --temperature  0 if not given: the most probable token each time\n"
    "  --k            proposals per round, 0 to 16; 0 decodes plainly; SPEL_SPEC_K, else 4, if "
    "not\n"
    "                 given\n"
    "  --stats        the whole receipt instead of one line, on standard error\n"
    "The completion goes to standard output, the receipt to standard error.\n";

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

GovernorKind parse_governor_option(const std::string& text) {
  const std::optional<GovernorKind> kind = value_named<GovernorKind>(text);
  if (!kind) {
    refuse("--governor is \"" + text + "\"; expected off, trip or adaptive");
  }
  return *kind;
}

WeightsDtype parse_dtype(const std::string& text) {
  if (text != "bf16" && text != "f32") {
    refuse("--weights-dtype is \"" + text + "\"; expected bf16 or f32");
  }
  return text == "bf16" ? WeightsDtype::kBf16 : WeightsDtype::kF32;
}

/// Everything but the prompt's tokens, which need the model.
GenerationRequest request_from(const Options& options) {
  constexpr std::uint64_t kMaxTokens = limits::kMaxSeqMax;
  GenerationRequest request;
  request.max_tokens =
      parse_unsigned("--max-tokens", options.value("max-tokens").value_or("128"), kMaxTokens);
  request.sampling.temperature = temperature_of(options);
  request.sampling.seed = parse_unsigned("--seed", options.value("seed").value_or("0"),
                                         std::numeric_limits<std::uint64_t>::max());
  request.speculation.k = parse_unsigned(
      "--k",
      options.value("k").value_or(std::to_string(spec_k_from_environment(limits::kSpecKDefault))),
      limits::kSpecKMax);
  request.speculation.enabled = request.speculation.k > 0;
  request.speculation.governor =
      parse_governor_option(options.value("governor").value_or("adaptive"));
  if (const std::optional<std::string> stop = options.value("stop")) {
    if (stop->empty() || stop->size() > limits::kStopBytesMax) {
      refuse("--stop: expected 1 to " + std::to_string(limits::kStopBytesMax) + " bytes");
    }
    request.stop = {*stop};
  }
  return request;
}

/// Shows bytes once no stop string can take them back.
class Printer {
 public:
  Printer(const Tokenizer& tokenizer, std::ostream& out) : tokenizer_(tokenizer), out_(out) {}

  void on_token(const TokenEvent& event) {
    text_ += tokenizer_.bytes(event.token);
    show(text_.size() - std::min(event.held_bytes, text_.size()));
  }
  void finish(const FinishEvent& finish) {
    show(std::min(finish.text_bytes, text_.size()));
    out_ << "\n";
  }

 private:
  void show(std::size_t end) {
    if (end > shown_) {
      out_ << std::string_view(text_).substr(shown_, end - shown_) << std::flush;
      shown_ = end;
    }
  }

  const Tokenizer& tokenizer_;
  std::ostream& out_;
  std::string text_;
  std::size_t shown_ = 0;
};

void print_receipt(const FinishEvent& finish, bool whole, std::ostream& err) {
  const GenerationStats& s = finish.stats;
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << s.completion_tokens << " tokens, "
       << s.tokens_per_second() << " tok/s";
  if (s.draft_enabled) {
    text << std::setprecision(2) << ", " << s.speedup() << "x plain, alpha " << std::setprecision(3)
         << s.alpha() << " (" << s.accepted << "/" << s.proposed << ")";
  } else {
    text << ", not drafted: " << s.draft_reason;
  }
  text << ", finish " << name_of(finish.reason) << "\n";
  if (whole) {
    text << "prompt " << s.prompt_tokens << " tokens in " << s.prefill_seconds * 1e3
         << " ms, decode " << s.decode_seconds * 1e3 << " ms\n";
    if (s.draft_enabled) {
      text << "k " << s.k << ", governor " << name_of(s.governor) << ", rounds " << s.rounds
           << " drafted + " << s.ar_rounds << " plain, trips " << s.trips << ", resumes "
           << s.resumes << ", discarded " << s.discarded << "\nc " << s.c << ", v " << s.v
           << ", plain token " << s.ar_seconds * 1e3 << " ms\naccepted by position:";
      for (const std::size_t count : s.accepted_by_position) {
        text << " " << count;
      }
      text << "\n";
    }
  }
  err << text.str();
}

int generate(const Options& options, ToolStreams streams) {
  const std::optional<std::string> prompt = options.value("prompt");
  if (!prompt || prompt->empty()) {
    throw UsageError("expected --prompt TEXT");
  }
  GenerationRequest request = request_from(options);
  const WeightsDtype dtype = parse_dtype(options.value("weights-dtype").value_or("bf16"));
  const auto path = find_model(options);
  if (!path) {
    refuse("expected --model PATH: there is no shipped model under this folder");
  }
  EngineConfig config;
  config.sequences = 1;
  config.prefix_cache_entries = 0;
  RunOptions run{.draft_threads = draft_threads_from_environment(1),
                 .kernels = kernels_from_environment()};
  run.model.max_seq = context_from_environment(limits::kMaxSeqMax);
  run.model.max_batch_rows = config.batch_rows();
  run.model.ternary = ternary_from_environment();
  AssembledModel model = assemble_model(*path, dtype, run);
  require_shape(model.config, std::nullopt);
  const std::unique_ptr<Engine> engine = start_engine(config, model);
  request.prompt = engine->tokenizer().encode(*prompt);
  Printer printer(engine->tokenizer(), streams.out);
  const Generated generated =
      run_request(*engine, std::move(request),
                  [&printer](const TokenEvent& event) { printer.on_token(event); });
  printer.finish(generated.finish);
  print_receipt(generated.finish, options.has("stats"), streams.err);
  return kToolOk;
}

}  // namespace

int generate_main(std::span<const std::string> args, ToolStreams streams) {
  return run_subcommand({"generate",
                         kUsage,
                         {{"model", "prompt", "max-tokens", "temperature", "seed", "k", "governor",
                           "stop", "weights-dtype"},
                          {"stats"},
                          0}},
                        args, streams,
                        [&](const Options& options) { return generate(options, streams); });
}

}  // namespace spel::engine::tools

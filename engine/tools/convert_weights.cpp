#include <limits>
#include <memory>
#include <ostream>
#include <system_error>

#include "config/base/error.h"
#include "engine/assembled_model.h"
#include "engine/document/convert.h"
#include "engine/document/random_source.h"
#include "engine/tools/command_line.h"
#include "engine/tools/environment.h"
#include "engine/tools/model_rig.h"
#include "engine/tools/shape.h"
#include "engine/tools/tool.h"

namespace spel::engine::tools {
namespace {

constexpr const char* kUsage =
    "usage: spel convert SRC DST [--to spelw|directory] [--golden] [--bare] [--force]\n"
    "       spel convert --random DST [--to spelw|directory] [--seed N] [--config k=v,...]\n"
    "                    [--golden] [--force]\n"
    "  SRC, DST   a model directory or a SPELW001 file; DST must not be a directory with files\n"
    "  --force    replace DST if it is a file\n"
    "  --bare     a SPELW001 file that every reader of the form takes: without the texts that "
    "keep\n"
    "             the model's name and identity on the way there and back\n"
    "  --to       the form of DST; the other one than SRC's if not given, spelw with --random\n"
    "  --random   seeded random weights instead of SRC: for benchmarks, no language in them\n"
    "  --seed     of --random; 1 if not given\n"
    "  --config   shape of --random, e.g. "
    "d_model=1024,n_layers=16,n_heads=16,head_dim=64,d_ff=3072\n"
    "  --golden   compute the golden logits anew with this build instead of copying SRC's\n";

ModelForm form_of(const std::filesystem::path& path) {
  std::error_code ignored;  // Opening the file will say what is wrong with it.
  return std::filesystem::is_directory(path, ignored) ? ModelForm::kDirectory : ModelForm::kSpelw;
}

ModelForm requested_form(const Options& options) {
  if (const std::optional<std::string> to = options.value("to")) {
    if (*to != "spelw" && *to != "directory") {
      throw Error(ErrorCode::kInvalidArgument,
                  "--to is \"" + *to + "\"; expected spelw or directory");
    }
    return *to == "spelw" ? ModelForm::kSpelw : ModelForm::kDirectory;
  }
  if (options.has("random")) {
    return ModelForm::kSpelw;
  }
  return form_of(options.positional().front()) == ModelForm::kSpelw ? ModelForm::kDirectory
                                                                    : ModelForm::kSpelw;
}

std::unique_ptr<ModelSource> requested_source(const Options& options) {
  if (!options.has("random")) {
    std::unique_ptr<ModelSource> source = open_model(options.positional().front());
    require_shape(source->config(), std::nullopt);
    return source;
  }
  ModelConfig base;
  base.name = "random";
  const ModelConfig config = chosen_shape(base, options.value("config"));
  const std::uint64_t seed = parse_unsigned("--seed", options.value("seed").value_or("1"),
                                            std::numeric_limits<std::uint64_t>::max());
  return random_source(config, seed);
}

void require_consistent(const Options& options) {
  const bool random = options.has("random");
  const std::size_t paths = random ? 1 : 2;
  if (options.positional().size() != paths) {
    throw Error(ErrorCode::kInvalidArgument,
                random ? "expected DST after --random" : "expected SRC and DST");
  }
  if (!random && (options.value("seed") || options.value("config"))) {
    throw Error(ErrorCode::kInvalidArgument, "--seed and --config go with --random only");
  }
}

/// Banks of notes are bound to the identity.
void tell_of_identity(const ModelSource& source, const ModelSource& written, std::ostream& err) {
  if (written.sha256() != source.sha256()) {
    err << "convert: note: the identity is no longer " << source.sha256()
        << ": banks of notes written with the source will not answer\n";
  }
}

/// Any shape can be written, for programs of other vocabularies; what runs here is said here.
void warn_of_vocabulary(const ModelConfig& config, std::ostream& err) {
  try {
    (void)make_tokenizer(config);
  } catch (const Error& error) {
    err << "convert: note: no command of this program runs what was written: " << error.what()
        << "\n";
  }
}

void convert(const Options& options, ToolStreams streams) {
  require_consistent(options);
  const ModelForm form = requested_form(options);
  if (options.has("bare") && form != ModelForm::kSpelw) {
    throw Error(ErrorCode::kInvalidArgument, "--bare goes with --to spelw only");
  }
  const std::unique_ptr<ModelSource> source = requested_source(options);
  std::optional<GoldenLogits> golden;
  if (options.has("golden")) {
    golden = run_golden(build_weights(*source, WeightsDtype::kF32), golden_tokens(source->config()),
                        kernels_from_environment(), ternary_from_environment());
  }
  const std::filesystem::path target = options.positional().back();
  write_model(*source, golden, target, form,
              options.has("bare") ? SpelwTexts::kLeaveOut : SpelwTexts::kKeep,
              options.has("force") ? Existing::kReplace : Existing::kKeep);
  const std::unique_ptr<ModelSource> written = open_model(target);
  streams.out << target.string() << ": " << written->file_bytes() << " bytes of weights, "
              << (written->golden() ? "with" : "without") << " golden logits, sha256 "
              << written->sha256() << "\n";
  if (!options.has("random")) {
    tell_of_identity(*source, *written, streams.err);
  }
  warn_of_vocabulary(written->config(), streams.err);
}

}  // namespace

int convert_weights_main(std::span<const std::string> args, ToolStreams streams) {
  return run_subcommand(
      {"convert", kUsage, {{"to", "seed", "config"}, {"random", "golden", "bare", "force"}, 2}},
      args, streams, [&](const Options& options) {
        convert(options, streams);
        return kToolOk;
      });
}

}  // namespace spel::engine::tools

#include <limits>
#include <memory>
#include <ostream>
#include <system_error>

#include "config/base/error.h"
#include "engine/model/convert.h"
#include "engine/model/random_source.h"
#include "engine/tools/golden_run.h"
#include "engine/tools/options.h"
#include "engine/tools/tool.h"

namespace spel::engine::tools {
namespace {

constexpr const char* kUsage =
    "usage: spel convert SRC DST [--to spelw|directory] [--golden]\n"
    "       spel convert --random DST [--to spelw|directory] [--seed N] [--config k=v,...]\n"
    "                    [--golden]\n"
    "  SRC, DST   a model directory or a SPELW001 file; DST must not be a directory with files\n"
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
    return open_model(options.positional().front());
  }
  ModelConfig config;
  config.name = "random";
  if (const std::optional<std::string> shape = options.value("config")) {
    config = apply_shape(config, *shape);
  }
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

void convert(const Options& options, std::ostream& out) {
  require_consistent(options);
  const ModelForm form = requested_form(options);
  const std::unique_ptr<ModelSource> source = requested_source(options);
  std::optional<GoldenLogits> golden;
  if (options.has("golden")) {
    golden =
        run_golden(build_weights(*source, WeightsDtype::kF32), golden_tokens(source->config()));
  }
  const std::filesystem::path target = options.positional().back();
  write_model(*source, golden, target, form);
  const std::unique_ptr<ModelSource> written = open_model(target);
  out << target.string() << ": " << written->file_bytes() << " bytes of weights, "
      << (written->golden() ? "with" : "without") << " golden logits, sha256 " << written->sha256()
      << "\n";
}

}  // namespace

int convert_weights_main(std::span<const std::string> args, ToolStreams streams) {
  try {
    const Options options(args, {{"to", "seed", "config"}, {"random", "golden", "help"}, 2});
    if (options.has("help")) {
      streams.out << kUsage;
      return kToolOk;
    }
    convert(options, streams.out);
    return kToolOk;
  } catch (const Error& error) {
    streams.err << "convert: " << error.what() << "\n";
    return error.code() == ErrorCode::kInvalidArgument ? kToolBadUsage : kToolFailed;
  } catch (const std::exception& error) {
    streams.err << "convert: " << error.what() << "\n";
    return kToolFailed;
  }
}

}  // namespace spel::engine::tools

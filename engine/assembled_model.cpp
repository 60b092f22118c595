#include "engine/assembled_model.h"

#include <algorithm>
#include <string>
#include <utility>

#include "config/base/error.h"
#include "engine/arch/architecture.h"
#include "engine/arch/directory_names.h"
#include "engine/arch/spel_hybrid_json.h"
#include "engine/files/mapped_file.h"
#include "engine/speculate/model_drafter.h"
#include "engine/text/id_tokenizer.h"
#include "engine/text/tokenizer_config.h"
#include "engine/text/tokenizer_file.h"

namespace spel::engine {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorCode::kCorrupt, why); }

std::shared_ptr<const Tokenizer> tokenizer_of(const ModelConfig& config,
                                              const std::filesystem::path& path) {
  try {
    return make_tokenizer(config);
  } catch (const Error& error) {
    throw Error(error.code(), path.string() + ": " + error.what());
  }
}

/// What `read` makes of a file of the directory; nothing where there is none.
template <typename Read>
auto read_if_there(const std::filesystem::path& path, const char* name, const Read& read) {
  using Result = decltype(read(std::string_view(), std::string()));
  std::error_code ignored;
  const std::filesystem::path file = path / name;
  // One that is there but cannot be read is an error, not an absence.
  if (std::filesystem::status(file, ignored).type() == std::filesystem::file_type::not_found) {
    return Result();
  }
  return read(MappedFile(file).text(), file.string());
}

GenerationConfig generation_config_of(const std::filesystem::path& path) {
  return read_if_there(path, kGenerationConfigName, read_generation_config);
}

TokenizerConfig tokenizer_config_of(const std::filesystem::path& path) {
  return read_if_there(path, kTokenizerConfigName, read_tokenizer_config);
}

/// Null where the directory has none.
std::shared_ptr<const Tokenizer> tokenizer_in(const std::filesystem::path& path,
                                              const TokenizerConfig& beside) {
  return read_if_there(path, kTokenizerName, [&](std::string_view text, const std::string& source) {
    return std::shared_ptr<const Tokenizer>(read_tokenizer_json(text, source, beside));
  });
}

/// The file of its own goes before the one in tokenizer_config.json, as in transformers.
std::optional<std::string> chat_template_of(const std::filesystem::path& path,
                                            const TokenizerConfig& beside) {
  auto own = read_if_there(path, kChatTemplateName, [](std::string_view text, const std::string&) {
    return std::optional(std::string(text));
  });
  return own ? own : beside.chat_template;
}

/// A model may have more rows than tokens, never the other way round.
void check_vocabulary(const Tokenizer& tokenizer, const ModelSpec& spec,
                      const std::filesystem::path& path) {
  if (tokenizer.vocab_size() > spec.vocab_size) {
    refuse((path / kTokenizerName).string() + " has ids up to " +
           std::to_string(tokenizer.vocab_size() - 1) + ", but the model's vocab_size is " +
           std::to_string(spec.vocab_size) +
           "; a model runs only with the tokenizer it was made with");
  }
}

/// Of the configuration and the generation's, each once.
std::vector<TokenId> end_tokens_of(const ModelSpec& spec, const std::vector<TokenId>& more,
                                   const std::filesystem::path& path) {
  std::vector<TokenId> ends = spec.end_tokens;
  ends.insert(ends.end(), more.begin(), more.end());
  for (const TokenId end : ends) {
    if (end < 0 || static_cast<std::size_t>(end) >= spec.vocab_size) {
      refuse((path / kGenerationConfigName).string() + ": eos_token_id is " + std::to_string(end) +
             "; expected ids below vocab_size (" + std::to_string(spec.vocab_size) + ")");
    }
  }
  std::ranges::sort(ends);
  const auto twice = std::ranges::unique(ends);
  ends.erase(twice.begin(), twice.end());
  return ends;
}

/// A target alone: everything is then decoded plainly.
LoadedModel load_directory_alone(const std::filesystem::path& path, WeightsDtype dtype) {
  const Architecture& architecture = architecture_of(path, architectures());
  LoadedModel loaded;
  if (architecture.model_type == kSpelHybrid) {
    const MappedFile file(path / kConfigName);
    loaded.config = parse_config_json(file.text(), (path / kConfigName).string());
    loaded.tokenizer = tokenizer_of(*loaded.config, path);
    loaded.weights = load_directory(path, architecture, dtype);
    return loaded;
  }
  const GenerationConfig generation = generation_config_of(path);
  const TokenizerConfig beside = tokenizer_config_of(path);
  std::shared_ptr<const Tokenizer> tokenizer = tokenizer_in(path, beside);
  loaded.weights = load_directory(path, architecture, dtype);
  const ModelSpec& spec = loaded.weights->target.spec;
  loaded.tokenizer = tokenizer ? tokenizer : make_id_tokenizer(spec.vocab_size);
  check_vocabulary(*loaded.tokenizer, spec, path);
  loaded.end_tokens = end_tokens_of(spec, generation.eos, path);
  loaded.chat_template = chat_template_of(path, beside);
  loaded.defaults = generation.defaults;
  return loaded;
}

}  // namespace

std::shared_ptr<const Tokenizer> make_tokenizer(const ModelConfig& config) {
  if (config.tokenizer != "ascii") {
    refuse("tokenizer \"" + config.tokenizer + "\" is not one this build knows: ascii");
  }
  if (config.vocab_size != kAsciiTokens) {
    refuse("vocab_size is " + std::to_string(config.vocab_size) +
           ", but the tokenizer \"ascii\" has " + std::to_string(kAsciiTokens) +
           " tokens; a model runs only with the tokenizer it was made with");
  }
  if (config.bos_token_id >= 0) {
    refuse("bos_token_id is " + std::to_string(config.bos_token_id) +
           "; expected null: the tokenizer \"ascii\" begins no text with a token of its own");
  }
  return make_ascii_tokenizer(config.eos_token_id < 0 ? std::nullopt
                                                      : std::optional(config.eos_token_id));
}

std::unique_ptr<ModelSource> open_text_model(const std::filesystem::path& path) {
  std::unique_ptr<ModelSource> source = open_model(path);
  (void)tokenizer_of(source->config(), path);
  return source;
}

LoadedModel load_text_model(const std::filesystem::path& path, WeightsDtype dtype) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored) &&
      !std::filesystem::exists(path / kDraftName, ignored)) {
    return load_directory_alone(path, dtype);
  }
  const std::unique_ptr<ModelSource> source = open_model(path);
  auto tokenizer = tokenizer_of(source->config(), path);
  return {build_weights(*source, dtype), std::move(tokenizer), source->config(), {}, {}, {}};
}

AssembledModel assemble_model(LoadedModel loaded, const RunOptions& options) {
  AssembledModel model{std::move(loaded), {}, {}, {}, {}};
  model.target_pool = std::make_unique<kernels::ThreadPool>(options.target_threads, "the target's");
  model.draft_pool = std::make_unique<kernels::ThreadPool>(options.draft_threads, "the draft's");
  ModelOptions run = options.model;
  run.max_seq = std::min(run.max_seq, model.weights->target.spec.max_seq);
  model.target = make_target_model(model.weights, options.kernels, *model.target_pool, run);
  if (model.weights->draft) {
    model.draft = make_draft_model(model.weights, options.kernels, *model.draft_pool, run);
  }
  return model;
}

AssembledModel assemble_model(const std::filesystem::path& path, WeightsDtype dtype,
                              const RunOptions& options) {
  return assemble_model(load_text_model(path, dtype), options);
}

std::unique_ptr<Engine> start_engine(const EngineConfig& config, AssembledModel& model) {
  EngineConfig of_model = config;
  of_model.end_tokens = model.end_tokens;
  return std::make_unique<Engine>(of_model, std::move(model.target),
                                  make_model_drafter("ternary", std::move(model.draft)),
                                  model.tokenizer);
}

}  // namespace spel::engine

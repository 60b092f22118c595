#include "server/model_loader.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sched.h>
#include <set>
#include <string>
#include <utility>

#include "config/base/error.h"
#include "engine/assembled_model.h"
#include "engine/files/mapped_file.h"
#include "engine/template/template_error.h"
#include "kernels/kernels.h"
#include "proto/text_assembler.h"
#include "server/note_service.h"

namespace spel::server {
namespace {

const kernels::Kernels& select_kernels(const config::ServerConfig& config) {
  return kernels::Kernels::select(config.isa == "auto" ? std::nullopt
                                                       : kernels::parse_isa(config.isa));
}

kernels::TernaryKernel select_ternary(const config::ServerConfig& config) {
  for (const auto kernel : {kernels::TernaryKernel::kAddsub, kernels::TernaryKernel::kScalar}) {
    if (config.kernel == kernels::ternary_kernel_name(kernel)) {
      return kernel;
    }
  }
  return kernels::TernaryKernel::kDotprod;
}

std::uint64_t dense_bytes(const engine::ModelWeights& weights) {
  std::uint64_t bytes = weights.shared.lm_head.bytes() + weights.shared.embedding.size() * 4;
  engine::for_each_matrix(weights.target, [&](const kernels::Matrix& matrix) {
    bytes += kernels::weight_bytes_of(matrix);
  });
  if (weights.draft) {
    engine::for_each_matrix(*weights.draft, [&](const kernels::Matrix& matrix) {
      bytes += kernels::weight_bytes_of(matrix);
    });
  }
  return bytes;
}

/// How the target's matrices lie in memory: those that bf16 cannot hold exactly stay f32, whatever
/// was asked for.
std::string held_dtype(const engine::ModelWeights& weights) {
  std::set<kernels::DenseType> types{weights.shared.lm_head.type()};
  engine::for_each_matrix(weights.target, [&](const kernels::Matrix& matrix) {
    if (const auto* dense = std::get_if<kernels::DenseMatrix>(&matrix)) {
      types.insert(dense->type());
    }
  });
  if (types.size() > 1) {
    return "bf16 and f32";
  }
  return types.contains(kernels::DenseType::kBf16) ? "bf16" : "f32";
}

engine::EngineConfig engine_config(const config::ServerConfig& config) {
  engine::EngineConfig result;
  result.sequences = config.sequences;
  result.queue_capacity = config.queue;
  result.prefill_chunk = config.prefill_chunk;
  result.prefix_cache_entries = config.prefix_cache;
  result.kernels = &select_kernels(config);
  return result;
}

/// The model's own, none, or a file's: as `chat_template` has it.
ChatFormat chat_format(const config::ServerConfig& config, const engine::LoadedModel& model) {
  std::string source;
  std::string name = "chat template";
  if (config.chat_template == "auto") {
    if (!model.chat_template) {
      return {};
    }
    source = *model.chat_template;
  } else if (config.chat_template == "off") {
    return {};
  } else {
    const engine::MappedFile file(config.chat_template);
    source = file.text();
    name = config.chat_template;
  }
  const std::optional<bool> thinking = config.enable_thinking == "auto"
                                           ? std::nullopt
                                           : std::optional(config.enable_thinking == "on");
  try {
    return {source, name, *model.tokenizer, thinking};
  } catch (const engine::TemplateSyntaxError& error) {
    throw Error(error.code(), std::string(error.what()) +
                                  " (--chat-template off serves the model without it, "
                                  "--chat-template FILE with another)");
  }
}

}  // namespace

std::size_t physical_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
    return 1;
  }
  // Hyper-threads of one core share its first line of siblings.
  std::set<std::string> cores;
  std::size_t unknown = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) {
      continue;
    }
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                       "/topology/thread_siblings_list");
    std::string siblings;
    if (std::getline(file, siblings)) {
      cores.insert(siblings);
    } else {
      ++unknown;
    }
  }
  return std::max<std::size_t>(cores.size() + unknown, 1);
}

Backend::Backend() = default;
Backend::~Backend() = default;

std::unique_ptr<const Backend> load_backend(const config::ServerConfig& config) {
  const auto dtype =
      config.weights_dtype == "f32" ? engine::WeightsDtype::kF32 : engine::WeightsDtype::kBf16;
  const engine::EngineConfig batch = engine_config(config);
  engine::RunOptions run{
      .target_threads = config.target_threads == 0 ? physical_cores() : config.target_threads,
      .draft_threads = config.draft_threads,
      .kernels = select_kernels(config)};
  run.model.max_seq = config.max_seq;
  run.model.max_batch_rows = batch.batch_rows();
  run.model.ternary = select_ternary(config);
  run.model.numerics =
      config.numerics == "fast" ? engine::Numerics::kFast : engine::Numerics::kStrict;
  auto model =
      std::make_shared<engine::AssembledModel>(engine::assemble_model(config.model, dtype, run));
  const engine::ModelWeights& weights = *model->weights;
  const engine::ModelSpec& spec = weights.target.spec;

  auto backend = std::make_unique<Backend>();
  backend->model_id = proto::to_valid_utf8(config.name.empty() ? spec.name : config.name);
  backend->created = std::chrono::duration_cast<std::chrono::seconds>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count();
  backend->parameters = spec.parameters();
  backend->draft_parameters = weights.draft ? model->config.value().draft_parameters() : 0;
  backend->weight_bytes = dense_bytes(weights);
  backend->weights_dtype = held_dtype(weights);
  backend->fingerprint = "spel-" + weights.sha256.substr(0, 12);
  backend->numerics = config.numerics;
  backend->generation_defaults = model->defaults;
  backend->chat = chat_format(config, *model);
  backend->target_threads = run.target_threads;
  backend->draft_threads = run.draft_threads;
  backend->isa = kernels::isa_name(run.kernels.isa());
  backend->kernel = kernels::ternary_kernel_name(run.model.ternary);
  backend->engine = engine::start_engine(batch, *model);
  backend->resources = model;
  if (backend->engine->capture_shape().channels > 0) {
    try {
      backend->notes = std::make_unique<NoteService>(*backend->engine, run.kernels, config.data_dir,
                                                     weights.sha256);
    } catch (const ThreadError&) {
      throw;
    } catch (const Error& error) {
      throw NoteStoreError(error.code(), error.what());
    }
  }
  return backend;
}

}  // namespace spel::server

// The resident model as the server knows it: the engine and what there is to say about it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/arch/generation_config.h"
#include "engine/engine.h"
#include "engine/text/tokenizer.h"
#include "server/chat_format.h"

namespace spel::server {

class NoteService;

/// Immutable but for the engine, which is thread-safe.
struct Backend {
  Backend();
  ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  std::string model_id;
  std::int64_t created = 0;  ///< Unix seconds.
  std::uint64_t parameters = 0;
  std::uint64_t draft_parameters = 0;  ///< 0: no draft model.
  std::uint64_t weight_bytes = 0;
  std::string weights_dtype;  ///< In memory: "bf16", "f32" or "bf16 and f32".
  std::string fingerprint;    ///< Of the weights: the model's identity.
  std::string isa;
  std::string kernel;
  std::string numerics;
  engine::GenerationDefaults generation_defaults;  ///< What requests get that do not say.
  ChatFormat chat;
  std::size_t target_threads = 0;
  std::size_t draft_threads = 0;
  std::shared_ptr<const void> resources;  ///< What the engine refers to and must not outlive.
  std::unique_ptr<engine::Engine> engine;
  std::unique_ptr<NoteService> notes;  ///< Null: the model has no channels to capture.
};

}  // namespace spel::server

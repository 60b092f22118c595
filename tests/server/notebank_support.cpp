#include "notebank_support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <utility>

#include "engine/assembled_model.h"
#include "kernels/kernels.h"
#include "proto/openapi.h"
#include "server/app.h"
#include "server/backend.h"
#include "server/note_service.h"
#include "tests/proto/schema_check.h"

namespace spel::server::testing {
namespace {

std::unique_ptr<const Backend> notebank_backend(const std::string& data_dir,
                                                const std::string& hash) {
  engine::ModelConfig shape;
  shape.name = "tiny";
  shape.d_model = 32;
  shape.n_layers = 10;
  shape.n_heads = 1;
  shape.head_dim = 32;
  shape.d_ff = 32;
  shape.vocab_size = 128;
  shape.max_seq = kNoteModelSeq;
  engine::EngineConfig config;
  config.sequences = 2;
  config.calibrate = false;
  engine::RunOptions run;
  run.model.max_batch_rows = config.batch_rows();
  auto model = std::make_shared<engine::AssembledModel>(
      engine::assemble_model({engine::random_model(shape, 3, engine::WeightsDtype::kBf16),
                              engine::make_ascii_tokenizer(), shape},
                             run));
  auto backend = std::make_unique<Backend>();
  backend->model_id = "tiny";
  backend->created = 1'700'000'000;
  backend->parameters = 1000;
  backend->draft_parameters = 100;
  backend->weights_dtype = "bf16";
  backend->fingerprint = "spel-test";
  backend->engine = engine::start_engine(config, *model);
  backend->resources = std::move(model);
  backend->notes = std::make_unique<NoteService>(*backend->engine, run.kernels, data_dir, hash);
  return backend;
}

}  // namespace

NoteServer::NoteServer(const std::string& data_dir, const std::string& hash)
    : TestServer(Loading{}) {
  app().set_backend(notebank_backend(data_dir, hash));
}

std::vector<std::string> violations(const std::string& schema, const json& value) {
  static const json document = json::parse(proto::openapi_json());
  return proto::schema_violations(document, schema, value);
}

void expect_schema(const std::string& schema, const Reply& reply, int status) {
  EXPECT_EQ(reply.status, status) << reply.body;
  EXPECT_THAT(violations(schema, reply.parsed()), ::testing::IsEmpty()) << reply.body;
}

void expect_error(const Reply& reply, int status, const std::string& param,
                  const std::string& words) {
  expect_schema("Error", reply, status);
  EXPECT_EQ(reply.error_param(), param) << reply.body;
  EXPECT_THAT(reply.body, ::testing::HasSubstr(words));
}

std::string text_with(const std::string& fact, std::size_t characters) {
  std::string text;
  while (text.size() < characters) {
    text += text.size() < characters / 2 && text.size() + 20 >= characters / 2 ? fact + " "
                                                                               : "the old road ";
  }
  return text;
}

std::vector<json> sse_events(const std::string& body) {
  std::vector<json> events;
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t end = body.find("\n\n", at);
    const std::string frame = body.substr(at, end - at);
    events.push_back(frame == "data: [DONE]" ? json("[DONE]") : json::parse(frame.substr(6)));
    at = end + 2;
  }
  return events;
}

json replay_body() {
  return {{"prompt", "?KEY_37="}, {"max_tokens", 8}, {"temperature", 0}, {"seed", 1}};
}

}  // namespace spel::server::testing

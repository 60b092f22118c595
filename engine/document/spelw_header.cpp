#include "engine/document/spelw_header.h"

#include <cstring>
#include <vector>

#include "config/base/error.h"
#include "config/base/limits.h"

namespace spel::engine {
namespace {

constexpr std::size_t kFields = 14;
constexpr std::uint32_t kFooterFlag = 1;
constexpr std::uint32_t kDirectoryFlag = 2;
static_assert(kSpelwMagic.size() + kFields * sizeof(std::uint32_t) == kSpelwHeaderBytes);

/// The plain shape fields, in file order; then come the draft map and the flags.
struct Field {
  const char* name;
  std::uint32_t ModelConfig::* value;
  std::uint32_t max;
};
constexpr std::array<Field, 8> kShapeFields = {
    {{"d_model", &ModelConfig::d_model, limits::kModelDimMax},
     {"n_layers", &ModelConfig::n_layers, limits::kLayersMax},
     {"n_heads", &ModelConfig::n_heads, limits::kHeadsMax},
     {"head_dim", &ModelConfig::head_dim, limits::kModelDimMax},
     {"d_ff", &ModelConfig::d_ff, limits::kModelDimMax},
     {"vocab", &ModelConfig::vocab_size, limits::kVocabMax},
     {"max_seq", &ModelConfig::max_seq, limits::kMaxSeqMax},
     {"attn_period", &ModelConfig::attn_period, limits::kLayersMax}}};
constexpr std::size_t kDraftCountField = kShapeFields.size();
constexpr std::size_t kDraftMapField = kDraftCountField + 1;
constexpr std::size_t kFlagsField = kDraftMapField + kSpelwDraftLayers;
static_assert(kFlagsField + 1 == kFields);

constexpr std::size_t offset_of(std::size_t field) {
  return kSpelwMagic.size() + field * sizeof(std::uint32_t);
}

[[noreturn]] void refuse(const std::string& source, const std::string& field, std::size_t index,
                         std::uint32_t found, const std::string& expected) {
  throw Error(ErrorCode::kCorrupt, source + ": header field " + field + " at byte " +
                                       std::to_string(offset_of(index)) + " is " +
                                       std::to_string(found) + "; expected " + expected);
}

}  // namespace

SpelwHeader parse_spelw_header(std::span<const std::byte> bytes, const std::string& source) {
  if (bytes.size() < kSpelwHeaderBytes) {
    throw Error(ErrorCode::kCorrupt, source + ": expected at least " +
                                         std::to_string(kSpelwHeaderBytes) +
                                         " bytes of header, found " + std::to_string(bytes.size()));
  }
  if (std::memcmp(bytes.data(), kSpelwMagic.data(), kSpelwMagic.size()) != 0) {
    throw Error(ErrorCode::kCorrupt,
                source + ": expected a model directory or a file that begins with " +
                    std::string(kSpelwMagic));
  }
  std::array<std::uint32_t, kFields> fields{};
  std::memcpy(fields.data(), bytes.data() + kSpelwMagic.size(), sizeof(fields));

  SpelwHeader header;
  for (std::size_t i = 0; i < kShapeFields.size(); ++i) {
    if (fields[i] == 0 || fields[i] > kShapeFields[i].max) {
      refuse(source, kShapeFields[i].name, i, fields[i],
             "1 to " + std::to_string(kShapeFields[i].max));
    }
    header.config.*kShapeFields[i].value = fields[i];
  }
  if (fields[kDraftCountField] != kSpelwDraftLayers) {
    refuse(source, "n_draft_layers", kDraftCountField, fields[kDraftCountField],
           std::to_string(kSpelwDraftLayers));
  }
  header.config.draft_layers.assign(fields.begin() + kDraftMapField,
                                    fields.begin() + kDraftMapField + kSpelwDraftLayers);
  if ((fields[kFlagsField] & ~(kFooterFlag | kDirectoryFlag)) != 0) {
    refuse(source, "flags", kFlagsField, fields[kFlagsField], "0 to 3");
  }
  header.has_footer = (fields[kFlagsField] & kFooterFlag) != 0;
  header.has_directory = (fields[kFlagsField] & kDirectoryFlag) != 0;
  try {
    header.config.validate();
  } catch (const Error& error) {
    throw Error(error.code(), source + ": header: " + error.what());
  }
  return header;
}

std::array<std::byte, kSpelwHeaderBytes> write_spelw_header(const ModelConfig& config,
                                                            bool with_footer, bool with_directory) {
  const auto require = [](bool condition, const std::string& what) {
    if (!condition) {
      throw Error(ErrorCode::kInvalidArgument,
                  "SPELW001 cannot hold this model: its header has no place for " + what +
                      "; keep the model directory form");
    }
  };
  const ModelConfig defaults;
  require(config.draft_layers.size() == kSpelwDraftLayers,
          std::to_string(config.draft_layers.size()) + " draft layers (it has " +
              std::to_string(kSpelwDraftLayers) + ")");
  require(config.conv_taps == defaults.conv_taps, "another conv_taps");
  require(config.attn_logit_scale == defaults.attn_logit_scale, "another attn_logit_scale");
  require(config.rope_theta == defaults.rope_theta, "another rope_theta");
  require(config.rms_norm_eps == defaults.rms_norm_eps, "another rms_norm_eps");
  require(config.l2_norm_eps == defaults.l2_norm_eps, "another l2_norm_eps");
  require(config.conv_activation == defaults.conv_activation, "another conv_activation");
  require(config.gates == defaults.gates, "other gates");
  require(config.read_order == defaults.read_order, "another read_order");
  require(config.tie_word_embeddings == defaults.tie_word_embeddings, "tied embeddings");
  require(config.tokenizer == defaults.tokenizer, "another tokenizer");
  require(config.bos_token_id == defaults.bos_token_id, "a bos_token_id");
  require(config.eos_token_id == defaults.eos_token_id, "an eos_token_id");

  std::array<std::uint32_t, kFields> fields{};
  for (std::size_t i = 0; i < kShapeFields.size(); ++i) {
    fields[i] = config.*kShapeFields[i].value;
  }
  fields[kDraftCountField] = kSpelwDraftLayers;
  for (std::size_t i = 0; i < kSpelwDraftLayers; ++i) {
    fields[kDraftMapField + i] = config.draft_layers[i];
  }
  fields[kFlagsField] = (with_footer ? kFooterFlag : 0) | (with_directory ? kDirectoryFlag : 0);
  std::array<std::byte, kSpelwHeaderBytes> bytes{};
  std::memcpy(bytes.data(), kSpelwMagic.data(), kSpelwMagic.size());
  std::memcpy(bytes.data() + kSpelwMagic.size(), fields.data(), sizeof(fields));
  return bytes;
}

}  // namespace spel::engine

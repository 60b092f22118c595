// Hard limits of the whole program. Everything that grows has one; configurable limits have their
// ceiling here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spel::limits {

// Model shapes a file may ask for.
inline constexpr std::uint32_t kModelDimMax = 65536;
inline constexpr std::uint32_t kLayersMax = 1024;
inline constexpr std::uint32_t kHeadsMax = 1024;
inline constexpr std::size_t kHeadDimMax = 4096;
inline constexpr std::uint32_t kVocabMax = 1U << 20;
inline constexpr std::uint32_t kMaxSeqMax = 1U << 20;
inline constexpr std::uint32_t kConvTapsMax = 8;
inline constexpr std::size_t kSplitPatternBytesMax = 8192;  ///< Of a tokenizer.
inline constexpr std::size_t kShardsMax = 4096;             ///< Files of one model.

// Speculation.
inline constexpr std::size_t kSpecKMax = 16;  ///< Proposals per round; state rings hold K+1.
inline constexpr std::size_t kSpecKDefault = 4;
inline constexpr std::size_t kDraftThreadsMax = 6;
inline constexpr std::size_t kTargetThreadsMax = 64;

// Requests.
inline constexpr std::size_t kSequencesMax = 64;
inline constexpr std::size_t kQueueMax = 4096;
inline constexpr std::size_t kChoicesMax = 8;
inline constexpr std::size_t kPromptsMax = kQueueMax + kSequencesMax;  ///< See also pipeline.h.
inline constexpr std::size_t kStopStringsMax = 16;
inline constexpr std::size_t kStopBytesMax = 256;
inline constexpr std::size_t kTopLogprobsMax = 20;
/// Logprobs in one answer, alternatives counted: what a client can make the server hold.
inline constexpr std::size_t kLogprobEntriesMax = std::size_t{1} << 18;
inline constexpr std::size_t kLogitBiasMax = 1024;
inline constexpr std::size_t kStopTokensMax = 64;
inline constexpr std::size_t kThinkingCloseMax = 256;  ///< Tokens that close a thought.
inline constexpr std::size_t kMessagesMax = 256;
/// "chat_template_kwargs": what a request may say to a model's template.
inline constexpr std::size_t kTemplateArgumentsMax = 64;
inline constexpr std::size_t kTemplateArgumentsBytesMax = 16384;
inline constexpr std::size_t kTemplateArgumentsDepthMax = 8;
inline constexpr std::size_t kTemplateArgumentNameMax = 64;
inline constexpr std::size_t kGovernorWindowMax = 4096;
inline constexpr std::size_t kNoteTopMax = 64;
inline constexpr std::size_t kBankNameMax = 64;
inline constexpr std::size_t kModelNameMax = 256;

// Chat templates: what stands inside what in one, levels of one expression, of a rendering.
inline constexpr std::size_t kTemplateSourceBytesMax = 1U << 20;
inline constexpr std::size_t kTemplateDepthMax = 100;
inline constexpr std::size_t kTemplateTreeDepthMax = 400;
inline constexpr std::size_t kTemplateCallDepthMax = 800;
inline constexpr std::size_t kTemplateStepsMax = std::size_t{4} << 20;
inline constexpr std::size_t kTemplateBytesMax = std::size_t{64} << 20;

// HTTP bodies.
inline constexpr std::size_t kBodyBytesDefault = 1U << 20;
inline constexpr std::size_t kBodyBytesMax = 64U << 20;
inline constexpr std::size_t kJsonDepthDefault = 32;
inline constexpr std::size_t kJsonDepthMax = 256;

// JSON text from outside; see config/json/reader.h.
inline constexpr std::size_t kJsonValuesMax = 1U << 20;
inline constexpr std::size_t kJsonMembersMax = 4096;
inline constexpr std::size_t kJsonPartsMax = 1U << 16;

}  // namespace spel::limits

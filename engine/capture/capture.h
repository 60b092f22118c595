// Native keys and queries of a text, taken by target passes outside the batch.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "engine/types.h"

namespace spel::engine {

/// The text is read from an empty state, alone: no sequence of the batch sees it.
struct CaptureRequest {
  std::vector<TokenId> tokens;  ///< Not empty; at most max_seq of them.
  /// Vectors of the last so many tokens are kept; those before are context only.
  std::size_t keep = std::numeric_limits<std::size_t>::max();
  bool queries = false;  ///< Beside the keys.
};

/// L2-normalised vectors as the recurrent layers computed them. A channel is one (recurrent layer,
/// key head), layer by layer.
struct Capture {
  std::size_t tokens = 0;
  std::vector<float> keys;     ///< [tokens][channels][head_dim]
  std::vector<float> queries;  ///< The same, if they were asked for.
};

struct CaptureOutcome {
  Capture capture;
  std::string error;  ///< Not empty: there is no capture. Safe to show to a client.
};

/// Called once, on the engine thread: it must be quick.
using CaptureDone = std::function<void(CaptureOutcome)>;

/// What can be captured of a model. No channels: nothing can.
struct CaptureShape {
  std::size_t channels = 0;
  std::size_t head_dim = 0;
};

}  // namespace spel::engine

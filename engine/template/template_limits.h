// What one rendering of a template may take.
#pragma once

#include <cstddef>

#include "config/base/limits.h"

namespace spel::engine {

struct TemplateLimits {
  std::size_t steps = limits::kTemplateStepsMax;  ///< Expressions, statements, elements.
  std::size_t bytes = limits::kTemplateBytesMax;  ///< Made in all: values, pieces and the prompt.
};

}  // namespace spel::engine

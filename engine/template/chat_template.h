// A model's chat template: the part of Jinja that such templates are written in.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "engine/template/marked_text.h"
#include "engine/template/template_error.h"
#include "engine/template/template_limits.h"
#include "engine/template/value.h"

namespace spel::engine {

/// Immutable, safe from any thread.
class ChatTemplate {
 public:
  /// `name` is what messages call it: a file. Throws TemplateSyntaxError, with line and column, for
  /// what is not well formed and for whatever this program does not know.
  ChatTemplate(std::string_view source, std::string name);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  /// The prompt that these variables make, and which of its bytes came from foreign values. Takes
  /// no longer and no more memory than `limits` allow. Throws TemplateError.
  [[nodiscard]] MarkedText render(const TemplateValue::Dict& variables,
                                  const TemplateLimits& limits = {}) const;

  [[nodiscard]] const std::string& source() const noexcept { return source_; }

 private:
  std::string source_;
  std::string name_;
  std::unique_ptr<const TemplateNode> tree_;
};

}  // namespace spel::engine

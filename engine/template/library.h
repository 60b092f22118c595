// The functions, filters, tests and methods a template may use. Internal to engine/template.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/template/render.h"
#include "engine/template/value.h"

namespace spel::engine {

/// What something is called with, already evaluated.
struct TemplateArguments {
  std::vector<TemplateValue> in_order;
  std::vector<std::pair<std::string, TemplateValue>> named;

  /// The one at `place` or called `name`; nullptr if there is neither.
  [[nodiscard]] const TemplateValue* find(std::size_t place, std::string_view name) const;
};

[[nodiscard]] bool is_template_function(std::string_view name);
[[nodiscard]] bool is_template_filter(std::string_view name);
[[nodiscard]] bool is_template_test(std::string_view name);
[[nodiscard]] bool is_template_method(std::string_view name);

// All throw TemplateError; those that make something charge it to `work`.

[[nodiscard]] TemplateValue call_template_function(std::string_view name,
                                                   const TemplateArguments& arguments,
                                                   TemplateWork& work);
[[nodiscard]] TemplateValue apply_template_filter(std::string_view name,
                                                  const TemplateValue& subject,
                                                  const TemplateArguments& arguments,
                                                  TemplateWork& work);
[[nodiscard]] bool apply_template_test(std::string_view name, const TemplateValue& subject,
                                       const TemplateArguments& arguments, TemplateWork& work);
[[nodiscard]] TemplateValue call_template_method(const TemplateValue& object, std::string_view name,
                                                 const TemplateArguments& arguments,
                                                 TemplateWork& work);

}  // namespace spel::engine

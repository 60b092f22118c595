// From tokens to a tree. Internal to engine/template.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "engine/template/node.h"

namespace spel::engine {

/// A kBlock. Whatever this interpreter does not know is refused here, where it stands: a filter, a
/// test, a method, a function, a statement. Throws TemplateSyntaxError.
[[nodiscard]] std::unique_ptr<TemplateNode> parse_template(std::string_view source,
                                                           const std::string& name);

}  // namespace spel::engine

// A parsed template. Internal to engine/template.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/template/lexer.h"
#include "engine/template/value.h"

namespace spel::engine {

/// What `children` are stands beside each kind; an absent one is null.
struct TemplateNode {
  enum class Kind {
    // Expressions.
    kConstant,   ///< `value`
    kName,       ///< `name`
    kList,       ///< Elements. A tuple too: nothing here tells them apart.
    kDict,       ///< Key, value, key, value, …
    kAttribute,  ///< Object; `name`
    kItem,       ///< Object, index.
    kSlice,      ///< Object, begin, end, step.
    kCall,       ///< What is called, then its arguments; `named`
    kFilter,     ///< What it is put to, then its arguments; `name`, `named`
    kTest,       ///< The same.
    kNot,        ///< One.
    kMinus,
    kPlus,
    kAnd,  ///< Two.
    kOr,
    kBinary,   ///< Two; `name` is the sign.
    kCompare,  ///< The first, then one for each of `signs`.
    kConcat,   ///< At least two.
    kIf,       ///< Condition, then, else. Of an expression and of a statement.
    // Statements.
    kData,         ///< `value`
    kPrint,        ///< One.
    kBlock,        ///< Statements.
    kFor,          ///< What is gone through, condition, body, else; `targets`
    kSet,          ///< Value; `targets`, or `object` and `name`.
    kSetBlock,     ///< Body, filter or null; `targets`, or `object` and `name`.
    kMacro,        ///< Defaults, as many as `targets` (null: none), then the body; `name`
    kWith,         ///< Values as many as `targets`, then the body.
    kFilterBlock,  ///< Body, filter.
    kBreak,
    kContinue,
  };
  using Children = std::vector<std::unique_ptr<TemplateNode>>;

  Kind kind = Kind::kConstant;
  TemplatePlace place;
  std::size_t depth = 1;  ///< Of the tree below it, itself counted.
  std::string name;
  TemplateValue value;
  Children children;
  std::vector<std::pair<std::string, std::unique_ptr<TemplateNode>>> named;
  std::vector<std::string> signs;
  std::vector<std::string> targets;
  std::string object;  ///< Of a namespace whose member is set.

  [[nodiscard]] const TemplateNode& child(std::size_t i) const { return *children[i]; }
};

}  // namespace spel::engine

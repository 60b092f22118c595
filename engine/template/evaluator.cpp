// Renders a parsed template.
#include <algorithm>
#include <functional>
#include <utility>

#include "config/base/limits.h"
#include "engine/template/chat_template.h"
#include "engine/template/library.h"
#include "engine/template/node.h"
#include "engine/template/operators.h"
#include "engine/template/parser.h"
#include "engine/template/render.h"

namespace spel::engine {

/// Names and their values; what is not here is looked for in the one around it.
class TemplateScope {
 public:
  explicit TemplateScope(TemplateScope* around) : around_(around) {}

  void set(std::string_view name, TemplateValue value) {
    const auto at = std::ranges::find(values_, name, &std::pair<std::string, TemplateValue>::first);
    if (at != values_.end()) {
      at->second = std::move(value);
    } else {
      values_.emplace_back(name, std::move(value));
    }
  }
  [[nodiscard]] const TemplateValue* find(std::string_view name) const {
    for (const TemplateScope* scope = this; scope != nullptr; scope = scope->around_) {
      const auto at =
          std::ranges::find(scope->values_, name, &std::pair<std::string, TemplateValue>::first);
      if (at != scope->values_.end()) {
        return &at->second;
      }
    }
    return nullptr;
  }

 private:
  TemplateScope* around_;
  std::vector<std::pair<std::string, TemplateValue>> values_;
};

namespace {

using NodeKind = TemplateNode::Kind;
using Kind = TemplateValue::Kind;

/// How a statement ends.
enum class Flow { kOn, kBreak, kContinue };

class Evaluator {
 public:
  Evaluator(TemplateWork& work, TemplateScope& root) : work_(work), root_(root) {}

  Flow run(const TemplateNode& node, TemplateScope& scope, MarkedText& out) {
    const Depth depth(*this);
    work_.step(node.place);
    switch (node.kind) {
      case NodeKind::kBlock:
        for (const auto& child : node.children) {
          if (const Flow flow = run(*child, scope, out); flow != Flow::kOn) {
            return flow;
          }
        }
        return Flow::kOn;
      case NodeKind::kData:
        write(node.value.text(), out);
        return Flow::kOn;
      case NodeKind::kPrint:
        write(text_of_value(value(node.child(0), scope), work_), out);
        return Flow::kOn;
      case NodeKind::kIf:
        return run_if(node, scope, out);
      case NodeKind::kFor:
        return run_for(node, scope, out);
      case NodeKind::kSet:
        assign(node, value(node.child(0), scope), scope);
        return Flow::kOn;
      case NodeKind::kSetBlock:
        return run_captured(node, scope,
                            [&](TemplateValue text) { assign(node, std::move(text), scope); });
      case NodeKind::kFilterBlock:
        return run_captured(node, scope, [&](const TemplateValue& text) {
          write(text_of_value(text, work_), out);
        });
      case NodeKind::kMacro:
        scope.set(node.name, TemplateValue(TemplateValue::Macro{&node, &root_}));
        return Flow::kOn;
      case NodeKind::kWith: {
        TemplateScope inner(&scope);
        for (std::size_t i = 0; i < node.targets.size(); ++i) {
          inner.set(node.targets[i], value(node.child(i), scope));
        }
        return run(*node.children.back(), inner, out);
      }
      case NodeKind::kBreak:
        return Flow::kBreak;
      case NodeKind::kContinue:
        return Flow::kContinue;
      default:
        work_.wrong("a statement that is none");
    }
  }

 private:
  /// What is evaluated inside something else: macros that call themselves end here.
  class Depth {
   public:
    explicit Depth(Evaluator& evaluator) : depth_(evaluator.depth_) {
      if (++depth_ > limits::kTemplateCallDepthMax) {
        --depth_;
        throw TemplateError(TemplateError::Kind::kLimit,
                            "the template calls itself more than " +
                                std::to_string(limits::kTemplateCallDepthMax) + " levels deep");
      }
    }
    ~Depth() { --depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    std::size_t& depth_;
  };

  void write(const MarkedText& text, MarkedText& out) {
    work_.bytes(text.text.size());
    out.append(text);
  }

  // --- Statements
  // ----------------------------------------------------------------------------------

  Flow run_if(const TemplateNode& node, TemplateScope& scope, MarkedText& out) {
    const auto& branch = value(node.child(0), scope).truth() ? node.children[1] : node.children[2];
    return branch ? run(*branch, scope, out) : Flow::kOn;
  }

  template <typename Take>
  Flow run_captured(const TemplateNode& node, TemplateScope& scope, const Take& take) {
    MarkedText inner;
    TemplateScope own(&scope);
    const Flow flow = run(node.child(0), own, inner);
    TemplateValue text(std::move(inner));
    take(node.children[1] ? filtered(*node.children[1], text, scope) : text);
    return flow;
  }

  Flow run_for(const TemplateNode& node, TemplateScope& scope, MarkedText& out) {
    TemplateValue::List items = elements(value(node.child(0), scope), work_);
    if (node.children[1]) {
      std::erase_if(items, [&](const TemplateValue& one) {
        TemplateScope inner(&scope);
        unpack(node.targets, one, inner);
        return !value(*node.children[1], inner).truth();
      });
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
      TemplateScope inner(&scope);
      inner.set("loop", loop_at(items, i));
      unpack(node.targets, items[i], inner);
      if (run(node.child(2), inner, out) == Flow::kBreak) {
        break;
      }
    }
    if (items.empty() && node.children[3]) {
      return run(*node.children[3], scope, out);
    }
    return Flow::kOn;
  }

  TemplateValue loop_at(const TemplateValue::List& items, std::size_t i) {
    const auto number = [](std::size_t n) { return TemplateValue(static_cast<std::int64_t>(n)); };
    const auto undefined = [](const char* name) {
      return TemplateValue(TemplateValue::Undefined{name});
    };
    TemplateValue::Dict loop;
    const auto add = [&](const char* name, TemplateValue one) {
      loop.emplace_back(MarkedText(name, false), std::move(one));
    };
    add("index", number(i + 1));
    add("index0", number(i));
    add("revindex", number(items.size() - i));
    add("revindex0", number(items.size() - i - 1));
    add("first", TemplateValue(i == 0));
    add("last", TemplateValue(i + 1 == items.size()));
    add("length", number(items.size()));
    add("previtem", i > 0 ? items[i - 1] : undefined("loop.previtem"));
    add("nextitem", i + 1 < items.size() ? items[i + 1] : undefined("loop.nextitem"));
    work_.steps(loop.size());
    return TemplateValue(std::move(loop));
  }

  void unpack(const std::vector<std::string>& targets, const TemplateValue& from,
              TemplateScope& scope) {
    if (targets.size() == 1) {
      scope.set(targets.front(), from);
      return;
    }
    const TemplateValue::List parts = elements(from, work_);
    if (parts.size() != targets.size()) {
      work_.wrong(std::to_string(parts.size()) + " values for " + std::to_string(targets.size()) +
                  " names");
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      scope.set(targets[i], parts[i]);
    }
  }

  void assign(const TemplateNode& node, TemplateValue to, TemplateScope& scope) {
    if (node.object.empty()) {
      unpack(node.targets, to, scope);
      return;
    }
    const TemplateValue* object = scope.find(node.object);
    if (object == nullptr || !object->is(Kind::kNamespace)) {
      work_.wrong("\"" + node.object +
                  "\" is no namespace: only those have members that can be set");
    }
    TemplateValue::Dict& members = object->names().members;
    const auto at =
        std::ranges::find(members, node.name,
                          [](const auto& member) -> std::string_view { return member.first.text; });
    if (at != members.end()) {
      at->second = std::move(to);
    } else {
      work_.bytes(node.name.size() + 64);
      members.emplace_back(MarkedText(node.name, false), std::move(to));
    }
  }

  // --- Expressions
  // -----------------------------------------------------------------------------------

  TemplateValue value(const TemplateNode& node, TemplateScope& scope) {
    const Depth depth(*this);
    work_.step(node.place);
    switch (node.kind) {
      case NodeKind::kConstant:
        return node.value;
      case NodeKind::kName:
        return named(node, scope);
      case NodeKind::kList: {
        TemplateValue::List list;
        for (const auto& child : node.children) {
          list.push_back(value(*child, scope));
        }
        work_.bytes(list.size() * sizeof(TemplateValue));
        return TemplateValue(std::move(list));
      }
      case NodeKind::kDict:
        return mapping(node, scope);
      case NodeKind::kAttribute:
        return attribute(value(node.child(0), scope), node.name, work_);
      case NodeKind::kItem:
        return item(value(node.child(0), scope), value(node.child(1), scope), work_);
      case NodeKind::kSlice:
        return slice(value(node.child(0), scope), optional(node, 1, scope),
                     optional(node, 2, scope), optional(node, 3, scope), work_);
      case NodeKind::kCall:
        return call(node, scope);
      case NodeKind::kFilter:
        return filtered(node, value(node.child(0), scope), scope);
      case NodeKind::kTest:
        return TemplateValue(apply_template_test(node.name, value(node.child(0), scope),
                                                 arguments(node, scope), work_));
      case NodeKind::kNot:
        return TemplateValue(!value(node.child(0), scope).truth());
      case NodeKind::kAnd: {
        TemplateValue left = value(node.child(0), scope);
        return left.truth() ? value(node.child(1), scope) : left;
      }
      case NodeKind::kOr: {
        TemplateValue left = value(node.child(0), scope);
        return left.truth() ? left : value(node.child(1), scope);
      }
      case NodeKind::kIf:
        if (value(node.child(0), scope).truth()) {
          return value(node.child(1), scope);
        }
        return node.children[2] ? value(*node.children[2], scope) : TemplateValue();
      default:
        return operation(node, scope);
    }
  }

  TemplateValue operation(const TemplateNode& node, TemplateScope& scope) {
    switch (node.kind) {
      case NodeKind::kMinus:
      case NodeKind::kPlus:
        return signed_number(node, scope);
      case NodeKind::kBinary: {
        // From the left, and the left first.
        const TemplateValue left = value(node.child(0), scope);
        return binary(node.name, left, value(node.child(1), scope), work_);
      }
      case NodeKind::kCompare: {
        TemplateValue left = value(node.child(0), scope);
        for (std::size_t i = 0; i < node.signs.size(); ++i) {
          TemplateValue right = value(node.child(i + 1), scope);
          if (!compare(node.signs[i], left, right, work_)) {
            return TemplateValue(false);
          }
          left = std::move(right);
        }
        return TemplateValue(true);
      }
      case NodeKind::kConcat: {
        MarkedText out;
        for (const auto& child : node.children) {
          write(text_of_value(value(*child, scope), work_), out);
        }
        return TemplateValue(std::move(out));
      }
      default:
        work_.wrong("an expression that is none");
    }
  }

  TemplateValue signed_number(const TemplateNode& node, TemplateScope& scope) {
    const TemplateValue operand = value(node.child(0), scope);
    if (!operand.is_number()) {
      work_.wrong("a sign before a " + std::string(operand.kind_name()));
    }
    // Not a difference from 0: that has no minus zero.
    return binary("*", TemplateValue(std::int64_t{node.kind == NodeKind::kMinus ? -1 : 1}), operand,
                  work_);
  }

  TemplateValue optional(const TemplateNode& node, std::size_t child, TemplateScope& scope) {
    return node.children[child] ? value(*node.children[child], scope)
                                : TemplateValue(TemplateValue::None());
  }

  TemplateValue named(const TemplateNode& node, TemplateScope& scope) {
    if (const TemplateValue* found = scope.find(node.name)) {
      return *found;
    }
    if (is_template_function(node.name)) {
      return TemplateValue(TemplateValue::Function{node.name});
    }
    return TemplateValue(TemplateValue::Undefined{node.name});
  }

  TemplateValue mapping(const TemplateNode& node, TemplateScope& scope) {
    TemplateValue::Dict dict;
    for (std::size_t i = 0; i < node.children.size(); i += 2) {
      const TemplateValue key = value(node.child(i), scope);
      if (!key.is(Kind::kText)) {
        work_.wrong("a mapping's key that is a " + std::string(key.kind_name()) +
                    "; expected a string");
      }
      TemplateValue member = value(node.child(i + 1), scope);
      const auto at =
          std::ranges::find(dict, key.text().text,
                            [](const auto& one) -> const std::string& { return one.first.text; });
      if (at != dict.end()) {
        at->second = std::move(member);
      } else {
        dict.emplace_back(key.text(), std::move(member));
      }
      work_.steps(dict.size());
    }
    work_.bytes(dict.size() * sizeof(TemplateValue::Dict::value_type));
    return TemplateValue(std::move(dict));
  }

  /// Of a call, a filter or a test: its children but the first.
  TemplateArguments arguments(const TemplateNode& node, TemplateScope& scope) {
    TemplateArguments given;
    for (std::size_t i = 1; i < node.children.size(); ++i) {
      given.in_order.push_back(value(node.child(i), scope));
    }
    for (const auto& [name, argument] : node.named) {
      given.named.emplace_back(name, value(*argument, scope));
    }
    return given;
  }

  /// A chain stands around its innermost filter, which has nothing to be put to yet.
  TemplateValue filtered(const TemplateNode& node, const TemplateValue& subject,
                         TemplateScope& scope) {
    TemplateValue to = subject;
    if (node.children[0] && node.children[0]->kind == NodeKind::kFilter &&
        is_open(*node.children[0])) {
      to = filtered(*node.children[0], subject, scope);
    }
    return apply_template_filter(node.name, to, arguments(node, scope), work_);
  }
  static bool is_open(const TemplateNode& filter) {
    return !filter.children[0] ||
           (filter.children[0]->kind == NodeKind::kFilter && is_open(*filter.children[0]));
  }

  TemplateValue call(const TemplateNode& node, TemplateScope& scope) {
    const TemplateNode& callee = node.child(0);
    if (callee.kind == NodeKind::kAttribute) {
      const TemplateValue object = value(callee.child(0), scope);
      if (callee.name == "cycle") {
        return cycle(object, arguments(node, scope));
      }
      return call_template_method(object, callee.name, arguments(node, scope), work_);
    }
    const TemplateValue function = value(callee, scope);
    const TemplateArguments given = arguments(node, scope);
    if (function.is(Kind::kMacro)) {
      return call_macro(*function.macro().node, *function.macro().scope, given);
    }
    if (function.is(Kind::kFunction)) {
      return call_template_function(function.function(), given, work_);
    }
    work_.wrong(
        "\"" + callee.name + "\" is " +
        (function.is(Kind::kUndefined) ? "undefined" : "a " + std::string(function.kind_name())) +
        " and cannot be called");
  }

  TemplateValue cycle(const TemplateValue& loop, const TemplateArguments& given) {
    const TemplateValue index = attribute(loop, "index0", work_);
    if (!index.is(Kind::kInt) || given.in_order.empty()) {
      work_.wrong("cycle() of something that is no loop, or without values");
    }
    return given.in_order[static_cast<std::size_t>(index.integer()) % given.in_order.size()];
  }

  TemplateValue call_macro(const TemplateNode& macro, TemplateScope& around,
                           const TemplateArguments& given) {
    TemplateScope scope(&around);
    if (given.in_order.size() > macro.targets.size()) {
      work_.wrong("macro " + macro.name + " takes " + std::to_string(macro.targets.size()) +
                  " arguments, not " + std::to_string(given.in_order.size()));
    }
    for (const auto& [name, argument] : given.named) {
      if (std::ranges::find(macro.targets, name) == macro.targets.end()) {
        work_.wrong("macro " + macro.name + " has no argument " + name);
      }
    }
    for (std::size_t i = 0; i < macro.targets.size(); ++i) {
      if (const TemplateValue* argument = given.find(i, macro.targets[i])) {
        scope.set(macro.targets[i], *argument);
      } else if (macro.children[i]) {
        scope.set(macro.targets[i], value(*macro.children[i], scope));
      } else {
        scope.set(macro.targets[i], TemplateValue(TemplateValue::Undefined{macro.targets[i]}));
      }
    }
    MarkedText out;
    (void)run(*macro.children.back(), scope, out);
    return TemplateValue(std::move(out));
  }

  TemplateWork& work_;
  TemplateScope& root_;
  std::size_t depth_ = 0;
};

}  // namespace

ChatTemplate::ChatTemplate(std::string_view source, std::string name)
    : source_(source), name_(std::move(name)) {
  if (source.size() > limits::kTemplateSourceBytesMax) {
    throw TemplateSyntaxError(name_ + ": " + std::to_string(source.size()) +
                              " bytes; expected at most " +
                              std::to_string(limits::kTemplateSourceBytesMax));
  }
  tree_ = parse_template(source_, name_);
}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

MarkedText ChatTemplate::render(const TemplateValue::Dict& variables,
                                const TemplateLimits& limits) const {
  TemplateWork work(limits, name_);
  TemplateScope given(nullptr);
  for (const auto& [name, value] : variables) {
    given.set(name.text, value);
  }
  TemplateScope root(&given);
  MarkedText out;
  (void)Evaluator(work, root).run(*tree_, root, out);
  return out;
}

}  // namespace spel::engine

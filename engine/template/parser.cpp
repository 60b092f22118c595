#include "engine/template/parser.h"

#include <algorithm>
#include <array>
#include <set>

#include "config/base/limits.h"
#include "engine/template/library.h"

namespace spel::engine {
namespace {

using Kind = TemplateNode::Kind;
using Node = std::unique_ptr<TemplateNode>;
using Token = TemplateToken::Kind;

class Parser {
 public:
  Parser(std::string_view source, const std::string& name)
      : name_(name), tokens_(template_tokens(source, name)) {}

  Node run() {
    Node body = statements({});
    for (const auto& [function, place] : called_) {
      if (!assigned_.contains(function) && !is_template_function(function)) {
        refuse_template(name_, place, "there is no function " + function);
      }
    }
    return body;
  }

 private:
  /// Nesting of whatever kind: what is deep here is deep on the stack when it is rendered.
  class Depth {
   public:
    explicit Depth(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > limits::kTemplateDepthMax) {
        parser_.refuse("more than " + std::to_string(limits::kTemplateDepthMax) +
                       " things inside one another");
      }
    }
    ~Depth() { --parser_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    Parser& parser_;
  };

  // --- Tokens
  // --------------------------------------------------------------------------------------

  [[nodiscard]] const TemplateToken& now() const { return tokens_[at_]; }
  [[nodiscard]] const TemplateToken& next() const {
    return tokens_[std::min(at_ + 1, tokens_.size() - 1)];
  }
  TemplateToken take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  [[nodiscard]] bool sees(Token kind, std::string_view text) const {
    return now().kind == kind && now().text == text;
  }
  [[nodiscard]] bool sees_sign(std::string_view text) const { return sees(Token::kSign, text); }
  [[nodiscard]] bool sees_name(std::string_view text) const { return sees(Token::kName, text); }
  bool take_sign(std::string_view text) { return sees_sign(text) && (take(), true); }
  bool take_name(std::string_view text) { return sees_name(text) && (take(), true); }
  void need_sign(std::string_view text) {
    if (!take_sign(text)) {
      refuse("expected \"" + std::string(text) + "\"");
    }
  }
  void need_name(std::string_view text) {
    if (!take_name(text)) {
      refuse("expected \"" + std::string(text) + "\"");
    }
  }
  std::string need_any_name() {
    if (now().kind != Token::kName) {
      refuse("expected a name");
    }
    return take().text;
  }
  void need_block_end() {
    if (now().kind != Token::kBlockEnd) {
      refuse("expected the end of the tag");
    }
    take();
  }
  [[noreturn]] void refuse(const std::string& why) const {
    refuse_template(name_, now().place, why);
  }

  [[nodiscard]] Node make(Kind kind) const {
    auto node = std::make_unique<TemplateNode>();
    node->kind = kind;
    node->place = now().place;
    return node;
  }
  template <typename... Children>
  [[nodiscard]] Node make(Kind kind, TemplatePlace place, Children... children) const {
    Node node = make(kind);
    node->place = place;
    (node->children.push_back(std::move(children)), ...);
    for (const Node& child : node->children) {
      node->depth = std::max(node->depth, child ? child->depth + 1 : 1);
    }
    // A chain of operators or attributes grows without anything being nested.
    if (node->depth > limits::kTemplateTreeDepthMax) {
      refuse_template(name_, place,
                      "an expression of more than " +
                          std::to_string(limits::kTemplateTreeDepthMax) + " levels");
    }
    return node;
  }

  // --- Statements
  // ----------------------------------------------------------------------------------

  /// Up to a block tag that begins with one of `ends`, which stays; up to the end if there are
  /// none.
  Node statements(std::initializer_list<std::string_view> ends) {
    const Depth depth(*this);
    Node block = make(Kind::kBlock);
    while (now().kind != Token::kEnd) {
      if (now().kind == Token::kData) {
        Node data = make(Kind::kData);
        data->value = TemplateValue(std::string_view(take().text));
        block->children.push_back(std::move(data));
      } else if (now().kind == Token::kPrintBegin) {
        const TemplatePlace place = take().place;
        block->children.push_back(make(Kind::kPrint, place, tuple()));
        if (now().kind != Token::kPrintEnd) {
          refuse("expected \"}}\"");
        }
        take();
      } else {
        if (next().kind == Token::kName && std::ranges::find(ends, next().text) != ends.end()) {
          return block;
        }
        take();
        if (Node one = statement()) {
          block->children.push_back(std::move(one));
        }
      }
    }
    if (ends.size() > 0) {
      refuse("expected {% " + std::string(*(ends.end() - 1)) + " %}");
    }
    return block;
  }

  /// {% name %} whose name has been seen to come.
  void end_tag(std::string_view name) {
    take();
    need_name(name);
    need_block_end();
  }

  Node statement() {
    const TemplatePlace place = now().place;
    const std::string name = need_any_name();
    if (name == "if") {
      return if_statement(place);
    }
    if (name == "for") {
      return for_statement(place);
    }
    if (name == "set") {
      return set_statement(place);
    }
    if (name == "macro") {
      return macro_statement(place);
    }
    if (name == "with") {
      return with_statement(place);
    }
    if (name == "filter") {
      Node applied = filter_chain(nullptr);
      need_block_end();
      Node body = statements({"endfilter"});
      end_tag("endfilter");
      return make(Kind::kFilterBlock, place, std::move(body), std::move(applied));
    }
    if (name == "generation") {  // transformers' mark of what a model has written: nothing here.
      need_block_end();
      Node body = statements({"endgeneration"});
      end_tag("endgeneration");
      return body;
    }
    if (name == "break" || name == "continue") {
      if (loops_ == 0) {
        refuse_template(name_, place, "{% " + name + " %} outside of a loop");
      }
      need_block_end();
      return make(name == "break" ? Kind::kBreak : Kind::kContinue, place);
    }
    refuse_template(name_, place, "the statement \"" + name + "\" is not one this program knows");
  }

  Node if_statement(TemplatePlace place) {
    const Depth depth(*this);
    Node condition = tuple();
    need_block_end();
    Node body = statements({"elif", "else", "endif"});
    Node other;
    take();
    const TemplatePlace branch = now().place;
    if (take_name("elif")) {
      other = if_statement(branch);
      return make(Kind::kIf, place, std::move(condition), std::move(body), std::move(other));
    }
    if (take_name("else")) {
      need_block_end();
      other = statements({"endif"});
      take();
    }
    need_name("endif");
    need_block_end();
    return make(Kind::kIf, place, std::move(condition), std::move(body), std::move(other));
  }

  std::vector<std::string> target_names() {
    const bool bracket = take_sign("(");
    std::vector<std::string> names;
    do {
      if (now().kind != Token::kName) {
        break;  // A comma may end the list.
      }
      names.push_back(assignable());
    } while (take_sign(","));
    if (bracket) {
      need_sign(")");
    }
    if (names.empty()) {
      refuse("expected a name");
    }
    return names;
  }

  std::string assignable() {
    constexpr std::array<std::string_view, 6> kTaken = {"true", "false", "none",
                                                        "True", "False", "None"};
    if (std::ranges::find(kTaken, now().text) != kTaken.end()) {
      refuse("\"" + now().text + "\" cannot be set");
    }
    std::string name = need_any_name();
    assigned_.insert(name);
    return name;
  }

  Node for_statement(TemplatePlace place) {
    Node loop = make(Kind::kFor);
    loop->place = place;
    loop->targets = target_names();
    need_name("in");
    loop->children.push_back(tuple(false));
    loop->children.push_back(take_name("if") ? expression() : nullptr);
    if (sees_name("recursive")) {
      refuse("recursive loops are not something this program knows");
    }
    need_block_end();
    ++loops_;
    loop->children.push_back(statements({"else", "endfor"}));
    --loops_;
    Node other;
    if (next().text == "else") {
      end_tag("else");
      other = statements({"endfor"});
    }
    end_tag("endfor");
    loop->children.push_back(std::move(other));
    return loop;
  }

  Node set_statement(TemplatePlace place) {
    Node set = make(Kind::kSet);
    set->place = place;
    if (now().kind == Token::kName && next().kind == Token::kSign && next().text == ".") {
      set->object = take().text;
      take();
      set->name = need_any_name();
    } else {
      set->targets = target_names();
    }
    if (take_sign("=")) {
      set->children.push_back(tuple());
      need_block_end();
      return set;
    }
    set->kind = Kind::kSetBlock;
    Node applied = sees_sign("|") ? (take(), filter_chain(nullptr)) : nullptr;
    need_block_end();
    set->children.push_back(statements({"endset"}));
    set->children.push_back(std::move(applied));
    end_tag("endset");
    return set;
  }

  Node macro_statement(TemplatePlace place) {
    Node macro = make(Kind::kMacro);
    macro->place = place;
    macro->name = assignable();
    need_sign("(");
    while (!take_sign(")")) {
      if (!macro->targets.empty()) {
        need_sign(",");
      }
      macro->targets.push_back(assignable());
      macro->children.push_back(take_sign("=") ? expression() : nullptr);
    }
    need_block_end();
    const std::size_t loops = std::exchange(loops_, 0);
    macro->children.push_back(statements({"endmacro"}));
    loops_ = loops;
    end_tag("endmacro");
    return macro;
  }

  Node with_statement(TemplatePlace place) {
    Node with = make(Kind::kWith);
    with->place = place;
    while (now().kind != Token::kBlockEnd) {
      if (!with->targets.empty()) {
        need_sign(",");
      }
      with->targets.push_back(assignable());
      need_sign("=");
      with->children.push_back(expression());
    }
    need_block_end();
    with->children.push_back(statements({"endwith"}));
    end_tag("endwith");
    return with;
  }

  // --- Expressions, the loosest first
  // ----------------------------------------------------------------

  /// One expression, or several with commas between them as a list.
  Node tuple(bool with_if = true) {
    const TemplatePlace place = now().place;
    Node first = expression(with_if);
    if (!sees_sign(",")) {
      return first;
    }
    Node list = make(Kind::kList, place, std::move(first));
    while (take_sign(",") && begins_expression()) {
      list->children.push_back(expression(with_if));
    }
    return list;
  }

  [[nodiscard]] bool begins_expression() const {
    return now().kind == Token::kName
               ? !sees_name("in") && !sees_name("if")
               : now().kind == Token::kText || now().kind == Token::kInt ||
                     now().kind == Token::kFloat || sees_sign("(") || sees_sign("[") ||
                     sees_sign("{") || sees_sign("-") || sees_sign("+");
  }

  Node expression(bool with_if = true) {
    const Depth depth(*this);
    Node value = or_expression();
    while (with_if && sees_name("if")) {
      const TemplatePlace place = take().place;
      Node condition = or_expression();
      Node other = take_name("else") ? expression() : nullptr;
      value = make(Kind::kIf, place, std::move(condition), std::move(value), std::move(other));
    }
    return value;
  }

  Node or_expression() {
    Node left = and_expression();
    while (sees_name("or")) {
      const TemplatePlace place = take().place;
      left = make(Kind::kOr, place, std::move(left), and_expression());
    }
    return left;
  }

  Node and_expression() {
    Node left = not_expression();
    while (sees_name("and")) {
      const TemplatePlace place = take().place;
      left = make(Kind::kAnd, place, std::move(left), not_expression());
    }
    return left;
  }

  Node not_expression() {
    if (sees_name("not")) {
      const Depth depth(*this);
      const TemplatePlace place = take().place;
      return make(Kind::kNot, place, not_expression());
    }
    return comparison();
  }

  Node comparison() {
    const TemplatePlace place = now().place;
    Node first = sum();
    Node compare;
    while (true) {
      std::string sign;
      if (now().kind == Token::kSign &&
          std::ranges::find(kComparisons, now().text) != kComparisons.end()) {
        sign = take().text;
      } else if (take_name("in")) {
        sign = "in";
      } else if (sees_name("not") && next().kind == Token::kName && next().text == "in") {
        take();
        take();
        sign = "not in";
      } else {
        return compare ? std::move(compare) : std::move(first);
      }
      if (!compare) {
        compare = make(Kind::kCompare, place, std::move(first));
      }
      compare->signs.push_back(sign);
      compare->children.push_back(sum());
    }
  }

  /// Operands of `part` with any of `signs` between them, from the left.
  template <typename Part>
  Node from_left(std::initializer_list<std::string_view> signs, const Part& part) {
    Node left = part();
    while (now().kind == Token::kSign && std::ranges::find(signs, now().text) != signs.end()) {
      const TemplateToken sign = take();
      left = make(Kind::kBinary, sign.place, std::move(left), part());
      left->name = sign.text;
    }
    return left;
  }

  Node sum() {
    return from_left({"+", "-"}, [this] { return concatenation(); });
  }

  Node concatenation() {
    const TemplatePlace place = now().place;
    Node first = product();
    if (!sees_sign("~")) {
      return first;
    }
    Node concat = make(Kind::kConcat, place, std::move(first));
    while (take_sign("~")) {
      concat->children.push_back(product());
    }
    return concat;
  }

  Node product() {
    return from_left({"*", "/", "//", "%"},
                     [this] { return from_left({"**"}, [this] { return unary(true); }); });
  }

  Node unary(bool with_filters) {
    const Depth depth(*this);
    const TemplatePlace place = now().place;
    Node node;
    if (take_sign("-")) {
      node = make(Kind::kMinus, place, unary(false));
    } else if (take_sign("+")) {
      node = make(Kind::kPlus, place, unary(false));
    } else {
      node = primary();
    }
    node = postfix(std::move(node));
    return with_filters ? filters_and_tests(std::move(node)) : std::move(node);
  }

  Node primary() {
    Node node = make(Kind::kConstant);
    switch (now().kind) {
      case Token::kName:
        return name_or_constant();
      case Token::kText: {
        std::string text;
        while (now().kind == Token::kText) {
          text += take().text;
        }
        node->value = TemplateValue(std::string_view(text));
        return node;
      }
      case Token::kInt:
        node->value = TemplateValue(take().integer);
        return node;
      case Token::kFloat:
        node->value = TemplateValue(take().real);
        return node;
      default:
        break;
    }
    if (take_sign("(")) {
      if (take_sign(")")) {
        node->kind = Kind::kList;
        return node;
      }
      node = tuple();
      need_sign(")");
      return node;
    }
    if (take_sign("[")) {
      node->kind = Kind::kList;
      elements("]", [&] { node->children.push_back(expression()); });
      return node;
    }
    if (take_sign("{")) {
      node->kind = Kind::kDict;
      elements("}", [&] {
        node->children.push_back(expression());
        need_sign(":");
        node->children.push_back(expression());
      });
      return node;
    }
    refuse("expected an expression");
  }

  template <typename One>
  void elements(std::string_view close, const One& one) {
    while (!take_sign(close)) {
      one();
      if (!sees_sign(close)) {
        need_sign(",");
      }
    }
  }

  Node name_or_constant() {
    Node node = make(Kind::kConstant);
    const std::string name = take().text;
    if (name == "true" || name == "True") {
      node->value = TemplateValue(true);
    } else if (name == "false" || name == "False") {
      node->value = TemplateValue(false);
    } else if (name == "none" || name == "None") {
      node->value = TemplateValue::None();
    } else {
      node->kind = Kind::kName;
      node->name = name;
    }
    return node;
  }

  Node postfix(Node node) {
    while (true) {
      const TemplatePlace place = now().place;
      if (take_sign(".")) {
        if (now().kind == Token::kInt) {
          Node index = make(Kind::kConstant);
          index->value = TemplateValue(take().integer);
          node = make(Kind::kItem, place, std::move(node), std::move(index));
        } else {
          node = make(Kind::kAttribute, place, std::move(node));
          node->name = need_any_name();
        }
      } else if (take_sign("[")) {
        node = subscript(std::move(node), place);
      } else if (sees_sign("(")) {
        node = call(std::move(node));
      } else {
        return node;
      }
    }
  }

  Node subscript(Node object, TemplatePlace place) {
    Node begin = sees_sign(":") ? nullptr : expression();
    if (take_sign("]")) {
      return make(Kind::kItem, place, std::move(object), std::move(begin));
    }
    need_sign(":");
    const auto part = [this] { return sees_sign(":") || sees_sign("]") ? nullptr : expression(); };
    Node end = part();
    Node step = take_sign(":") ? part() : nullptr;
    need_sign("]");
    return make(Kind::kSlice, place, std::move(object), std::move(begin), std::move(end),
                std::move(step));
  }

  Node call(Node callee) {
    if (callee->kind == Kind::kName) {
      called_.emplace_back(callee->name, callee->place);
    } else if (callee->kind != Kind::kAttribute) {
      refuse("only functions, macros and methods can be called");
    } else if (!is_template_method(callee->name)) {
      refuse("the method \"" + callee->name + "\" is not one this program knows");
    }
    const TemplatePlace place = callee->place;
    Node node = make(Kind::kCall, place, std::move(callee));
    arguments(*node);
    return node;
  }

  /// ( … )
  void arguments(TemplateNode& node) {
    need_sign("(");
    elements(")", [&] {
      if (sees_sign("*") || sees_sign("**")) {
        refuse("arguments that are unpacked are not something this program knows");
      }
      if (now().kind == Token::kName && next().kind == Token::kSign && next().text == "=") {
        std::string name = take().text;
        take();
        node.named.emplace_back(std::move(name), expression());
      } else if (!node.named.empty()) {
        refuse("an argument without a name behind one with a name");
      } else {
        node.children.push_back(expression());
      }
    });
  }

  Node filters_and_tests(Node node) {
    while (true) {
      if (take_sign("|")) {
        node = filter(std::move(node));
      } else if (take_name("is")) {
        node = test(std::move(node));
      } else if (sees_sign("(")) {
        node = call(std::move(node));
      } else {
        return node;
      }
    }
  }

  Node filter(Node subject) {
    Node node = make(Kind::kFilter, now().place, std::move(subject));
    node->name = need_any_name();
    if (!is_template_filter(node->name)) {
      refuse_template(name_, node->place,
                      "the filter \"" + node->name + "\" is not one this program knows");
    }
    if (sees_sign("(")) {
      arguments(*node);
    }
    return node;
  }

  /// name | name …: what is put to them comes later.
  Node filter_chain(Node subject) {
    Node node = filter(std::move(subject));
    while (take_sign("|")) {
      node = filter(std::move(node));
    }
    return node;
  }

  Node test(Node subject) {
    const TemplatePlace place = now().place;
    const bool negated = take_name("not");
    Node node = make(Kind::kTest, place, std::move(subject));
    node->name = need_any_name();
    if (!is_template_test(node->name)) {
      refuse_template(name_, place,
                      "the test \"" + node->name + "\" is not one this program knows");
    }
    const bool word = now().kind == Token::kName && !sees_name("else") && !sees_name("or") &&
                      !sees_name("and") && !sees_name("is") && !sees_name("if") &&
                      !sees_name("in") && !sees_name("not");
    if (sees_sign("(")) {
      arguments(*node);
    } else if (word || now().kind == Token::kText || now().kind == Token::kInt ||
               now().kind == Token::kFloat || sees_sign("[") || sees_sign("{")) {
      node->children.push_back(postfix(primary()));
    }
    return negated ? make(Kind::kNot, place, std::move(node)) : std::move(node);
  }

  static constexpr std::array<std::string_view, 6> kComparisons = {"==", "!=", "<",
                                                                   "<=", ">",  ">="};

  const std::string& name_;
  std::vector<TemplateToken> tokens_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  std::size_t loops_ = 0;
  std::set<std::string> assigned_;
  std::vector<std::pair<std::string, TemplatePlace>> called_;
};

}  // namespace

std::unique_ptr<TemplateNode> parse_template(std::string_view source, const std::string& name) {
  return Parser(source, name).run();
}

}  // namespace spel::engine

#include "tests/proto/schema_check.h"

#include <algorithm>
#include <cmath>
#include <regex>
#include <set>

namespace spel::proto {

namespace {

using nlohmann::json;

bool has_type(const json& value, const std::string& type) {
  if (type == "integer") {
    return value.is_number_integer() ||
           (value.is_number() && std::trunc(value.get<double>()) == value.get<double>());
  }
  return (type == "null" && value.is_null()) || (type == "boolean" && value.is_boolean()) ||
         (type == "number" && value.is_number()) || (type == "string" && value.is_string()) ||
         (type == "array" && value.is_array()) || (type == "object" && value.is_object());
}

class Checker {
 public:
  explicit Checker(const json& document) : document_(document) {}

  void check(const json& schema, const json& value, const std::string& path) {
    for (const auto& [keyword, rule] : schema.items()) {
      apply(schema, keyword, rule, value, path);
    }
  }

  [[nodiscard]] const json& resolve(const std::string& reference) const {
    return document_.at(json::json_pointer(reference.substr(1)));
  }

  std::vector<std::string> violations;

 private:
  void require(bool holds, const std::string& path, const std::string& keyword) {
    if (!holds) {
      violations.push_back(path + ": " + keyword);
    }
  }

  [[nodiscard]] std::size_t matches(const json& schemas, const json& value) const {
    return static_cast<std::size_t>(
        std::count_if(schemas.begin(), schemas.end(), [&](const json& schema) {
          Checker other(document_);
          other.check(schema, value, "");
          return other.violations.empty();
        }));
  }

  void apply(const json& schema, const std::string& keyword, const json& rule, const json& value,
             const std::string& path) {
    static const std::set<std::string> ignored = {"description", "default"};
    if (ignored.count(keyword) > 0) {
      return;
    }
    if (keyword == "$ref") {
      check(resolve(rule.get<std::string>()), value, path);
    } else if (keyword == "type") {
      const json types = rule.is_array() ? rule : json::array({rule});
      require(
          std::any_of(types.begin(), types.end(),
                      [&](const json& type) { return has_type(value, type.get<std::string>()); }),
          path, "type");
    } else if (keyword == "const") {
      require(value == rule, path, keyword);
    } else if (keyword == "enum") {
      require(std::find(rule.begin(), rule.end(), value) != rule.end(), path, keyword);
    } else if (keyword == "allOf") {
      require(matches(rule, value) == rule.size(), path, keyword);
    } else if (keyword == "anyOf") {
      require(matches(rule, value) > 0, path, keyword);
    } else if (keyword == "oneOf") {
      require(matches(rule, value) == 1, path, keyword);
    } else if (!apply_number(keyword, rule, value, path) &&
               !apply_size(keyword, rule, value, path) &&
               !apply_object(schema, keyword, rule, value, path)) {
      violations.push_back(path + ": unknown keyword " + keyword);
    }
  }

  bool apply_number(const std::string& keyword, const json& rule, const json& value,
                    const std::string& path) {
    if (keyword == "minimum") {
      require(!value.is_number() || value >= rule, path, keyword);
    } else if (keyword == "maximum") {
      require(!value.is_number() || value <= rule, path, keyword);
    } else if (keyword == "exclusiveMinimum") {
      require(!value.is_number() || value > rule, path, keyword);
    } else {
      return false;
    }
    return true;
  }

  bool apply_size(const std::string& keyword, const json& rule, const json& value,
                  const std::string& path) {
    if (keyword == "minItems" || keyword == "maxItems") {
      require(
          !value.is_array() || (keyword == "minItems" ? value.size() >= rule.get<std::size_t>()
                                                      : value.size() <= rule.get<std::size_t>()),
          path, keyword);
    } else if (keyword == "minLength" || keyword == "maxLength") {
      const std::size_t size = value.is_string() ? value.get_ref<const std::string&>().size() : 0;
      require(!value.is_string() || (keyword == "minLength" ? size >= rule.get<std::size_t>()
                                                            : size <= rule.get<std::size_t>()),
              path, keyword);
    } else if (keyword == "maxProperties") {
      require(!value.is_object() || value.size() <= rule.get<std::size_t>(), path, keyword);
    } else if (keyword == "pattern") {
      require(!value.is_string() ||
                  std::regex_match(value.get<std::string>(), std::regex(rule.get<std::string>())),
              path, keyword);
    } else if (keyword == "items") {
      if (value.is_array()) {
        for (std::size_t i = 0; i < value.size(); ++i) {
          check(rule, value[i], path + "[" + std::to_string(i) + "]");
        }
      }
    } else {
      return false;
    }
    return true;
  }

  bool apply_object(const json& schema, const std::string& keyword, const json& rule,
                    const json& value, const std::string& path) {
    if (keyword != "required" && keyword != "properties" && keyword != "additionalProperties" &&
        keyword != "propertyNames") {
      return false;
    }
    if (!value.is_object()) {
      return true;
    }
    if (keyword == "required") {
      for (const auto& name : rule) {
        require(value.contains(name.get<std::string>()), path + "." + name.get<std::string>(),
                keyword);
      }
      return true;
    }
    const json properties = schema.value("properties", json::object());
    for (const auto& [name, member] : value.items()) {
      const std::string member_path = path + "." + name;
      if (keyword == "propertyNames") {
        check(rule, name, member_path);
      } else if (keyword == "properties" && rule.contains(name)) {
        check(rule[name], member, member_path);
      } else if (keyword == "additionalProperties" && !properties.contains(name)) {
        if (rule.is_boolean()) {
          require(rule.get<bool>(), member_path, keyword);
        } else {
          check(rule, member, member_path);
        }
      }
    }
    return true;
  }

  const json& document_;
};

}  // namespace

std::vector<std::string> violations_of(const json& document, const json& schema,
                                       const json& value) {
  Checker checker(document);
  checker.check(schema, value, "$");
  return checker.violations;
}

std::vector<std::string> schema_violations(const json& document, const std::string& name,
                                           const json& value) {
  Checker checker(document);
  checker.check(checker.resolve("#/components/schemas/" + name), value, name);
  return checker.violations;
}

}  // namespace spel::proto

// JSON as the values of a template, all of them foreign.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "engine/template/chat_template.h"

namespace spel::engine::testing {

inline TemplateValue value_of(const nlohmann::ordered_json& json) {
  if (json.is_null()) {
    return TemplateValue::None();
  }
  if (json.is_boolean()) {
    return TemplateValue(json.get<bool>());
  }
  if (json.is_number_integer()) {
    return TemplateValue(json.get<std::int64_t>());
  }
  if (json.is_number()) {
    return TemplateValue(json.get<double>());
  }
  if (json.is_string()) {
    return TemplateValue::foreign(json.get<std::string>());
  }
  if (json.is_array()) {
    TemplateValue::List list;
    for (const auto& one : json) {
      list.push_back(value_of(one));
    }
    return TemplateValue(std::move(list));
  }
  TemplateValue::Dict dict;
  for (const auto& [key, value] : json.items()) {
    dict.emplace_back(MarkedText(key, true), value_of(value));
  }
  return TemplateValue(std::move(dict));
}

inline TemplateValue::Dict variables_of(const nlohmann::ordered_json& json) {
  return value_of(json).dict();
}

}  // namespace spel::engine::testing

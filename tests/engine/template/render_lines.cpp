// render_lines: for each line of standard input, {"template": …, "variables": {…}}, a line with
// what it renders to, {"text": …}, or {"refused": …} before rendering, {"error": …} while. For
// comparing with other implementations.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/engine/template/json_values.h"

int main() {
  using nlohmann::ordered_json;
  for (std::string line; std::getline(std::cin, line);) {
    const ordered_json given = ordered_json::parse(line);
    ordered_json out;
    try {
      const spel::engine::ChatTemplate compiled(given["template"].get<std::string>(), "template");
      out["text"] = compiled.render(spel::engine::testing::variables_of(given["variables"])).text;
    } catch (const spel::engine::TemplateSyntaxError& error) {
      out["refused"] = error.what();
    } catch (const spel::engine::TemplateError& error) {
      out["error"] = error.what();
    }
    std::cout << out.dump() << "\n";
  }
  return 0;
}

// encode_lines TOKENIZER.JSON: for each line of standard input, a JSON string, its ids as a JSON
// array. For comparing with other implementations.
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "engine/text/tokenizer_file.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: encode_lines TOKENIZER.JSON\n";
    return 2;
  }
  try {
    std::ostringstream text;
    text << std::ifstream(argv[1], std::ios::binary).rdbuf();
    const auto tokenizer = spel::engine::read_tokenizer_json(text.str(), argv[1], {});
    for (std::string line; std::getline(std::cin, line);) {
      const auto ids = tokenizer->encode(nlohmann::json::parse(line).get<std::string>());
      std::cout << nlohmann::json(ids).dump() << "\n";
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}

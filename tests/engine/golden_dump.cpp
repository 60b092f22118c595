// Writes the values of the golden models, tensor after tensor, for a program on another
// architecture that has no reader of model files: golden_dump ROOT FILE.
#include <cstdio>
#include <exception>
#include <fstream>

#include "tests/engine/golden_sources.h"

int main(int argc, char** argv) {
  using namespace spel::engine;
  if (argc != 3) {
    (void)std::fputs("usage: golden_dump ROOT FILE\n", stderr);
    return 2;
  }
  try {
    std::ofstream out(argv[2], std::ios::binary);
    for (const auto& source : testing::golden_sources(argv[1])) {
      for (const TensorSpec& tensor : tensor_layout(source->config()).in_file_order()) {
        const std::vector<float> values = source->read_values(tensor);
        out.write(reinterpret_cast<const char*>(values.data()),
                  static_cast<std::streamsize>(values.size() * sizeof(float)));
      }
    }
    return out.flush() ? 0 : 1;
  } catch (const std::exception& error) {
    (void)std::fprintf(stderr, "golden_dump: %s\n", error.what());
    return 1;
  }
}

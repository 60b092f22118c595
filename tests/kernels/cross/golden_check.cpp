// Holds the golden models to their hashes on this architecture: golden_check FILE, as golden_dump
// wrote it.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>

#include "tests/engine/golden_bits.h"

namespace {

using namespace spel::engine;

/// The values of one model, read from the front of what is left of a dump.
class DumpReader final : public TensorReader {
 public:
  DumpReader(std::istream& dump, const ModelConfig& config) {
    for (const TensorSpec& tensor : tensor_layout(config).in_file_order()) {
      std::vector<float>& values = values_[describe(tensor)];
      values.resize(tensor.values());
      if (!dump.read(reinterpret_cast<char*>(values.data()),
                     static_cast<std::streamsize>(values.size() * sizeof(float)))) {
        throw std::runtime_error("the dump ends in " + describe(tensor));
      }
    }
  }
  void read(const TensorSpec& tensor, std::span<float> out) const override {
    std::ranges::copy(values_.at(describe(tensor)), out.begin());
  }

 private:
  std::map<std::string, std::vector<float>> values_;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto models = testing::golden_models();
    const auto expected = testing::expected_golden_bits();
    std::ifstream dump(argc == 2 ? argv[1] : "", std::ios::binary);
    const auto isa = spel::kernels::attainable_isas().front();
    std::vector<testing::GoldenBits> found;
    for (const ModelConfig& config : models) {
      const DumpReader reader(dump, config);
      found.push_back(testing::compute_golden_bits(config, reader, WeightsDtype::kBf16, isa));
    }
    (void)std::printf("%s computes\n%s", std::string(spel::kernels::isa_name(isa)).c_str(),
                      testing::spelled(found).c_str());
    return found == expected ? 0 : 1;
  } catch (const std::exception& error) {
    (void)std::fprintf(stderr, "golden_check: %s\n", error.what());
    return 2;
  }
}

// Writes the seed corpus of weights_fuzz: one good input of each kind.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "engine/arch/directory_names.h"
#include "engine/document/convert.h"
#include "engine/document/load_model.h"
#include "engine/document/random_source.h"
#include "tests/fuzz/weights_fuzz_kind.h"

namespace {

using spel::engine::ModelConfig;
using spel::engine::WeightsFuzzKind;

ModelConfig smallest_shape() {
  ModelConfig config;
  config.name = "fuzz";
  config.d_model = 4;
  config.n_layers = 5;
  config.n_heads = 1;
  config.head_dim = 4;
  config.d_ff = 4;
  config.vocab_size = 3;
  config.max_seq = 16;
  config.draft_layers = {0, 1, 3, 4};
  return config;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string sized(const std::string& text) {
  return std::string{static_cast<char>(text.size() & 0xFF), static_cast<char>(text.size() >> 8)} +
         text;
}

void write_seed(const std::filesystem::path& path, WeightsFuzzKind kind, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << static_cast<char>(kind) << text;
}

void write_seeds(const std::filesystem::path& folder) {
  const std::filesystem::path model = folder / "model";
  const std::filesystem::path spelw = folder / "spelw";
  std::filesystem::create_directories(folder);
  const auto source = spel::engine::random_source(smallest_shape(), 1);
  write_model(*source, std::nullopt, model, spel::engine::ModelForm::kDirectory);
  write_model(*source, std::nullopt, spelw, spel::engine::ModelForm::kSpelw);
  const std::string config = read_file(model / spel::engine::kConfigName);
  const std::string target = read_file(model / spel::engine::kTargetName);
  const std::string draft = read_file(model / spel::engine::kDraftName);
  write_seed(folder / "seed-spelw", WeightsFuzzKind::kSpelw, read_file(spelw));
  const auto directory = spel::engine::open_model(model);
  write_model(*directory, std::nullopt, folder / "with-texts", spel::engine::ModelForm::kSpelw);
  write_seed(folder / "seed-spelw-texts", WeightsFuzzKind::kSpelw,
             read_file(folder / "with-texts"));
  std::filesystem::remove(folder / "with-texts");
  write_seed(folder / "seed-container", WeightsFuzzKind::kContainer, draft);
  write_seed(folder / "seed-config", WeightsFuzzKind::kConfig, config);
  write_seed(folder / "seed-directory", WeightsFuzzKind::kDirectory,
             sized(config) + sized(target) + draft);
  std::filesystem::remove_all(model);
  std::filesystem::remove(spelw);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: weights_fuzz_seeds FOLDER\n";
    return 2;
  }
  try {
    write_seeds(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}

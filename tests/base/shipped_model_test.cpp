#include "config/base/shipped_model.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

namespace spel {
namespace {

namespace fs = std::filesystem;

class ShippedModel : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  fs::path make(const std::string& folder) {
    fs::create_directories(root_ / folder);
    return root_ / folder;
  }

  const fs::path root_ =
      fs::path(::testing::TempDir()) / ("shipped-model-" + std::to_string(::getpid()));
};

TEST_F(ShippedModel, IsFoundBelowTheWorkingDirectoryFirst) {
  const fs::path below = make("here/engine/models/spel-21m");
  make("tree/engine/models/spel-21m");
  EXPECT_EQ(find_shipped_model(root_ / "here", root_ / "tree/build/release/spel"), below);
}

TEST_F(ShippedModel, IsFoundFromABuildTreeWhereverTheProgramIsCalled) {
  const fs::path model = make("tree/engine/models/spel-21m");
  make("tree/build/release");
  EXPECT_EQ(find_shipped_model(root_ / "elsewhere", root_ / "tree/build/release/spel"), model);
}

TEST_F(ShippedModel, IsFoundFromAnInstallation) {
  const fs::path model = make("usr/share/spel/models/spel-21m");
  make("usr/bin");
  EXPECT_EQ(find_shipped_model(root_ / "elsewhere", root_ / "usr/bin/spel"), model);
}

TEST_F(ShippedModel, IsNothingWhereThereIsNone) {
  EXPECT_EQ(find_shipped_model(root_ / "elsewhere", root_ / "usr/bin/spel"), std::nullopt);
}

}  // namespace
}  // namespace spel

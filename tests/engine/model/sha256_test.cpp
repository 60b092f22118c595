#include "engine/files/sha256.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "engine/files/sha256_sums.h"
#include "model_fixtures.h"

namespace spel::engine {
namespace {

using testing::error_of;

TEST(Sha256, MatchesThePublishedVectors) {
  EXPECT_EQ(sha256_hex(std::string_view()),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                       "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu"),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnHowTheBytesArrive) {
  const std::string text(300, 'x');
  for (std::size_t length = 0; length <= text.size(); ++length) {
    for (const std::size_t piece : {1U, 55U, 63U, 64U, 65U, 129U}) {
      Sha256 hash;
      for (std::size_t at = 0; at < length; at += piece) {
        hash.update(std::string_view(text).substr(at, std::min(piece, length - at)));
      }
      ASSERT_EQ(hash.finish_hex(), sha256_hex(std::string_view(text).substr(0, length)));
    }
  }
}

constexpr const char* kDigest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(Sha256Sums, AcceptsWhatSha256sumWrites) {
  const FileDigest file = {"a.bin", kDigest};
  EXPECT_NO_THROW(require_sums(sums_text({file, {"other", kDigest}}), {file}, ""));
  EXPECT_NO_THROW(require_sums(std::string(kDigest) + " *a.bin", {file}, ""));
}

TEST(Sha256Sums, RefusesADifferentDigestAMissingNameAndABadLine) {
  const std::string wrong = std::string(kDigest).replace(0, 1, "c");
  const FileDigest file = {"a.bin", kDigest};
  EXPECT_NE(error_of([&] { require_sums(wrong + "  a.bin\n", {file}, "m/"); }).find("m/a.bin"),
            std::string::npos);
  EXPECT_NE(error_of([&] { require_sums("", {file}, "m/"); }).find("does not list a.bin"),
            std::string::npos);
  EXPECT_NE(error_of([&] { require_sums("hello\n", {file}, "m/"); }).find("line 1"),
            std::string::npos);
}

}  // namespace
}  // namespace spel::engine

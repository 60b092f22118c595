#include "engine/files/safetensors.h"

#include <gtest/gtest.h>

#include "model_fixtures.h"

namespace spel::engine {
namespace {

using testing::bytes_of;
using testing::error_of;

std::string with_header(const std::string& json, const std::string& data) {
  std::string file(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) {
    file[i] = static_cast<char>((json.size() >> (8 * i)) & 0xFF);
  }
  return file + json + data;
}

std::string problem_in(const std::string& file) {
  return error_of([&] { const SafetensorsView view(bytes_of(file), "f"); });
}

std::string problem_with(const std::string& json, std::size_t data_bytes) {
  return problem_in(with_header(json, std::string(data_bytes, '\0')));
}

TEST(Safetensors, ReadsWhatItWrites) {
  const std::vector<TensorHeader> headers = {{"b", DType::kBf16, {2, 3}},
                                             {"a", DType::kF32, {1}},
                                             {"empty", DType::kU8, {0, 7}},
                                             {"scalar", DType::kI32, {}},
                                             {"c", DType::kI8, {5}}};
  std::string file = safetensors_header(headers, "name \"quoted\"");
  EXPECT_EQ(file.size() % 8, 0U);
  file += std::string(12 + 4 + 4 + 5, 'x');
  const SafetensorsView view(bytes_of(file), "f");
  ASSERT_EQ(view.tensors().size(), headers.size());
  for (const TensorHeader& header : headers) {
    const TensorView* tensor = view.find(header.name);
    ASSERT_NE(tensor, nullptr) << header.name;
    EXPECT_EQ(tensor->dtype, header.dtype);
    EXPECT_EQ(tensor->shape, header.shape);
    EXPECT_EQ(tensor->data.size(), header.data_bytes());
  }
  EXPECT_EQ(view.find("missing"), nullptr);
}

constexpr const char* kOne = R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";

TEST(Safetensors, AcceptsTensorsInAnyOrderThatCoverTheData) {
  EXPECT_EQ(problem_with(kOne, 8), "");
  EXPECT_EQ(problem_with(R"({"__metadata__":{"format":"pt"},)"
                         R"("a":{"dtype":"U8","shape":[1],"data_offsets":[2,3]},)"
                         R"("b":{"shape":[2],"data_offsets":[0,2],"dtype":"I8"}}   )",
                         3),
            "");
  EXPECT_EQ(problem_with("{}", 0), "");
}

TEST(Safetensors, RefusesAFileOfTheWrongSize) {
  for (std::size_t size = 0; size < 20; ++size) {
    if (size != 8) {
      EXPECT_NE(problem_with(kOne, size)
                    .find("expected 8 bytes of tensor data, found " + std::to_string(size)),
                std::string::npos)
          << size;
    }
  }
  EXPECT_NE(problem_with("{}", 1), "");
}

TEST(Safetensors, RefusesEveryTruncation) {
  const std::string file = with_header(kOne, "12345678");
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_NE(problem_in(file.substr(0, size)), "") << size;
  }
}

TEST(Safetensors, RefusesHeaderLengthsBeyondTheFileOrTheLimit) {
  std::string file = with_header(kOne, "12345678");
  for (std::size_t byte = 0; byte < 8; ++byte) {
    std::string spoiled = file;
    spoiled[byte] = static_cast<char>(0xFF);
    EXPECT_NE(problem_in(spoiled), "") << byte;
  }
  EXPECT_NE(problem_in(std::string(8, '\0')), "");
  const std::string padded = "{}" + std::string(SafetensorsView::kHeaderBytesMax, ' ');
  EXPECT_NE(problem_with(padded, 0).find("header length"), std::string::npos);
}

TEST(Safetensors, RefusesTensorsThatDoNotTileTheData) {
  const auto two = [](const char* first, const char* second) {
    return R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)" + std::string(first) +
           R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)" + second + "}}";
  };
  EXPECT_EQ(problem_with(two("[0,2]", "[2,4]"), 4), "");
  EXPECT_NE(problem_with(two("[0,2]", "[1,3]"), 3), "") << "overlap";
  EXPECT_NE(problem_with(two("[0,2]", "[0,2]"), 2), "") << "the same bytes twice";
  EXPECT_NE(problem_with(two("[0,2]", "[3,5]"), 5), "") << "gap";
  EXPECT_NE(problem_with(two("[1,3]", "[3,5]"), 5), "") << "gap in front";
  EXPECT_NE(problem_with(two("[0,3]", "[3,4]"), 4), "") << "sizes exchanged";
  EXPECT_NE(problem_with(two("[2,0]", "[2,4]"), 4), "") << "backwards";
  EXPECT_NE(problem_with(two("[0,2]", "[2,18446744073709551615]"), 4), "");
  EXPECT_NE(problem_with(two("[0,2]", "[2,18446744073709551616]"), 4), "");
  EXPECT_NE(problem_with(two("[0,2]", "[-2,0]"), 4), "");
}

TEST(Safetensors, RefusesShapesWhoseSizeWraps) {
  for (const char* shape :
       {"[4294967296,4294967296]", "[4611686018427387904]", "[4611686018427387905]",
        "[2147483648,2147483648,4]", "[18446744073709551615]", "[9223372036854775809,2]"}) {
    const std::string json =
        R"({"t":{"dtype":"F32","shape":)" + std::string(shape) + R"(,"data_offsets":[0,4]}})";
    EXPECT_NE(problem_with(json, 4), "") << shape;
  }
}

TEST(Safetensors, RefusesMalformedEntries) {
  for (const char* entry :
       {R"({"dtype":"F32","shape":[1]})", R"({"dtype":"F32","data_offsets":[0,4]})",
        R"({"shape":[1],"data_offsets":[0,4]})",
        R"({"dtype":"F64","shape":[1],"data_offsets":[0,4]})",
        R"({"dtype":255,"shape":[1],"data_offsets":[0,4]})",
        R"({"dtype":"F32","shape":1,"data_offsets":[0,4]})",
        R"({"dtype":"F32","shape":[1.0],"data_offsets":[0,4]})",
        R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})",
        R"({"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]})",
        R"({"dtype":"F32","shape":[1],"data_offsets":[0]})",
        R"({"dtype":"F32","shape":[1],"data_offsets":[0,4,4]})",
        R"({"dtype":"F32","shape":[1],"data_offsets":[0,4],"extra":1})",
        R"({"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]})", "[]", "null", "7"}) {
    EXPECT_NE(problem_with("{\"t\":" + std::string(entry) + "}", 4), "") << entry;
  }
  EXPECT_NE(problem_with(R"({"__metadata__":{"a":1}})", 0), "");
  EXPECT_NE(problem_with(R"({"__metadata__":null})", 0), "");
  EXPECT_NE(problem_with("[]", 0), "");
  EXPECT_NE(problem_with("", 0), "");
}

TEST(Safetensors, TakesTheTensorsOfALargeCheckpointAndNotAnyNumber) {
  const auto header = [](std::size_t tensors) {
    std::string json = "{";
    for (std::size_t i = 0; i < tensors; ++i) {
      json += (i > 0 ? "," : "") + ("\"t" + std::to_string(i)) +
              R"(":{"dtype":"BF16","shape":[0,4096],"data_offsets":[0,0]})";
    }
    return json + "}";
  };
  EXPECT_EQ(problem_with(header(SafetensorsView::kTensorsMax), 0), "");
  EXPECT_NE(problem_with(header(SafetensorsView::kTensorsMax + 1), 0).find("65536"),
            std::string::npos);
}

TEST(Safetensors, SaysWhichTensorsWhichKeyWasWhatInsteadOfWhat) {
  EXPECT_EQ(
      problem_with(R"({"t":{"dtype":"F33","shape":[1],"data_offsets":[0,8]}})", 8),
      R"(f header: "t"."dtype" is "F33"; expected one of F32, BF16, F16, I32, I8, U8, F64, I64, )"
      "U64, U32, I16, U16, BOOL, F8_E4M3, F8_E5M2");
  EXPECT_EQ(problem_with(R"({"t":{"dtype":"F32","shape":[1,-2],"data_offsets":[0,8]}})", 8),
            R"(f header: "t"."shape" is -2; expected a whole number from 0 to )"
            "18446744073709551615");
  const std::string syntax = problem_with(R"({"t":{"dtype":x}})", 8);
  EXPECT_TRUE(syntax.starts_with("f header: at byte 15: ")) << syntax;
  EXPECT_TRUE(syntax.ends_with(R"((key "t"))")) << syntax;
}

TEST(Safetensors, RefusesTheSameNameTwice) {
  EXPECT_NE(problem_with(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                         R"("t":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                         2)
                .find("twice"),
            std::string::npos);
}

}  // namespace
}  // namespace spel::engine

#include "proto/fields.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

#include "proto/json_text.h"
#include "tests/proto/refusal.h"

namespace spel::proto {
namespace {

using json = JsonValue;

TEST(Fields, NullAndAbsentAreTheSame) {
  const json object = read_json(R"({"a":null})");
  Fields fields(object);
  EXPECT_EQ(fields.find("a"), nullptr);
  EXPECT_EQ(fields.find("b"), nullptr);
  EXPECT_FALSE(fields.integer("a", 0, 1));
  EXPECT_FALSE(fields.number("a", {.min = 0.0, .max = 1.0}));
  EXPECT_FALSE(fields.boolean("a"));
  EXPECT_FALSE(fields.text("a", 1));
  EXPECT_FALSE(fields.object("a"));
}

TEST(Fields, CountsMembersNobodyAskedFor) {
  const json object = read_json(R"({"a":1,"b":2,"c":null})");
  Fields fields(object);
  EXPECT_EQ(fields.unknown(), 3U);
  static_cast<void>(fields.find("a"));
  static_cast<void>(fields.find("a"));
  static_cast<void>(fields.find("absent"));
  EXPECT_EQ(fields.unknown(), 2U);
}

TEST(Fields, RefusesMembersNobodyAskedForByName) {
  const json object = read_json(R"({"a":1,"b":2,"n":null})");
  Fields fields(object, "o.");
  EXPECT_EQ(refusal_of([&] { fields.refuse_unknown(); }).param, "o.a");
  fields.ignore({"a"});
  EXPECT_EQ(refusal_of([&] { fields.refuse_unknown(); }).param, "o.b");
  static_cast<void>(fields.find("b"));
  EXPECT_NO_THROW(fields.refuse_unknown()) << "null is absent";
}

TEST(Fields, AWholeFloatIsAnIntegerAndNothingElseIs) {
  EXPECT_EQ(require_integer(json(16.0), "x", 0, 100), 16);
  EXPECT_EQ(require_integer(json(-3), "x", -5, 5), -3);
  const json bad[] = {
      json(1.5),      json(true),         json("1"),
      json::array(),  json(1e30),         json(101),
      json(-1),       json(UINT64_MAX),   json(-1e30),
      json::object(), json(std::nan("")), json(std::numeric_limits<double>::infinity())};
  for (const auto& value : bad) {
    const ApiError error =
        refusal_of([&] { static_cast<void>(require_integer(value, "x", 0, 100)); });
    EXPECT_EQ(error.status, 400) << dump_json(value);
    EXPECT_EQ(error.param, "x") << dump_json(value);
  }
}

// raullenchai/Rapid-MLX#740
TEST(Fields, NaNIsInNoRangeAndItsErrorIsFiniteJson) {
  for (const bool open : {false, true}) {
    const NumberRange range = {.min = 0.0, .max = 2.0, .min_open = open};
    for (const double value : {std::nan(""), -std::nan(""), HUGE_VAL, -HUGE_VAL}) {
      const ApiError error =
          refusal_of([&] { static_cast<void>(require_number(json(value), "temperature", range)); });
      EXPECT_EQ(error.status, 400);
      const json body = read_json(error_body(error));
      EXPECT_EQ(body.find("error")->find("param")->text(), "temperature");
    }
  }
}

TEST(Fields, AnOpenRangeLeavesItsMinimumOut) {
  const NumberRange range = {.min = 0.0, .max = 2.0, .min_open = true};
  EXPECT_EQ(require_number(json(2), "p", range), 2.0);
  EXPECT_EQ(require_number(json(1e-300), "p", range), 1e-300);
  EXPECT_EQ(refusal_of([&] { static_cast<void>(require_number(json(0), "p", range)); }).param, "p");
}

TEST(Fields, ABodysUnknownMembersAreCountedAndItsKnownOnesRead) {
  JsonObject object = parse_json_object(R"({"a":1,"x":[[],{"y":{}}],"b":null,"s":"t"})", {});
  Fields fields(object);
  EXPECT_EQ(fields.integer("a", 0, 9), 1);
  EXPECT_EQ(fields.text("s", 9), "t");
  EXPECT_EQ(fields.find("b"), nullptr);
  EXPECT_EQ(fields.find("absent"), nullptr);
  EXPECT_EQ(fields.unknown(), 1U);
}

TEST(Fields, ErrorsNameTheWholePath) {
  const json object = read_json(R"({"speculation":{"k":"four"}})");
  Fields fields(object);
  auto inner = fields.object("speculation");
  ASSERT_TRUE(inner);
  EXPECT_EQ(refusal_of([&] { static_cast<void>(inner->count("k", 0, 16)); }).param,
            "speculation.k");
}

}  // namespace
}  // namespace spel::proto

#include "config/load.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string>
#include <vector>

#include "config/options.h"
#include "tests/config/complaint.h"

namespace spel::config {
namespace {

using Arguments = std::vector<std::string>;

LoadedConfig load(const Arguments& arguments, const Environment& environment = {}) {
  return load_server_config(arguments, environment);
}

std::string complaint(const Arguments& arguments, const Environment& environment = {}) {
  return complaint_of([&] { static_cast<void>(load(arguments, environment)); });
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class ConfigFile : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = ::testing::TempDir() + "spel-" + test->name() + ".json";
  }
  void TearDown() override { std::filesystem::remove(path_); }

  void write(const std::string& text) const { std::ofstream(path_) << text; }

  std::string path_;
};

TEST(Config, TheDefaultsAreTheDocumentedOnes) {
  const ServerConfig config = load({}).config;
  EXPECT_EQ(config.host, "127.0.0.1");
  EXPECT_EQ(config.port, 8080);
  EXPECT_EQ(config.max_seq, 4096U);
  EXPECT_EQ(config.spec_k, 4U);
  EXPECT_EQ(config.draft_threads, 1U);
  EXPECT_EQ(config.sequences, 8U);
  EXPECT_EQ(config.queue, 64U);
  EXPECT_EQ(config.header_bytes, 8192U);
  EXPECT_EQ(config.header_fields, 100U);
  EXPECT_EQ(config.body_bytes, 1048576U);
  EXPECT_EQ(config.json_depth, 32U);
  EXPECT_EQ(config.connections, 1024U);
  EXPECT_EQ(config.header_timeout, std::chrono::seconds(10));
  EXPECT_EQ(config.body_timeout, std::chrono::seconds(30));
  EXPECT_EQ(config.idle_timeout, std::chrono::seconds(60));
  EXPECT_EQ(config.write_timeout, std::chrono::seconds(10));
  EXPECT_EQ(config.drain_timeout, std::chrono::seconds(10));
  EXPECT_EQ(config.numerics, "strict");
  EXPECT_EQ(config.governor, "adaptive");
  EXPECT_TRUE(config.cors_origins.empty());
}

TEST(Config, EveryDefaultIsAllowedAndReadsBackFromItsText) {
  for (const auto& option : option_table()) {
    const std::string text = option_text(ServerConfig(), option);
    ServerConfig config;
    EXPECT_NO_THROW(set_option(config, option, text, "test")) << option.key;
    EXPECT_EQ(option_text(config, option), text);
  }
}

TEST(Config, EveryOptionHasAFlagAndAVariable) {
  for (const auto& option : option_table()) {
    const std::string text = option_text(ServerConfig(), option);
    const auto by_flag = load({option.flag() + "=" + text});
    EXPECT_EQ(by_flag.sources.at(std::string(option.key)), "flag");
    const auto by_variable = load({}, {{option.variable(), text}});
    EXPECT_EQ(by_variable.sources.at(std::string(option.key)), "environment");
    EXPECT_TRUE(by_variable.warnings.empty()) << option.key;
  }
}

TEST_F(ConfigFile, FlagsAreOverEnvironmentOverFileOverDefaults) {
  write(R"({"port": 1, "queue": 1, "spec_k": 1})");
  const auto loaded =
      load({"--config", path_, "--port", "3"}, {{"SPEL_PORT", "2"}, {"SPEL_QUEUE", "2"}});
  EXPECT_EQ(loaded.config.port, 3);
  EXPECT_EQ(loaded.config.queue, 2U);
  EXPECT_EQ(loaded.config.spec_k, 1U);
  EXPECT_EQ(loaded.config.sequences, 8U);
  EXPECT_EQ(loaded.sources.at("port"), "flag");
  EXPECT_EQ(loaded.sources.at("queue"), "environment");
  EXPECT_EQ(loaded.sources.at("spec_k"), "file");
  EXPECT_EQ(loaded.sources.at("sequences"), "default");
}

TEST(Config, ABadValueIsNamedWithItsOriginAndWhatIsAllowed) {
  const std::string message = complaint({}, {{"SPEL_PORT", "99999"}});
  EXPECT_TRUE(contains(message, "port"));
  EXPECT_TRUE(contains(message, "99999"));
  EXPECT_TRUE(contains(message, "SPEL_PORT"));
  EXPECT_TRUE(contains(message, "0 to 65535"));
  EXPECT_TRUE(contains(complaint({"--governor", "fast"}), "adaptive, trip, off"));
}

TEST(Config, WhatKubernetesSetsForAServiceIsNamedWithItsCure) {
  const std::string message = complaint({"--port", "80"}, {{"SPEL_PORT", "tcp://10.96.0.1:8080"}});
  EXPECT_TRUE(contains(message, "Kubernetes"));
  EXPECT_TRUE(contains(message, "enableServiceLinks: false"));
  EXPECT_TRUE(contains(message, "tcp://10.96.0.1:8080"));
}

TEST(Config, OnlyWhatHasNoDeadlineMayBeZero) {
  EXPECT_EQ(load({"--drain-delay", "0"}).config.drain_delay.count(), 0);
  EXPECT_EQ(load({"--stream-heartbeat", "15"}).config.stream_heartbeat, std::chrono::seconds(15));
  EXPECT_TRUE(contains(complaint({"--drain-timeout", "0"}), "0.001"));
}

TEST(Config, ABadValueIsRefusedEvenWhereAStrongerOneIsGood) {
  EXPECT_TRUE(contains(complaint({"--queue", "5"}, {{"SPEL_QUEUE", "many"}}), "SPEL_QUEUE"));
}

// An invalid limit must never come to mean no limit.
TEST(Config, EveryNumberRefusesWhatIsNotInItsRange) {
  for (const auto& option : option_table()) {
    if (!option.is_bare()) {
      continue;
    }
    for (const char* value : {"", " ", "-1", "+8", "8k", "0x10", "1e999", "nan", "NaN", "inf",
                              "-inf", "18446744073709551616", "99999999999999999999", "8 ", " 8",
                              "1,5", "none", "unlimited", "null"}) {
      ServerConfig config;
      const std::string message = complaint_of([&] { set_option(config, option, value, "test"); });
      EXPECT_TRUE(contains(message, std::string(option.key))) << value;
      EXPECT_EQ(option_text(config, option), option_text(ServerConfig(), option));
    }
  }
  for (const char* flag :
       {"--queue", "--sequences", "--connections", "--body-bytes", "--header-bytes",
        "--header-fields", "--json-depth", "--header-timeout", "--body-timeout", "--idle-timeout",
        "--write-timeout", "--request-timeout", "--drain-timeout"}) {
    complaint({std::string(flag) + "=0"});
  }
}

TEST(Config, CountsTakeNoFractionsAndSecondsDo) {
  complaint({"--queue", "1.5"});
  EXPECT_EQ(load({"--header-timeout", "0.25"}).config.header_timeout,
            std::chrono::milliseconds(250));
}

TEST(Config, FlagsThatAreUnknownRepeatedOrWithoutValueAreRefused) {
  EXPECT_TRUE(contains(complaint({"--prot", "1"}), "--prot"));
  complaint({"--port", "1", "--port", "2"});
  complaint({"--port"});
  complaint({"extra"});
}

TEST(Config, ASwitchMayStandAlone) {
  EXPECT_TRUE(load({"--log-json"}).config.log_json);
  EXPECT_FALSE(load({"--log-json=false"}, {{"SPEL_LOG_JSON", "1"}}).config.log_json);
  complaint({"--log-json=maybe"});
}

TEST(Config, ListsAreSeparatedByCommas) {
  const auto config = load({"--cors-origins", "http://a, http://b"}).config;
  EXPECT_EQ(config.cors_origins, (std::vector<std::string>{"http://a", "http://b"}));
  EXPECT_TRUE(load({"--cors-origins="}).config.cors_origins.empty());
  complaint({"--cors-origins", "http://a,,http://b"});
  complaint({"--allowed-hosts", std::string("a\nb")});
}

TEST(Config, TheModelMayBeNamedByTheDocumentsVariable) {
  EXPECT_EQ(load({}, {{"SPEL_WEIGHTS", "w.bin"}}).config.model, "w.bin");
  EXPECT_EQ(load({}, {{"SPEL_WEIGHTS", "w"}, {"SPEL_MODEL", "w"}}).config.model, "w");
  EXPECT_TRUE(contains(complaint({}, {{"SPEL_WEIGHTS", "a"}, {"SPEL_MODEL", "b"}}), "contradict"));
  EXPECT_EQ(load({"--model", "/tmp/Zelda-Ž帳/"}).config.model, "/tmp/Zelda-Ž帳/");
  complaint({"--model="});
}

TEST(Config, SettingsThatBelongTogetherAreChecked) {
  complaint({"--tls-cert", "c.pem"});
  complaint({"--tls-key", "k.pem"});
  EXPECT_NO_THROW(static_cast<void>(load({"--tls-cert", "c.pem", "--tls-key", "k.pem"})));
  EXPECT_TRUE(contains(complaint({"--wire-bytes", "4096"}), "body_bytes"));
  complaint({"--unix-socket", std::string(108, 'x')});
}

TEST(Config, WarnsOfVariablesThatMeanNothingAndOfOpenPorts) {
  EXPECT_TRUE(load({}).warnings.empty());
  const auto typo = load({}, {{"SPEL_PROT", "1"}, {"SPEL_D_MODEL", "64"}});
  ASSERT_EQ(typo.warnings.size(), 1U);
  EXPECT_TRUE(contains(typo.warnings[0], "SPEL_PROT"));
  EXPECT_EQ(load({}, {{"SPEL_CONFIG", "spel.json"}}).warnings.size(), 1U);
  EXPECT_TRUE(load({}, {{"SPEL_CONFIG", "d_model=64"}}).warnings.empty());
  EXPECT_EQ(load({"--host", "0.0.0.0"}).warnings.size(), 1U);
  EXPECT_TRUE(load({"--host", "0.0.0.0", "--api-keys-file", "k"}).warnings.empty());
  EXPECT_TRUE(load({"--host", "0.0.0.0", "--unix-socket", "/tmp/s"}).warnings.empty());
}

TEST_F(ConfigFile, MayHaveCommentsAndBeNamedByAVariable) {
  write(
      "{\n  // where\n  \"port\": 9, /* and */ \"log_json\": true,\n"
      "  \"allowed_hosts\": [\"a\", \"b\"], \"drain_timeout\": 2.5\n}");
  const auto config = load({}, {{"SPEL_CONFIG_FILE", path_}}).config;
  EXPECT_EQ(config.port, 9);
  EXPECT_TRUE(config.log_json);
  EXPECT_EQ(config.allowed_hosts, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(config.drain_timeout, std::chrono::milliseconds(2500));
}

TEST_F(ConfigFile, RefusesWhatItCannotMeanNamingFileAndKey) {
  for (const auto& [text, part] : std::vector<std::pair<std::string, std::string>>{
           {R"({"prot": 1})", "prot"},
           {R"({"port": "80"})", "port"},
           {R"({"port": 80.5})", "port"},
           {R"({"port": -1})", "port"},
           {R"({"port": null})", "port"},
           {R"({"port": true})", "port"},
           {R"({"port": 1e3})", "port"},
           {R"({"log_json": 1})", "log_json"},
           {R"({"host": 1})", "host"},
           {R"({"host": ["a"]})", "host"},
           {R"({"allowed_hosts": [1]})", "allowed_hosts"},
           {R"({"allowed_hosts": ["a,b"]})", "allowed_hosts"},
           {R"({"queue": 1, "queue": 2})", "queue"},
           {"{", path_},
           {"", path_},
           {"[]", path_},
           {"{} {}", path_}}) {
    write(text);
    const std::string message = complaint({"--config", path_});
    EXPECT_TRUE(contains(message, part)) << text << message;
    EXPECT_TRUE(contains(message, path_)) << text << message;
  }
}

TEST(Config, AFileThatCannotBeReadIsAnError) {
  for (const std::string path : {"/nonexistent/spel.json", "/"}) {
    const std::string message =
        complaint_of([&] { static_cast<void>(load({"--config", path})); }, ErrorCode::kIo);
    EXPECT_TRUE(contains(message, path));
  }
}

TEST_F(ConfigFile, PrintedSettingsReadBackToTheSame) {
  const Arguments arguments = {"--port", "1234",        "--cors-origins",   "http://a,http://b",
                               "--name", "a \"b\" \\c", "--header-timeout", "0.5"};
  Arguments printing = arguments;
  printing.emplace_back("--print-config");
  const auto printed = load(printing, {{"SPEL_QUEUE", "7"}});
  EXPECT_EQ(printed.action, Action::kPrint);
  EXPECT_TRUE(contains(printed.text, "// flag"));
  EXPECT_TRUE(contains(printed.text, "// environment"));
  write(printed.text);
  const ServerConfig again = load({"--config", path_}).config;
  for (const auto& option : option_table()) {
    EXPECT_EQ(option_text(again, option), option_text(printed.config, option)) << option.key;
  }
}

TEST(Config, HelpAndTableNameEveryOption) {
  const auto help = load({"--help"});
  EXPECT_EQ(help.action, Action::kPrint);
  const auto table = load({"--config-table"});
  EXPECT_EQ(table.action, Action::kPrint);
  EXPECT_EQ(table.text, config_table());
  for (const auto& option : option_table()) {
    EXPECT_TRUE(contains(help.text, option.flag() + "\n")) << option.key;
    EXPECT_TRUE(contains(table.text, "`" + option.flag() + "`")) << option.key;
    EXPECT_TRUE(contains(table.text, "`" + option.variable() + "`")) << option.key;
  }
}

TEST(Config, HelpBeginsWithTheUsualOptions) {
  const std::string help = load({"--help"}).text;
  const std::size_t others = help.find("\nAll others:\n");
  ASSERT_NE(others, std::string::npos);
  for (const char* flag : {"--model", "--host", "--port", "--sequences", "--max-seq", "--data-dir",
                           "--log-level", "--api-keys-file"}) {
    EXPECT_LT(help.find("\n  " + std::string(flag) + "\n"), others) << flag;
  }
  EXPECT_LT(others, help.find("\n  --json-depth\n"));
}

TEST(Config, TheVariableOfTheScriptIsNotCalledUnknown) {
  EXPECT_TRUE(load({}, {{"SPEL_NO_INSTALL", "1"}}).warnings.empty());
}

TEST(Config, TheEnvironmentOfTheProcessIsReadByPrefix) {
  ASSERT_EQ(::setenv("SPEL_TEST_ONLY", "a=b", 1), 0);
  const Environment environment = process_environment();
  EXPECT_EQ(environment.at("SPEL_TEST_ONLY"), "a=b");
  EXPECT_EQ(environment.count("PATH"), 0U);
  ASSERT_EQ(::unsetenv("SPEL_TEST_ONLY"), 0);
}

TEST(Config, OriginsThatNoBrowserSendsAreRefusedWithWhatToWrite) {
  const std::pair<std::string, std::string> cases[] = {
      {"http://localhost:3000/", "write http://localhost:3000"},
      {"localhost:3000", "write http://localhost:3000 or https://localhost:3000"},
      {"http://localhost:3000/app?x#y", "write http://localhost:3000"},
      {"https://App.Example", "write https://app.example"},
      {"HTTP://app.example", "write http://app.example"},
      {"https://app.example:443", "write https://app.example"},
      {"http://app.example:80", "write http://app.example"},
      {"http://user@app.example", "write http://app.example"},
      {"http://", "write scheme://host"},
      {"https://*.example.com", "patterns are not understood"},
      {"null", "write * if all pages are meant"},
      {"https://b\xC3\xBC"
       "cher.example",
       "xn--"}};
  for (const auto& [origin, advice] : cases) {
    const std::string text = complaint({"--cors-origins", origin});
    EXPECT_TRUE(contains(text, "cors_origins")) << origin << ": " << text;
    EXPECT_TRUE(contains(text, advice)) << origin << ": " << text;
    EXPECT_TRUE(contains(complaint({"--cors-origins", "http://a," + origin}), advice)) << origin;
  }
  for (const char* origin :
       {"*", "http://localhost:3000", "https://app.example", "http://[::1]:8080",
        "chrome-extension://abcdef", "app://obsidian.md", "https://app.example:80"}) {
    EXPECT_EQ(load({"--cors-origins", origin}).config.cors_origins,
              std::vector<std::string>{origin});
  }
}

TEST(Config, HostsThatNoRequestNamesAreRefusedWithWhatToWrite) {
  const std::pair<std::string, std::string> cases[] = {
      {"http://spel:8080", "write spel:8080"},
      {"spel/", "write spel"},
      {"https://user@spel/x", "write spel"},
      {"*.example.com", "patterns are not understood"},
      {"http://", "write a host name"}};
  for (const auto& [host, advice] : cases) {
    const std::string text = complaint({"--allowed-hosts", host});
    EXPECT_TRUE(contains(text, "allowed_hosts")) << host << ": " << text;
    EXPECT_TRUE(contains(text, advice)) << host << ": " << text;
  }
  for (const char* host : {"*", "spel", "spel:8080", "Spel.Internal", "10.0.0.1", "[::2]"}) {
    EXPECT_EQ(load({"--allowed-hosts", host}).config.allowed_hosts, std::vector<std::string>{host});
  }
}

TEST(Config, AStarWithoutKeysIsWarnedAbout) {
  const auto warned = [](const Arguments& arguments) {
    const auto warnings = load(arguments).warnings;
    return std::any_of(warnings.begin(), warnings.end(), [](const std::string& warning) {
      return contains(warning, "every web page");
    });
  };
  EXPECT_TRUE(warned({"--cors-origins", "*"}));
  EXPECT_TRUE(warned({"--allowed-hosts", "a,*"}));
  EXPECT_FALSE(warned({"--cors-origins", "*", "--api-keys-file", "keys"}));
  EXPECT_FALSE(warned({"--cors-origins", "http://a"}));
}

TEST(Config, ANameThatIsNotUtf8IsRefused) {
  const std::string text = complaint({"--name", "caf\xE9"});
  EXPECT_TRUE(contains(text, "name") && contains(text, "UTF-8")) << text;
  EXPECT_EQ(load({"--name", "caf\xC3\xA9"}).config.name, "caf\xC3\xA9");
}

}  // namespace
}  // namespace spel::config

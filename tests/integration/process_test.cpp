// `spel serve` as a process: how it starts, answers signals and ends. Names in brackets are the
// public reports whose fault must not come back.
#include <algorithm>
#include <arpa/inet.h>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <set>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "support.h"

namespace spel::server::testing {
namespace {

using std::chrono::seconds;

constexpr const char* kModel = SPEL_SOURCE_DIR "/engine/models/spel-21m";

class Process {
 public:
  /// `prepare` is called in the new process, before it becomes the program.
  explicit Process(std::vector<std::string> arguments, const std::function<void()>& prepare = {}) {
    int log[2];
    EXPECT_EQ(::pipe2(log, O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(log[1], STDERR_FILENO);
      ::dup2(log[1], STDOUT_FILENO);
      if (prepare) {
        prepare();
      }
      std::vector<char*> argv;
      std::string program = SPEL_BINARY;
      argv.push_back(program.data());
      for (std::string& argument : arguments) {
        argv.push_back(argument.data());
      }
      argv.push_back(nullptr);
      ::execv(SPEL_BINARY, argv.data());
      ::_exit(127);
    }
    ::close(log[1]);
    log_ = log[0];
  }
  ~Process() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(log_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Reads the log until `text` has come.
  [[nodiscard]] bool says(const std::string& text, seconds patience = seconds(60)) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (output_.find(text) == std::string::npos) {
      pollfd poll{.fd = log_, .events = POLLIN, .revents = 0};
      if (::poll(&poll, 1, 50) > 0) {
        char bytes[4096];
        const ssize_t got = ::read(log_, bytes, sizeof(bytes));
        if (got <= 0) {
          break;
        }
        output_.append(bytes, static_cast<std::size_t>(got));
      } else if (std::chrono::steady_clock::now() >= deadline) {
        break;
      }
    }
    return output_.find(text) != std::string::npos;
  }
  [[nodiscard]] const std::string& output() const { return output_; }

  [[nodiscard]] std::uint16_t port() {
    EXPECT_TRUE(says("url=http://127.0.0.1:")) << output_;
    const std::size_t at = output_.find("url=http://127.0.0.1:") + 21;
    return static_cast<std::uint16_t>(std::stoi(output_.substr(at)));
  }

  void signal(int number) const { ::kill(pid_, number); }

  /// The exit status, or -1 after `patience` or for a death by signal.
  [[nodiscard]] int wait(seconds patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (std::chrono::steady_clock::now() < deadline) {
      int status = 0;
      if (::waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
      }
      std::this_thread::sleep_for(milliseconds(5));
    }
    return -1;
  }

 private:
  pid_t pid_ = -1;
  int log_ = -1;
  std::string output_;
};

std::vector<std::string> serve(std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"serve", "--model", kModel};
  if (std::find(more.begin(), more.end(), "--port") == more.end()) {
    arguments.insert(arguments.end(), {"--port", "0"});
  }
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::function<void()> limit_to(__rlimit_resource resource, rlim_t most) {
  return [resource, most] {
    const rlimit limit{.rlim_cur = most, .rlim_max = most};
    ::setrlimit(resource, &limit);
  };
}

/// A port that was free a moment ago.
std::uint16_t free_port() {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ::close(listener);
  return ntohs(address.sin_port);
}

int health_status(std::uint16_t port) {
  try {
    Client client(port);
    client.send(get("/health", "Connection: close\r\n"));
    return client.read_reply().status;
  } catch (const std::runtime_error&) {
    return 0;
  }
}

std::string long_stream() {
  return post("/v1/completions",
              R"({"prompt":"Once upon a time","max_tokens":4000,"stream":true,"temperature":0})");
}

// [ggml-org/llama.cpp#6348]
TEST(Process, IdleItEndsWithStatusZeroOnEverySignal) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    Process process(serve());
    ASSERT_TRUE(process.says(" ready ")) << process.output();
    EXPECT_TRUE(process.says("curl -N http://127.0.0.1:")) << process.output();
    Client client(process.port());
    client.send(get("/health"));
    EXPECT_EQ(client.read_reply().status, 200);
    process.signal(number);
    EXPECT_EQ(process.wait(seconds(5)), 0) << process.output();
  }
}

TEST(Process, BusyItFinishesTheStreamThenEnds) {
  Process process(serve());
  ASSERT_TRUE(process.says(" ready ")) << process.output();
  Client client(process.port(), milliseconds(30'000));
  client.send(
      post("/v1/completions", R"({"prompt":"Once upon a time","max_tokens":100,"stream":true})"));
  EXPECT_EQ(client.read_head().status, 200);
  process.signal(SIGTERM);
  std::string text;
  for (std::string frame; !(frame = client.read_frame()).empty();) {
    text += frame;
  }
  EXPECT_TRUE(parse_stream(text).done) << text;
  EXPECT_EQ(process.wait(seconds(15)), 0) << process.output();
}

// [containers/ramalama#753]
TEST(Process, ASecondSignalEndsItWithinASecond) {
  Process process(serve({"--drain-timeout", "60"}));
  ASSERT_TRUE(process.says(" ready ")) << process.output();
  Client client(process.port(), milliseconds(30'000));
  client.send(long_stream());
  EXPECT_EQ(client.read_head().status, 200);
  process.signal(SIGINT);
  ASSERT_TRUE(process.says("draining"));
  std::this_thread::sleep_for(milliseconds(100));
  process.signal(SIGINT);
  const auto start = std::chrono::steady_clock::now();
  const int status = process.wait(seconds(5));
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(1));
  // The latter on a machine too busy to finish the pass in progress.
  EXPECT_TRUE(status == 0 || status == 128 + SIGINT) << status << "\n" << process.output();
  EXPECT_NE(client.read_all().find("\"error\""), std::string::npos);
}

// [ggml-org/llama.cpp#18292]
TEST(Process, NobodyWhoReadsItsLogKeepsItFromEnding) {
  for (const int signals : {1, 2}) {
    const std::uint16_t port = free_port();
    Process process(serve({"--port", std::to_string(port), "--log-level", "debug"}),
                    [] { ::fcntl(STDERR_FILENO, F_SETPIPE_SZ, 4096); });
    ASSERT_TRUE(eventually([&] { return health_status(port) == 200; }, milliseconds(60'000)));
    for (int i = 0; i < 100; ++i) {  // 10 KB and more of lines.
      EXPECT_EQ(health_status(port), 200);
    }
    process.signal(SIGTERM);
    if (signals == 2) {
      process.signal(SIGINT);
    }
    const int status = process.wait(seconds(10));
    EXPECT_TRUE(status == 0 || (signals == 2 && status == 128 + SIGINT)) << status;
  }
}

TEST(Process, AReaderThatComesBackIsToldWhatItMissed) {
  const std::uint16_t port = free_port();
  Process process(serve({"--port", std::to_string(port), "--log-level", "debug"}));
  ASSERT_TRUE(eventually([&] { return health_status(port) == 200; }, milliseconds(60'000)));
  {
    Client client(port, milliseconds(60'000));
    for (int i = 0; i < 12'000; ++i) {  // More than the queue and the pipe hold.
      client.send(get("/health"));
      ASSERT_EQ(client.read_reply().status, 200);
    }
  }
  EXPECT_TRUE(process.says("log lines were dropped: nobody read standard error lines="));
  process.signal(SIGTERM);
  EXPECT_TRUE(process.says("stopped"));
  EXPECT_EQ(process.wait(seconds(10)), 0);
}

TEST(Process, UnderNohupAClosedTerminalIsNoReasonToEnd) {
  Process process(serve(), [] { ::signal(SIGHUP, SIG_IGN); });
  ASSERT_TRUE(process.says(" ready ")) << process.output();
  process.signal(SIGHUP);
  EXPECT_EQ(health_status(process.port()), 200);
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait(seconds(5)), 0);
  EXPECT_NE(process.output().find("url="), std::string::npos);
}

TEST(Process, StoppedWhileLoadingItLeavesNothingBehind) {
  const std::string path = ::testing::TempDir() + "spel-loading-" + std::to_string(::getpid());
  for (const int number : {SIGTERM, SIGHUP}) {
    Process process(serve({"--unix-socket", path}));
    ASSERT_TRUE(process.says("listening")) << process.output();
    process.signal(number);
    EXPECT_EQ(process.wait(seconds(5)), 0) << process.output();
    EXPECT_NE(::access(path.c_str(), F_OK), 0);
    EXPECT_TRUE(process.says("stopped"));
  }
}

TEST(Process, AFileSizeLimitIsAFailedWriteAndNotTheEnd) {
  const std::string folder = ::testing::TempDir() + "spel-xfsz-" + std::to_string(::getpid());
  std::filesystem::create_directory(folder);
  Process process(serve({"--data-dir", folder}), limit_to(RLIMIT_FSIZE, 256 * 1024));
  ASSERT_TRUE(process.says(" ready ")) << process.output();
  Client client(process.port(), milliseconds(60'000));
  std::string text;
  for (int i = 0; i < 1'000; ++i) {
    text += "KEY_" + std::to_string(i) + "=" + std::to_string(i * 7) + "; ";
  }
  int status = 201;
  for (int i = 0; i < 50 && status == 201; ++i) {
    client.send(post("/v1/notebanks/b/write", json{{"text", text}}.dump()));
    status = client.read_reply().status;
  }
  EXPECT_EQ(status, 507);
  EXPECT_EQ(health_status(process.port()), 200);
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait(seconds(10)), 0) << process.output();
  std::filesystem::remove_all(folder);
}

// Whichever thread it is that cannot be started: a message and the end, never a hang.
TEST(Process, AThreadThatCannotBeStartedIsNamedWithTheLimits) {
  if (::getuid() != 0) {
    GTEST_SKIP() << "only root can become a user who has no other processes";
  }
  constexpr uid_t kNobodyElse = 61'741;
  constexpr int kMost = 40;
  bool ready = false;
  for (int most = 1; most <= kMost && !ready; ++most) {
    Process process(serve({"--target-threads", "3", "--draft-threads", "2"}), [most] {
      if (::setgid(kNobodyElse) != 0 || ::setuid(kNobodyElse) != 0) {
        ::_exit(127);
      }
      limit_to(RLIMIT_NPROC, static_cast<rlim_t>(most))();
    });
    ready = process.says(" ready ");
    if (ready) {
      EXPECT_GT(most, 3);
      process.signal(SIGTERM);
      EXPECT_EQ(process.wait(seconds(10)), 0) << process.output();
      break;
    }
    const int status = process.wait(seconds(20));
    if (status == 127) {
      GTEST_SKIP() << "another user may not run " << SPEL_BINARY;
    }
    EXPECT_EQ(status, 1) << most << ": " << process.output();
    EXPECT_NE(process.output().find("cannot start "), std::string::npos) << process.output();
    EXPECT_NE(process.output().find("threads in total = 13"), std::string::npos)
        << process.output();
    EXPECT_NE(process.output().find("(ulimit -u) " + std::to_string(most)), std::string::npos)
        << process.output();
  }
  EXPECT_TRUE(ready);
}

TEST(Process, TooLittleAddressSpaceIsSaidAndNeverAHang) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs an address space without limits";
#endif
  bool ready = false;
  for (rlim_t mebibytes = 64; mebibytes <= 4096 && !ready; mebibytes += mebibytes / 4) {
    Process process(serve({"--target-threads", "2"}), limit_to(RLIMIT_AS, mebibytes * 1024 * 1024));
    ready = process.says(" ready ");
    if (ready) {
      process.signal(SIGTERM);
    }
    const int status = process.wait(seconds(20));
    EXPECT_EQ(status, ready ? 0 : 1) << mebibytes << ": " << process.output();
    EXPECT_FALSE(process.output().empty()) << mebibytes;
  }
  EXPECT_TRUE(ready);
}

TEST(Process, WhatIsLongerThanTheGraceIsCancelled) {
  Process process(serve({"--drain-timeout", "0.3"}));
  ASSERT_TRUE(process.says(" ready ")) << process.output();
  Client client(process.port(), milliseconds(30'000));
  client.send(long_stream());
  EXPECT_EQ(client.read_head().status, 200);
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait(seconds(8)), 0) << process.output();
  EXPECT_NE(client.read_all().find("\"error\""), std::string::npos);
}

TEST(Process, SpeculationDoesNotChangeTheText) {
  Process process(serve());
  ASSERT_TRUE(process.says(" ready ")) << process.output();
  const std::uint16_t port = process.port();
  const auto ask = [&](const char* mode, double temperature) {
    Client client(port, milliseconds(60'000));
    client.send(post("/v1/completions", json{{"prompt", "KEY_15=1907; ?KEY_15="},
                                             {"max_tokens", 48},
                                             {"temperature", temperature},
                                             {"seed", 11},
                                             {"speculation", {{"mode", mode}}}}
                                            .dump()));
    return client.read_reply().parsed();
  };
  for (const double temperature : {0.0, 0.8}) {
    const json on = ask("on", temperature);
    const json off = ask("off", temperature);
    EXPECT_EQ(on.at("choices").at(0).at("text"), off.at("choices").at(0).at("text"));
    EXPECT_EQ(off.at("speculation").at("draft_enabled"), false);
  }
}

/// CPU seconds a process has used, from its own metrics.
double cpu_seconds(const std::string& page) {
  const std::string name = "\nprocess_cpu_seconds_total ";
  return std::stod(page.substr(page.find(name) + name.size()));
}

// The seed depends on the place of a choice in its request; the first keeps what it gives alone, to
// the token, from one version to the next.
TEST(Process, EqualPromptsGetTextsOfTheirOwnAndTheFirstItsUsualTokens) {
  Process process(serve());
  ASSERT_TRUE(process.says(" ready ")) << process.output();
  Client client(process.port(), milliseconds(30'000));
  const auto ask = [&](const json& prompt, int n) {
    client.send(post("/v1/completions", json{{"prompt", prompt},
                                             {"n", n},
                                             {"temperature", 1},
                                             {"seed", 7},
                                             {"max_tokens", 24},
                                             {"return_token_ids", true}}
                                            .dump()));
    return client.read_reply().parsed().at("choices");
  };
  const std::string prompt = "The old man said ";
  const std::string first = "of his neighbour, \"Son o";
  const std::string second = "that the hand of the kin";
  const auto ids_of = [](const std::string& text) {
    return json(std::vector<int>(text.begin(), text.end()));
  };
  const json alone = ask(prompt, 2);
  EXPECT_EQ(alone.at(0).at("token_ids"), ids_of(first));
  EXPECT_EQ(alone.at(1).at("token_ids"), ids_of(second));
  const json many = ask(json(8, prompt), 2);
  ASSERT_EQ(many.size(), 16U);
  EXPECT_EQ(many.at(0).at("token_ids"), ids_of(first));
  EXPECT_EQ(many.at(1).at("token_ids"), ids_of(second));
  std::set<std::string> texts;
  for (const json& choice : many) {
    texts.insert(choice.at("text"));
  }
  EXPECT_EQ(texts.size(), 16U);
}

TEST(Process, WithoutDescriptorsLeftItCanStillBeWatched) {
  Process process(serve(), limit_to(RLIMIT_NOFILE, 64));
  ASSERT_TRUE(process.says(" ready ")) << process.output();
  const std::uint16_t port = process.port();
  const auto scrape = [&] {
    Client client(port, milliseconds(2'000));
    client.send(get("/metrics", "Connection: close\r\n"));
    const Reply reply = client.read_reply();
    return reply.status == 200 ? reply.body : std::string();
  };
  std::vector<std::unique_ptr<Client>> crowd;
  for (int i = 0; i < 200; ++i) {
    crowd.push_back(std::make_unique<Client>(port));
  }
  std::string before;
  EXPECT_TRUE(eventually([&] { return !(before = scrape()).empty(); }, milliseconds(10'000)));
  std::this_thread::sleep_for(milliseconds(1'500));
  std::string after;
  EXPECT_TRUE(eventually([&] { return !(after = scrape()).empty(); }, milliseconds(10'000)));
  // It does not spin on accept: a spinning loop would use all of that time.
  EXPECT_LT(cpu_seconds(after) - cpu_seconds(before), 0.5);
  crowd.clear();
  EXPECT_TRUE(eventually(
      [&] {
        Client client(port);
        client.send(get("/v1/models", "Connection: close\r\n"));
        return client.read_reply().status == 200;
      },
      milliseconds(3'000)));
}

TEST(Process, BadSettingsRefuseToStart) {
  Process process({"serve", "--port", "99999"});
  EXPECT_EQ(process.wait(seconds(20)), 2);
  EXPECT_TRUE(process.says("port")) << process.output();
  Process unknown({"fly"});
  EXPECT_EQ(unknown.wait(seconds(20)), 2);
}

TEST(Process, AModelThatIsNotThereEndsIt) {
  Process process({"serve", "--port", "0", "--model", "/nonexistent-model"});
  EXPECT_EQ(process.wait(seconds(20)), 1);
  EXPECT_TRUE(process.says("cannot load the model: /nonexistent-model")) << process.output();
  EXPECT_EQ(process.output().find("listening"), std::string::npos) << process.output();
  EXPECT_EQ(process.output().find("signal"), std::string::npos) << process.output();
}

}  // namespace
}  // namespace spel::server::testing

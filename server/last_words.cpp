#include "server/last_words.h"

#include <cstdlib>
#include <exception>
#include <new>
#include <poll.h>
#include <unistd.h>

namespace spel::server {
namespace {

[[noreturn]] void terminate() {
  say_last("spel: ending: ");
  if (const std::exception_ptr error = std::current_exception()) {
    try {
      std::rethrow_exception(error);
    } catch (const std::bad_alloc&) {
      say_last("out of memory");
    } catch (const std::exception& problem) {
      say_last(problem.what());
    } catch (...) {
      say_last("an exception of an unknown kind");
    }
    say_last(" where it could not be handled\n");
  } else {
    say_last("std::terminate was called\n");
  }
  std::abort();
}

}  // namespace

void say_last(std::string_view text) noexcept {
  pollfd error_output{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&error_output, 1, 0) == 1) {
    (void)!::write(STDERR_FILENO, text.data(), text.size());
  }
}

void install_last_words() { std::set_terminate(&terminate); }

}  // namespace spel::server

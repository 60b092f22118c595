// What holds for every input; a fuzzer stops where it does not.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace spel::fuzz {

inline void require(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "does not hold: %s\n", what);
    std::abort();
  }
}

}  // namespace spel::fuzz

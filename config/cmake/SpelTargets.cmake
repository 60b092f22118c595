# Build rules every module shares: language level, warnings, numerics, sanitizers.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(SPEL_CCACHE ccache)
if(SPEL_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${SPEL_CCACHE}")
endif()

find_package(Threads REQUIRED)

add_library(spel_options INTERFACE)
target_compile_options(spel_options INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow
  # The strict path promises the same bits everywhere: no contraction, no reassociation.
  -ffp-contract=off -fno-fast-math
  # GCC 12 sees overlap in "literal" + std::string where there is none (GCC bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
if(SPEL_WERROR)
  target_compile_options(spel_options INTERFACE -Werror)
endif()
if(SPEL_SANITIZE)
  target_compile_options(spel_options INTERFACE
    -fsanitize=${SPEL_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
    # Instrumented, GCC loses track of the standard library's regex and of Asio's coroutine frames:
    # warnings that stop the plain build stay warnings here.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-error=maybe-uninitialized>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-error=mismatched-new-delete>)
  target_link_options(spel_options INTERFACE -fsanitize=${SPEL_SANITIZE})
endif()
target_link_libraries(spel_options INTERFACE Threads::Threads)

# spel_module(NAME SOURCES ... [PUBLIC libs...] [PRIVATE libs...])
# One static library per folder; headers are included from the repository root.
function(spel_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  add_library(spel::${name} ALIAS ${name})
  target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PUBLIC ${ARG_PUBLIC} PRIVATE spel_options ${ARG_PRIVATE})
  target_link_libraries(${name} PUBLIC Threads::Threads)
endfunction()

# spel_test(NAME SOURCES ... LIBS ...): a GoogleTest program whose cases ctest runs one by one.
function(spel_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LIBS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE spel_options ${ARG_LIBS} GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE SPEL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT ${ARG_TIMEOUT})
endfunction()

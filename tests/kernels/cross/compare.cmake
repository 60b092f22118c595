# Cross-builds the self-check for AArch64, runs it under qemu, and compares what it prints with what
# the native build prints; then holds the golden models to their hashes there.
#
#   cmake -DSOURCE=.../cross -DBUILD=dir -DNATIVE=self_check -DDUMP=golden_dump -P compare.cmake
find_program(CROSS_CXX aarch64-linux-gnu-g++)
find_program(QEMU NAMES qemu-aarch64 qemu-aarch64-static)
if(NOT CROSS_CXX OR NOT QEMU)
  message(STATUS "SKIPPED: needs aarch64-linux-gnu-g++ and qemu-aarch64 "
                 "(Debian: g++-aarch64-linux-gnu, qemu-user)")
  return()
endif()
# -O1: the test is about bits, and a fresh checkout pays for this build.
execute_process(COMMAND "${CMAKE_COMMAND}" -S "${SOURCE}" -B "${BUILD}" -G Ninja
                        "-DCMAKE_TOOLCHAIN_FILE=${SOURCE}/aarch64.cmake"
                        -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${BUILD}" --target self_check golden_check
                OUTPUT_VARIABLE log ERROR_VARIABLE log RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "the cross-build failed:\n${log}")
endif()
execute_process(COMMAND "${NATIVE}" OUTPUT_VARIABLE native ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${QEMU}" -cpu max -L /usr/aarch64-linux-gnu "${BUILD}/self_check"
                OUTPUT_VARIABLE cross ERROR_VARIABLE sets RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "the AArch64 sets disagree:\n${cross}${sets}")
endif()
if(NOT sets MATCHES "checked neon")
  message(FATAL_ERROR "the NEON set did not run:\n${sets}")
endif()
if(NOT native STREQUAL cross)
  message(FATAL_ERROR "AArch64 gives other bits than this machine\nhere:\n${native}there:\n${cross}")
endif()
get_filename_component(root "${SOURCE}/../../.." ABSOLUTE)
execute_process(COMMAND "${DUMP}" "${root}" "${BUILD}/golden.dump" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${QEMU}" -cpu max -L /usr/aarch64-linux-gnu "${BUILD}/golden_check"
                        "${BUILD}/golden.dump"
                OUTPUT_VARIABLE golden ERROR_VARIABLE golden RESULT_VARIABLE failed)
file(REMOVE "${BUILD}/golden.dump")
if(failed)
  message(FATAL_ERROR "the models give other bits on AArch64:\n${golden}")
endif()
message(STATUS "the same bits on AArch64:\n${native}")

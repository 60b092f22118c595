# Fails if an instruction-set object offers or asks for code that the linker may share: a weak or
# unique symbol there could become, program-wide, a function that only some processors can run.
#
#   cmake -DNM=nm "-DOBJECTS=a.o,b.o" -P no_shared_code.cmake
string(REPLACE "," ";" objects "${OBJECTS}")
if(NOT objects)
  message(FATAL_ERROR "no objects to inspect")
endif()
foreach(object IN LISTS objects)
  execute_process(COMMAND "${NM}" "${object}" OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]* [uvVwW] [^\n]*" shared "${symbols}")
  # The sanitizers' own markers are data of the same name on every instruction set; so is the pointer
  # to the runtime's exception handler, which they ask for.
  list(FILTER shared EXCLUDE REGEX "__odr_asan|__asan_|__tsan_|__ubsan_|V DW\\.ref\\.__gxx_personality_v0")
  if(shared)
    message(FATAL_ERROR "${object} has weak symbols:\n${shared}")
  endif()
  string(REGEX MATCHALL "[^\n]* T [^\n]*" exported "${symbols}")
  if(exported)
    message(FATAL_ERROR "${object} exports functions; it may export its table alone:\n${exported}")
  endif()
endforeach()

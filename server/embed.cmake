# cmake -DOUTPUT=x.cpp -DFUNCTION=name -DINPUT=file -P embed.cmake
# Writes a function of spel::server::embedded that returns the file's bytes. A line "@insert NAME@"
# stands for the file NAME beside it.
get_filename_component(folder "${INPUT}" DIRECTORY)
get_filename_component(name "${INPUT}" NAME)
file(READ "${INPUT}" text)
while(text MATCHES "@insert ([a-z.]+)@\n")
  set(line "${CMAKE_MATCH_0}")
  file(READ "${folder}/${CMAKE_MATCH_1}" part)
  string(REPLACE "${line}" "${part}" text "${text}")
endwhile()
string(HEX "${text}" hex)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
file(WRITE "${OUTPUT}" "// Generated from ${name}.
#include \"server/embedded.h\"

namespace spel::server::embedded {
namespace {

constexpr char kBytes[] = {
${bytes}
};

}  // namespace

std::string_view ${FUNCTION}() { return {kBytes, sizeof(kBytes)}; }

}  // namespace spel::server::embedded
")

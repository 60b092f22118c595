# cmake -DOUTPUT=x.cpp -DFUNCTION=name -DINPUT=file -P embed.cmake
# Writes a function of spel::server::embedded that returns the file's bytes.
file(READ "${INPUT}" hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
get_filename_component(name "${INPUT}" NAME)
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

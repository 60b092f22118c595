# cmake -DOUTPUT=x.cpp -DFUNCTION=name -DINPUT=file -P embed.cmake
# Writes a function of spel::server::embedded that returns the file's bytes.
file(READ "${INPUT}" hex HEX)
string(REGEX MATCHALL "[0-9a-f][0-9a-f]" bytes "${hex}")
list(LENGTH bytes count)
set(rows "")
set(row "")
set(column 0)
foreach(byte IN LISTS bytes)
  string(APPEND row "'\\x${byte}',")
  math(EXPR column "${column} + 1")
  if(column EQUAL 20)
    string(APPEND rows "    ${row}\n")
    set(row "")
    set(column 0)
  endif()
endforeach()
string(APPEND rows "    ${row}\n")
file(WRITE "${OUTPUT}" "// Generated from ${INPUT}.
#include \"server/embedded.h\"

namespace spel::server::embedded {
namespace {

constexpr char kBytes[] = {
${rows}};

}  // namespace

std::string_view ${FUNCTION}() { return {kBytes, sizeof(kBytes)}; }

}  // namespace spel::server::embedded
")

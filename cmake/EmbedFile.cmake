# Writes a source file that gives another file's bytes, as a function `std::string_view FUNCTION()` of namespace
# headlight, declared in HEADER. Needs nothing but CMake.
#   cmake -DINPUT=... -DOUTPUT=... -DHEADER=... -DFUNCTION=... -P EmbedFile.cmake

file(READ ${INPUT} hex HEX)
string(LENGTH "${hex}" digits)
math(EXPR bytes "${digits} / 2")
string(REPEAT "[0-9a-f]" 64 line)
string(REGEX REPLACE "(${line})" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," numbers "${hex}")

file(WRITE ${OUTPUT} "#include \"${HEADER}\"

namespace headlight {
namespace {

// the closing 0 keeps the array legal for an empty file
constexpr unsigned char kBytes[] = {
${numbers}0};

}  // namespace

std::string_view ${FUNCTION}() { return {reinterpret_cast<const char*>(kBytes), ${bytes}}; }

}  // namespace headlight
")

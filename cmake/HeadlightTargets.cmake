# Targets of one folder each: settings that every one of them shares.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# -ffp-contract=off: a * b + c is fused only where the code says so, so that results do not depend on what
# the compiler inlines. -Wno-psabi: passing views by value is not an interface between compilers.
add_library(headlight_settings INTERFACE)
target_compile_options(headlight_settings INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-psabi -Werror -ffp-contract=off
  # GCC 12 sees overlaps in std::string that are not there (its bug 105651)
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)

# Installs the target of one folder as headlight::NAME.
function(headlight_export name)
  set_target_properties(headlight_${name} PROPERTIES EXPORT_NAME ${name})
  install(TARGETS headlight_${name} EXPORT headlightTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# headlight_library(NAME SOURCES... [PUBLIC targets...] [PRIVATE targets...])
# One static library for src/NAME, with the public headers of include/headlight.
function(headlight_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(headlight_${name} STATIC ${arg_SOURCES})
  add_library(headlight::${name} ALIAS headlight_${name})
  target_include_directories(headlight_${name}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_features(headlight_${name} PUBLIC cxx_std_20)
  target_link_libraries(headlight_${name} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE} $<BUILD_INTERFACE:headlight_settings>)
  headlight_export(${name})
endfunction()

# find_package(headlight) for others: headers, one target per folder, and headlight::headlight.

include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/headlight)

install(DIRECTORY include/headlight DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT headlightTargets NAMESPACE headlight:: DESTINATION ${package_folder})
configure_package_config_file(cmake/headlightConfig.cmake.in headlightConfig.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(headlightConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/headlightConfig.cmake ${PROJECT_BINARY_DIR}/headlightConfigVersion.cmake
  cmake/FindPCRE2.cmake cmake/FindUtf8proc.cmake
  DESTINATION ${package_folder})

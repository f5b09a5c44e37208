# Installs the libraries, the headers, the program, the CMake package and the pkg-config files.
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY TENURE_LIBRARIES)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tenure)

install(
  TARGETS ${libraries}
  EXPORT tenureTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS)
install(
  EXPORT tenureTargets
  NAMESPACE tenure::
  DESTINATION ${package_folder})
if(TARGET tenure)
  install(TARGETS tenure)
endif()

set(TENURE_COMPONENTS)
foreach(component IN ITEMS kafka sqlite observe app testing)
  if(TARGET tenure_${component})
    list(APPEND TENURE_COMPONENTS ${component})
  endif()
endforeach()
configure_package_config_file(cmake/tenureConfig.cmake.in tenureConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
# While 0.x, a new minor version may break source.
write_basic_package_version_file(tenureConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tenureConfig.cmake
              ${PROJECT_BINARY_DIR}/tenureConfigVersion.cmake DESTINATION ${package_folder})

# pc(NAME tenure-kafka TARGETS kafka [REQUIRES modules...] [LIBS flags...])
# The libraries are static, so what they need is stated openly, not as private.
function(pc)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "TARGETS;REQUIRES;LIBS")
  set(libs)
  foreach(name IN LISTS arg_TARGETS)
    get_target_property(type tenure_${name} TYPE)
    if(type STREQUAL STATIC_LIBRARY)
      list(APPEND libs -ltenure_${name})
    endif()
  endforeach()
  file(RELATIVE_PATH to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
  string(REGEX REPLACE "/$" "" to_prefix "${to_prefix}")
  list(JOIN arg_REQUIRES ", " requires)
  list(JOIN libs " " libs)
  list(JOIN arg_LIBS " " more)
  file(
    CONFIGURE
    OUTPUT ${PROJECT_BINARY_DIR}/${arg_NAME}.pc
    CONTENT
      "prefix=\${pcfiledir}/@to_prefix@
includedir=\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}
libdir=\${prefix}/${CMAKE_INSTALL_LIBDIR}

Name: @arg_NAME@
Description: @PROJECT_DESCRIPTION@
Version: @PROJECT_VERSION@
Requires: @requires@
Cflags: -I\${includedir}
Libs: -L\${libdir} @libs@ @more@
"
    @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${arg_NAME}.pc
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

pc(NAME tenure TARGETS runtime memory ports core base LIBS -pthread)
pc(NAME tenure-observe TARGETS observe REQUIRES tenure)
pc(NAME tenure-testing TARGETS testing REQUIRES tenure)
if(TARGET tenure_kafka)
  if(TENURE_RDKAFKA_PREFIX_USED)
    # Not where pkg-config and the loader look by themselves.
    pc(NAME tenure-kafka TARGETS kafka REQUIRES tenure
       LIBS -L${TENURE_RDKAFKA_PREFIX_USED}/lib -Wl,-rpath,${TENURE_RDKAFKA_PREFIX_USED}/lib
            -lrdkafka)
  else()
    pc(NAME tenure-kafka TARGETS kafka
       REQUIRES tenure "rdkafka >= ${TENURE_RDKAFKA_VERSION_MIN}")
  endif()
endif()
if(TARGET tenure_sqlite)
  pc(NAME tenure-sqlite TARGETS sqlite REQUIRES tenure sqlite3)
endif()
if(TARGET tenure_app)
  pc(NAME tenure-app TARGETS app handler
     REQUIRES tenure-kafka tenure-sqlite tenure-observe tenure yaml-cpp fmt
              libcrypto)
endif()

# Functions that make the project's targets. Flags stay private to our own sources, so that neither
# packagers nor programs that link us ever see them.

if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_EXTENSIONS OFF)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
    find_program(TENURE_CCACHE ccache)
    mark_as_advanced(TENURE_CCACHE)
    if(TENURE_CCACHE)
      # Build trees in different folders share their objects.
      set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_NOHASHDIR=1 ${TENURE_CCACHE})
    endif()
  endif()
endif()

function(tenure_flags target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  if(NOT TENURE_WARNINGS)
    return()
  endif()
  target_compile_options(
    ${target}
    PRIVATE -Wall
            -Wextra
            -Wpedantic
            -Wshadow
            -Wconversion
            -Wsign-conversion
            -Wold-style-cast
            -Wnon-virtual-dtor
            -Woverloaded-virtual
            $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-cond>
            $<$<CXX_COMPILER_ID:GNU>:-Wlogical-op>
            # GCC bug 105329: g++ 12 sees an overlap in any inlined `"x" + std::string` at -O3.
            $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
            $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)
endfunction()

# tenure_library(NAME core [LINK targets...] [LINK_PRIVATE targets...] [BUILD_ONLY])
#
# The static library tenure_<NAME>, alias tenure::<NAME>, from all *.cpp of the calling folder
# (main.cpp belongs to a program). LINK is what its headers need, LINK_PRIVATE what its sources
# need. BUILD_ONLY keeps it out of the installed package. A folder that holds no source yet gives
# an empty interface library.
function(tenure_library)
  cmake_parse_arguments(PARSE_ARGV 0 arg "BUILD_ONLY" "NAME" "LINK;LINK_PRIVATE")
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  # Who links the installed library needs no headers that only our sources include.
  list(TRANSFORM arg_LINK_PRIVATE REPLACE "^(CLI11|nlohmann_json)::.*" "$<BUILD_INTERFACE:\\0>")
  set(target tenure_${arg_NAME})
  if(sources)
    add_library(${target} STATIC ${sources})
    target_link_libraries(${target} PUBLIC tenure_headers ${arg_LINK} PRIVATE ${arg_LINK_PRIVATE})
    target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
    tenure_flags(${target})
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE tenure_headers ${arg_LINK})
    target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  endif()
  add_library(tenure::${arg_NAME} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${arg_NAME})
  if(NOT arg_BUILD_ONLY)
    set_property(GLOBAL APPEND PROPERTY TENURE_LIBRARIES ${target})
  endif()
endfunction()

# tenure_test(NAME unit_core SOURCES files... [LINK targets...] [LABEL unit] [TIMEOUT 60]
#             [SERIAL] [BROKER])
#
# A GoogleTest program; each of its cases is one ctest, found when ctest starts. TIMEOUT is seconds
# a case. SERIAL keeps the program's cases from running beside any other test (for measurements).
# BROKER is for programs that start a real Kafka: one of them at a time, and label broker; all cases
# are one ctest, so that they share it.
function(tenure_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "SERIAL;BROKER" "NAME;LABEL;TIMEOUT" "SOURCES;LINK")
  if(NOT arg_SOURCES)
    return()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  if(NOT arg_LABEL)
    set(arg_LABEL unit)
  endif()
  set(target test_${arg_NAME})
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ${arg_LINK} tenure_test_support GTest::gtest_main
                                          GTest::gmock)
  tenure_flags(${target})
  if(arg_BROKER)
    add_test(NAME ${arg_NAME} COMMAND ${target})
    set_tests_properties(${arg_NAME} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS broker
                                                RESOURCE_LOCK broker)
    return()
  endif()
  set(properties TIMEOUT ${arg_TIMEOUT} LABELS ${arg_LABEL})
  if(arg_SERIAL)
    list(APPEND properties RUN_SERIAL TRUE)
  endif()
  gtest_discover_tests(
    ${target}
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 30
    TEST_PREFIX ${arg_NAME}.
    PROPERTIES ${properties})
endfunction()

# tenure_tests_of_folder(LABEL kafka [LINK targets...] [TIMEOUT 60] [SERIAL])
#
# One test program for each *.cpp of the calling folder, named <LABEL>_<file>. A file named
# *_broker_test.cpp starts a real Kafka (BROKER above).
function(tenure_tests_of_folder)
  cmake_parse_arguments(PARSE_ARGV 0 arg "SERIAL" "LABEL;TIMEOUT" "LINK")
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  foreach(source IN LISTS sources)
    get_filename_component(stem ${source} NAME_WE)
    set(flags)
    if(arg_SERIAL)
      list(APPEND flags SERIAL)
    endif()
    if(stem MATCHES "_broker_test$")
      list(APPEND flags BROKER)
    endif()
    tenure_test(
      NAME ${arg_LABEL}_${stem}
      SOURCES ${source}
      LABEL ${arg_LABEL}
      TIMEOUT ${arg_TIMEOUT}
      LINK ${arg_LINK}
      ${flags})
  endforeach()
endfunction()

# The public headers. Every library links this; `all_verify_interface_header_sets` compiles each
# header alone.
add_library(tenure_headers INTERFACE)
add_library(tenure::headers ALIAS tenure_headers)
set_target_properties(tenure_headers PROPERTIES EXPORT_NAME headers VERIFY_INTERFACE_HEADER_SETS ON)
file(GLOB_RECURSE tenure_public_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/*.hpp)
target_sources(
  tenure_headers
  INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES
            ${tenure_public_headers})
target_compile_features(tenure_headers INTERFACE cxx_std_20)
set_property(GLOBAL APPEND PROPERTY TENURE_LIBRARIES tenure_headers)

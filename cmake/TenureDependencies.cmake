# Finds what the enabled parts need. Layers name these targets: tl::expected, Threads::Threads,
# PkgConfig::rdkafka, PkgConfig::sqlite3, PkgConfig::libcrypto, yaml-cpp::yaml-cpp, fmt::fmt,
# CLI11::CLI11, nlohmann_json::nlohmann_json; tests also GTest::gtest, GTest::gmock,
# rapidcheck. xxhash is header only (XXH_INLINE_ALL).

find_package(tl-expected REQUIRED)
target_link_libraries(tenure_headers INTERFACE tl::expected)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

if(TENURE_KAFKA OR TENURE_SQLITE)
  find_package(PkgConfig REQUIRED)
endif()

if(TENURE_KAFKA)
  # Older ones break promises we make: docs/adr.
  set(TENURE_RDKAFKA_VERSION_MIN 2.14.2)
  set(TENURE_LIBRDKAFKA_PREFIX
      ""
      CACHE PATH "librdkafka's prefix; empty: the system's if new enough, else tools/bootstrap's")
  set(TENURE_RDKAFKA_PREFIX_USED "${TENURE_LIBRDKAFKA_PREFIX}")
  if(NOT TENURE_RDKAFKA_PREFIX_USED)
    execute_process(
      COMMAND ${PROJECT_SOURCE_DIR}/tools/bootstrap --librdkafka-prefix
      OUTPUT_VARIABLE TENURE_RDKAFKA_PREFIX_USED
      OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
  if(NOT "${TENURE_RDKAFKA_PREFIX_USED}" STREQUAL "${TENURE_RDKAFKA_PREFIX_SEEN}")
    # pkg-config's answers are cached; another prefix asks again.
    unset(__pkg_config_checked_rdkafka CACHE)
    unset(pkgcfg_lib_rdkafka_rdkafka CACHE)
    set(TENURE_RDKAFKA_PREFIX_SEEN
        "${TENURE_RDKAFKA_PREFIX_USED}"
        CACHE INTERNAL "")
  endif()
  set(ENV_PKG_CONFIG_PATH "$ENV{PKG_CONFIG_PATH}")
  if(TENURE_RDKAFKA_PREFIX_USED)
    set(ENV{PKG_CONFIG_PATH} "${TENURE_RDKAFKA_PREFIX_USED}/lib/pkgconfig:$ENV{PKG_CONFIG_PATH}")
  endif()
  pkg_check_modules(rdkafka IMPORTED_TARGET rdkafka>=${TENURE_RDKAFKA_VERSION_MIN})
  set(ENV{PKG_CONFIG_PATH} "${ENV_PKG_CONFIG_PATH}")
  if(NOT rdkafka_FOUND)
    message(FATAL_ERROR "librdkafka >= ${TENURE_RDKAFKA_VERSION_MIN} was not found. "
                        "Run tools/bootstrap, or set TENURE_LIBRDKAFKA_PREFIX.")
  endif()
endif()

if(TENURE_SQLITE)
  pkg_check_modules(sqlite3 REQUIRED IMPORTED_TARGET sqlite3>=3.37)
endif()

if(TENURE_APP)
  find_package(yaml-cpp REQUIRED)
  if(NOT TARGET yaml-cpp::yaml-cpp)
    # The name before 0.8.
    add_library(yaml-cpp::yaml-cpp INTERFACE IMPORTED)
    set_target_properties(yaml-cpp::yaml-cpp PROPERTIES INTERFACE_LINK_LIBRARIES yaml-cpp)
  endif()
  find_package(fmt REQUIRED)
  find_package(CLI11 REQUIRED)
  find_package(nlohmann_json 3.11 REQUIRED)
  # SHA-256 of the effective configuration (config.loaded); librdkafka links it anyway.
  pkg_check_modules(libcrypto REQUIRED IMPORTED_TARGET libcrypto>=1.1.1)
endif()

if(TENURE_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
  find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
  include(GoogleTest)
endif()

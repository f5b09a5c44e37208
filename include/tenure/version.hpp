// The version of these headers. CMake, the packages and `tenure version` read it from here.
#pragma once

// Major, minor and patch number, as semantic versioning means them; while major is 0, a new minor
// number may break source.
#define TENURE_VERSION "0.1.0"

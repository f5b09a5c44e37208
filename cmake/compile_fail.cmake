# cmake -D SOURCE=file -D COMPILER=c++ -D INCLUDES=dir;dir -P compile_fail.cmake
# Passes when SOURCE is refused with the message it names and accepted with TENURE_CORRECT.
file(STRINGS ${SOURCE} expect REGEX "^// expect: ")
if(NOT expect)
  message(FATAL_ERROR "${SOURCE}: no line '// expect: REGEX'")
endif()
string(REPLACE "// expect: " "" expect "${expect}")
set(flags -std=c++20 -fsyntax-only -Wall -Wextra -Werror)
foreach(folder IN LISTS INCLUDES)
  list(APPEND flags -I${folder})
endforeach()
execute_process(COMMAND ${COMPILER} ${flags} -DTENURE_CORRECT ${SOURCE}
                RESULT_VARIABLE correct ERROR_VARIABLE messages)
if(NOT correct EQUAL 0)
  message(FATAL_ERROR "${SOURCE}: the correct form does not compile:\n${messages}")
endif()
execute_process(COMMAND ${COMPILER} ${flags} ${SOURCE}
                RESULT_VARIABLE misuse ERROR_VARIABLE messages)
if(misuse EQUAL 0)
  message(FATAL_ERROR "${SOURCE}: the misuse compiles")
endif()
if(NOT messages MATCHES "${expect}")
  message(FATAL_ERROR "${SOURCE}: refused, but not with '${expect}':\n${messages}")
endif()

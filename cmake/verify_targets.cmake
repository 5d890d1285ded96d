# SPDX-License-Identifier: Apache-2.0
# The verifier's helpers beside the programs: the jail that zygotes run in, and the library their children sandbox
# themselves with. Both are free of the other rooms, so that they stay small and start fast.
add_library(tritonrl_sandbox SHARED ${CMAKE_SOURCE_DIR}/src/verify/sandbox_abi.cpp)
target_include_directories(tritonrl_sandbox PRIVATE ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(tritonrl_sandbox PRIVATE seccomp)
set_target_properties(tritonrl_sandbox PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
                                                  CXX_VISIBILITY_PRESET hidden)

add_executable(tritonrl_jail ${CMAKE_SOURCE_DIR}/src/verify/jail/jail_main.cpp)
target_include_directories(tritonrl_jail PRIVATE ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(tritonrl_jail PRIVATE tritonrl_sandbox)
set_target_properties(tritonrl_jail PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR} BUILD_RPATH "$ORIGIN")

# A sanitizer's run-time library cannot live inside a sandboxed Python: these two are always built without.
if(TRITONRL_SANITIZE)
  foreach(target tritonrl_sandbox tritonrl_jail)
    target_compile_options(${target} PRIVATE -fno-sanitize=all)
    target_link_options(${target} PRIVATE -fno-sanitize=all)
  endforeach()
endif()

target_compile_definitions(verify PUBLIC TRITONRL_BUILD_DIR="${CMAKE_BINARY_DIR}")
add_dependencies(verify tritonrl_jail tritonrl_sandbox)

tritonrl_gtest(cases_test SOURCES ${CMAKE_SOURCE_DIR}/tests/cases_test.cpp LIBS verify TIMEOUT 900)

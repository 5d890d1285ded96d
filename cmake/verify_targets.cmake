# SPDX-License-Identifier: Apache-2.0
# The verifier's generated header (trace_limits.cmake).
target_include_directories(verify PRIVATE ${CMAKE_BINARY_DIR}/generated)

# The verifier's helpers beside the programs: the jail that fork servers run in, and the library their children sandbox
# themselves with. Both are free of the other rooms, so that they stay small and start fast.
add_library(tritonrl_sandbox SHARED ${CMAKE_SOURCE_DIR}/src/verify/sandbox/sandbox_abi.cpp)
target_include_directories(tritonrl_sandbox PRIVATE ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(tritonrl_sandbox PRIVATE seccomp)
set_target_properties(tritonrl_sandbox PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
                                                  CXX_VISIBILITY_PRESET hidden)

add_executable(tritonrl_jail ${CMAKE_SOURCE_DIR}/src/verify/sandbox/jail_main.cpp)
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

add_dependencies(verify tritonrl_jail tritonrl_sandbox)

tritonrl_gtest(cases_test SOURCES ${CMAKE_SOURCE_DIR}/tests/cases_test.cpp LIBS verify TIMEOUT 900 FILTER Cases.*)
tritonrl_add_gtest(cases_every_stage_test cases_test TIMEOUT 900 FILTER CasesThroughEveryStage.*)

# Judge and replayer: LibTorch with CUDA in programs of their own. They build everywhere, from the headers and libraries of
# the wheels. Without a driver, judges work on the CPU, and replayers in tests only.
file(GLOB gpu_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/verify/judge/*.cpp ${CMAKE_SOURCE_DIR}/src/verify/replay/*.cpp)
set(gpu_tests ${gpu_sources})
list(FILTER gpu_tests INCLUDE REGEX "_test\\.cpp$")
list(FILTER gpu_sources EXCLUDE REGEX "_(test|main)\\.cpp$")
tritonrl_batches(gpu_sources verify_gpu ${gpu_sources})
add_library(verify_gpu STATIC ${gpu_sources})
target_include_directories(verify_gpu SYSTEM PUBLIC ${TRITONRL_CUDA_HEADERS})
tritonrl_embed(verify_gpu verify/replay/kernels.cu)
target_link_libraries(verify_gpu PUBLIC verify torch_cpp ${TRITONRL_CUDART} -Wl,--no-as-needed c10_cuda torch_cuda)
foreach(program judge replay)
  add_executable(tritonrl_${program} ${CMAKE_SOURCE_DIR}/src/verify/${program}/${program}_main.cpp)
  target_link_libraries(tritonrl_${program} PRIVATE verify_gpu)
  set_target_properties(tritonrl_${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endforeach()
if(gpu_tests)
  tritonrl_gtest(verify_gpu_test SOURCES ${gpu_tests} LIBS verify_gpu)
  if(TRITONRL_TESTS)
    add_dependencies(verify_gpu_test tritonrl_judge tritonrl_replay)
  endif()
endif()
if(TRITONRL_TESTS)  # They open a Verifier.
  add_dependencies(verify_test tritonrl_judge)
  add_dependencies(cases_test tritonrl_judge)
endif()

# Python packages that came without bytecode would be compiled at every start of the worker.
if(NOT EXISTS ${TRITONRL_TORCH_ROOT}/__pycache__)
  set(bytecode ${CMAKE_BINARY_DIR}/bytecode)
  file(GLOB worker_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/worker/*.py)
  add_custom_command(OUTPUT ${bytecode}/complete
                     COMMAND ${TRITONRL_PYTHON} ${CMAKE_SOURCE_DIR}/tools/cache_bytecode.py ${bytecode} ${CMAKE_SOURCE_DIR}/worker
                     DEPENDS ${CMAKE_SOURCE_DIR}/tools/cache_bytecode.py ${worker_sources}
                     COMMENT "Compiling the worker's Python packages")
  add_custom_target(worker_bytecode ALL DEPENDS ${bytecode}/complete)
  add_dependencies(tritonrl_jail worker_bytecode)
endif()

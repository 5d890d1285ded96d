# SPDX-License-Identifier: Apache-2.0
# Everything the rooms link, as targets. tools/setup.sh puts the parts that do not come from Debian under .deps.
set(TRITONRL_DEPS ${CMAKE_SOURCE_DIR}/.deps CACHE PATH "Folder made by tools/setup.sh")
set(TRITONRL_PYTHON ${TRITONRL_DEPS}/venv/bin/python CACHE FILEPATH "Python with torch and triton")
if(NOT EXISTS ${TRITONRL_PYTHON})
  message(FATAL_ERROR "${TRITONRL_PYTHON} is missing: run tools/setup.sh first")
endif()

find_package(Threads REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(GTest REQUIRED)
find_package(spdlog REQUIRED)

# spdlog brings fmt. Only base/log.cpp uses them: torch's headers carry another fmt.
add_library(fmt_spdlog INTERFACE)
target_link_libraries(fmt_spdlog INTERFACE spdlog::spdlog)

# Small C libraries: Debian's, or those of an offline prefix (tools/make_offline_prefix.sh).
function(tritonrl_c_library name header library)
  find_path(${name}_HEADERS ${header} HINTS ${TRITONRL_DEPS}/include REQUIRED)
  find_library(${name}_LIBRARY NAMES ${library} HINTS ${TRITONRL_DEPS}/lib REQUIRED)
  add_library(${name} INTERFACE)
  target_link_libraries(${name} INTERFACE ${${name}_LIBRARY})
  if(${name}_HEADERS MATCHES "^${TRITONRL_DEPS}")
    target_include_directories(${name} SYSTEM INTERFACE ${${name}_HEADERS})
  endif()
endfunction()
tritonrl_c_library(pcre2 pcre2.h pcre2-8)
tritonrl_c_library(utf8proc utf8proc.h utf8proc)
tritonrl_c_library(seccomp seccomp.h seccomp)
tritonrl_c_library(crypto openssl/sha.h crypto)
find_path(XXHASH_HEADERS xxhash.h HINTS ${TRITONRL_DEPS}/include REQUIRED)
# LibTorch has Gloo inside, and its headers of process groups name Gloo's, which the wheel lacks: Debian's, to be read only.
find_path(GLOO_HEADERS gloo/context.h HINTS ${TRITONRL_DEPS}/include REQUIRED)
if(XXHASH_HEADERS MATCHES "^${TRITONRL_DEPS}")
  include_directories(SYSTEM ${XXHASH_HEADERS})
endif()

# tree-sitter and its Python grammar, from their PyPI source packages. The grammar includes the library's headers under
# the name they have when installed.
set(grammar ${TRITONRL_DEPS}/pkg/tree-sitter-python/src)
set(tree_sitter ${TRITONRL_DEPS}/pkg/tree-sitter/tree_sitter/core/lib)
foreach(header parser alloc array)
  configure_file(${tree_sitter}/src/${header}.h ${CMAKE_BINARY_DIR}/tree_sitter/${header}.h COPYONLY)
endforeach()
add_library(tree_sitter_python STATIC ${tree_sitter}/src/lib.c ${grammar}/parser.c ${grammar}/scanner.c)
target_include_directories(tree_sitter_python SYSTEM PUBLIC ${tree_sitter}/include)
target_include_directories(tree_sitter_python PRIVATE ${tree_sitter}/src ${CMAKE_BINARY_DIR})
target_compile_options(tree_sitter_python PRIVATE -w)

# LibTorch out of the Python wheel: one ABI for the program and its workers. Not find_package(Torch), which wants every
# CUDA component the wheel was built with. CUDA is loaded at run time when there is a driver (model/device.h), so the
# same binary starts on machines without one.
execute_process(
  COMMAND ${TRITONRL_PYTHON} -c "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
  OUTPUT_VARIABLE torch_root OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(TRITONRL_TORCH_ROOT ${torch_root})
execute_process(
  COMMAND ${TRITONRL_PYTHON} -c "import importlib.metadata as m; print(m.version('torch'), m.version('triton'), sep=';')"
  OUTPUT_VARIABLE versions OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
list(GET versions 0 TRITONRL_TORCH_VERSION)
list(GET versions 1 TRITONRL_TRITON_VERSION)
add_library(torch_cpp INTERFACE)
target_include_directories(torch_cpp SYSTEM INTERFACE ${torch_root}/include ${torch_root}/include/torch/csrc/api/include)
target_link_directories(torch_cpp INTERFACE ${torch_root}/lib)
target_link_libraries(torch_cpp INTERFACE c10 torch_cpu Threads::Threads)
# What compiles our CUDA kernels, at run time (src/base/process/nvrtc.h).
find_file(TRITONRL_NVRTC libnvrtc.so.13 HINTS ${torch_root}/../nvidia/cu13/lib PATHS /usr/local/cuda/lib64)
if(NOT TRITONRL_NVRTC)
  message(STATUS "libnvrtc.so.13 not found; it must be where the loader looks when our CUDA kernels are wanted")
  set(TRITONRL_NVRTC libnvrtc.so.13)
endif()
# at::parallel_for is OpenMP. The wheel carries the libgomp it runs with; the rpath below makes it ours as well, so there is
# one pool of threads.
target_compile_options(torch_cpp INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fopenmp>)
target_link_libraries(torch_cpp INTERFACE ${torch_root}/lib/libgomp.so.1)
target_link_options(torch_cpp INTERFACE -Wl,-rpath,${torch_root}/lib)

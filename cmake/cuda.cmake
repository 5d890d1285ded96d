# SPDX-License-Identifier: Apache-2.0
# CUDA from the headers and libraries that LibTorch's wheels bring. No nvcc: kernels are compiled at run time
# (src/base/process/nvrtc.h), their sources being part of the programs.
find_path(TRITONRL_CUDA_HEADERS crt/host_defines.h
          HINTS ${TRITONRL_TORCH_ROOT}/../nvidia/cu13/include ENV CUDA_HOME PATHS /usr/local/cuda/include /usr/local/cuda/targets/x86_64-linux/include
          PATH_SUFFIXES include REQUIRED)
find_library(TRITONRL_CUDART NAMES cudart libcudart.so.13
             HINTS ${TRITONRL_TORCH_ROOT}/../nvidia/cu13/lib PATHS /usr/local/cuda/lib64 REQUIRED)

# tritonrl_embed(TARGET FILE): src/FILE as a string literal, which the sources of TARGET include as "FILE.inc".
function(tritonrl_embed target file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${file})
  file(READ ${CMAKE_SOURCE_DIR}/src/${file} text)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/embedded/${file}.inc CONTENT "R\"cuda(${text})cuda\"\n" @ONLY)
  target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/embedded)
endfunction()

target_include_directories(model SYSTEM PRIVATE ${TRITONRL_CUDA_HEADERS})
tritonrl_embed(model model/cuda/kernels.cu)

# CUDA graphs need LibTorch's CUDA libraries to link: a module that is opened at run time (src/model/cuda/graph.h).
add_library(tritonrl_cuda_graph MODULE ${CMAKE_SOURCE_DIR}/src/model/cuda/graph_module.cpp)
target_include_directories(tritonrl_cuda_graph PRIVATE ${CMAKE_SOURCE_DIR}/src)
target_include_directories(tritonrl_cuda_graph SYSTEM PRIVATE ${TRITONRL_CUDA_HEADERS})
target_link_libraries(tritonrl_cuda_graph PRIVATE torch_cpp ${TRITONRL_CUDART} c10_cuda torch_cuda)
set_target_properties(tritonrl_cuda_graph PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR} CXX_VISIBILITY_PRESET hidden)
add_dependencies(model tritonrl_cuda_graph)

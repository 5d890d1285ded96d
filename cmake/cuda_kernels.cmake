# SPDX-License-Identifier: Apache-2.0
# Parts of the model room that need CUDA to link: modules that are opened at run time (src/model/cuda/module.h).
#
# CUDA graphs, from the headers and libraries that LibTorch's wheels bring.
find_path(TRITONRL_CUDA_HEADERS crt/host_defines.h
          HINTS ${TRITONRL_TORCH_ROOT}/../nvidia/cu13/include ENV CUDA_HOME PATHS /usr/local/cuda/include /usr/local/cuda/targets/x86_64-linux/include
          PATH_SUFFIXES include REQUIRED)
find_library(TRITONRL_CUDART NAMES cudart libcudart.so.13
             HINTS ${TRITONRL_TORCH_ROOT}/../nvidia/cu13/lib PATHS /usr/local/cuda/lib64 REQUIRED)
add_library(tritonrl_cuda_graph MODULE ${CMAKE_SOURCE_DIR}/src/model/cuda/graph_module.cpp)
target_include_directories(tritonrl_cuda_graph PRIVATE ${CMAKE_SOURCE_DIR}/src)
target_include_directories(tritonrl_cuda_graph SYSTEM PRIVATE ${TRITONRL_CUDA_HEADERS})
target_link_libraries(tritonrl_cuda_graph PRIVATE torch_cpp ${TRITONRL_CUDART} c10_cuda torch_cuda)
set_target_properties(tritonrl_cuda_graph PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR} CXX_VISIBILITY_PRESET hidden)
add_dependencies(model tritonrl_cuda_graph)

# The kernels, where nvcc is found. It has machine code for compute capability 9.0 and
# PTX for 8.0 and up, and runs with the CUDA runtime that LibTorch brings: nvcc must be of the same major version.
find_program(TRITONRL_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
if(TRITONRL_NVCC)
  set(cuda_source ${CMAKE_SOURCE_DIR}/src/model/cuda/kernels.cu)
  set(cuda_module ${CMAKE_BINARY_DIR}/libtritonrl_cuda.so)
  add_custom_command(
    OUTPUT ${cuda_module}
    COMMAND ${TRITONRL_NVCC} -std=c++20 -O3 -I${CMAKE_SOURCE_DIR}/src -ccbin ${CMAKE_CXX_COMPILER} -shared --cudart shared
            -Xcompiler -fPIC,-fvisibility=hidden,-Wall -gencode arch=compute_80,code=compute_80
            -gencode arch=compute_90,code=sm_90 ${cuda_source} -o ${cuda_module}
    DEPENDS ${cuda_source} ${CMAKE_SOURCE_DIR}/src/model/cuda/kernels.h
    COMMENT "Building CUDA module libtritonrl_cuda.so" VERBATIM)
  add_custom_target(tritonrl_cuda ALL DEPENDS ${cuda_module})
  add_dependencies(model tritonrl_cuda)
else()
  message(STATUS "nvcc not found: no CUDA kernels of our own; on a GPU the model will run on ATen, several times slower")
endif()

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

# What needs LibTorch's CUDA libraries to link is a module that is opened at run time (src/model/cuda/module.h).
function(tritonrl_cuda_module name source room)
  add_library(${name} MODULE ${CMAKE_SOURCE_DIR}/src/${source})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_include_directories(${name} SYSTEM PRIVATE ${TRITONRL_CUDA_HEADERS})
  target_link_libraries(${name} PRIVATE torch_cpp ${TRITONRL_CUDART} c10_cuda torch_cuda)
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR} CXX_VISIBILITY_PRESET hidden)
  add_dependencies(${room} ${name})
endfunction()
tritonrl_cuda_module(tritonrl_cuda_graph model/cuda/graph_module.cpp model)

# NCCL's header must be that of LibTorch's NCCL, which is a wheel beside it.
find_path(TRITONRL_NCCL_HEADERS nccl.h HINTS ${TRITONRL_TORCH_ROOT}/../nvidia/nccl/include)
function(tritonrl_nccl_module room)
  if(NOT TRITONRL_NCCL_HEADERS)
    message(STATUS "nccl.h not found: gradients of several GPUs will go by way of the processor")
    return()
  endif()
  tritonrl_cuda_module(tritonrl_nccl train/nccl_module.cpp ${room})
  target_include_directories(tritonrl_nccl SYSTEM PRIVATE ${TRITONRL_NCCL_HEADERS})
  target_compile_definitions(tritonrl_nccl PRIVATE USE_DISTRIBUTED USE_C10D_NCCL)
endfunction()

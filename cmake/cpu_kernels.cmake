# SPDX-License-Identifier: Apache-2.0
# Flags of the CPU kernels: one source a instruction set, picked at run time (src/model/cpu/kernels.cpp).
set(fast -O3 -ffast-math -fno-math-errno)
set(cpu_dir ${CMAKE_SOURCE_DIR}/src/model/cpu)
set_source_files_properties(${cpu_dir}/kernels_baseline.cpp PROPERTIES COMPILE_OPTIONS "${fast}")
set_source_files_properties(${cpu_dir}/kernels_avx2.cpp PROPERTIES COMPILE_OPTIONS "${fast};-mavx2;-mfma;-mf16c")
set_source_files_properties(${cpu_dir}/kernels_avx512.cpp PROPERTIES
  COMPILE_OPTIONS "${fast};-mavx2;-mfma;-mf16c;-mavx512f;-mavx512bw;-mavx512vl;-mavx512dq;-mavx512bf16;-mprefer-vector-width=512")

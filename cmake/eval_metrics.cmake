# SPDX-License-Identifier: Apache-2.0
# metrics.cpp and effects.cpp as a library of their own: the rest of room eval links torch, the report room must not.
add_library(eval_metrics STATIC ${CMAKE_SOURCE_DIR}/src/eval/metrics.cpp ${CMAKE_SOURCE_DIR}/src/eval/effects.cpp)
target_include_directories(eval_metrics PUBLIC ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(eval_metrics PUBLIC base verify)
tritonrl_gtest(eval_metrics_test SOURCES ${CMAKE_SOURCE_DIR}/src/eval/metrics_test.cpp ${CMAKE_SOURCE_DIR}/src/eval/effects_test.cpp LIBS eval_metrics)

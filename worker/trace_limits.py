# SPDX-License-Identifier: Apache-2.0
# What the bytes of a trace may hold, the one table of it: Python imports it, CMake makes constants for C++ of it
# (cmake/trace_limits.cmake), and tests/docs_test.cpp holds docs/trace.md to it. A line for each:
# NAME = value  # meaning
MAX_BYTES = 256 << 20  # bytes of a trace
MAX_KERNELS = 256  # kernels
MAX_CUBINS = 1024  # compiled kernels and specs of what to compile
MAX_CASES = 64  # cases
MAX_VALUES = 50000  # values of a case, and parameters
MAX_STEPS = 20000  # steps of a case
MAX_LIST = 1024  # inputs, arguments of a step, elements of any other list
MAX_CHOICES = 16  # configurations of a launch
MAX_ITEMS = 2000000  # values, parameters, inputs, steps, choices, arguments, globals, list elements, parts of structures in all
MAX_RANK = 16  # dimensions
MAX_ELEMENTS = 1 << 40  # elements of a value, size of a dimension, bytes of scratch memory
MAX_ARG_DEPTH = 4  # nesting of arguments
MAX_NEST_DEPTH = 8  # nesting of outputs
MAX_NAME = 1 << 10  # bytes of a name
MAX_OP = 256  # bytes of an operator's name
MAX_TEXT = 4 << 10  # bytes of an argument's text
MAX_SOURCE = 1 << 20  # bytes of a kernel's source
MAX_JSON = 64 << 10  # bytes of one JSON text (nested 64 deep at most)
MAX_JSON_IN_ALL = 4 << 20  # bytes of JSON in all
MAX_LINE = 10000000  # line numbers
MAX_GRID_X = (1 << 31) - 1  # programs of a launch, first dimension
MAX_GRID_YZ = 65535  # programs of a launch, second and third dimension

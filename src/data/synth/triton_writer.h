// SPDX-License-Identifier: Apache-2.0
// The Triton side of a graph: kernels and the ModelNew that launches them, readable and in varied style.
#pragma once

#include <algorithm>
#include <string>

#include "base/rng.h"
#include "data/synth/torch_writer.h"

namespace tritonrl::graphs {

// How one solution is written. Drawn per task so that no single template is what a model learns; plain is always the
// same.
struct Style {
  bool settled = false;        // The other choices are the fast ones, and schedules alone are drawn.
  bool plain = false;          // One line a node, every result is called x, arguments by position.
  bool grid_2d = false;        // Pointwise kernels: rows and column blocks instead of one flat range.
  bool many_rows = false;      // Row kernels: several rows per program, in a 2-D block.
  bool two_kernels = false;    // Whole reductions: partial sums, then their sum.
  bool helpers = false;        // Longer expressions become jit functions.
  bool implicit_gemm = false;  // Convolutions through tl.dot.
  bool flat_programs = false;  // Products: one program index, taken apart in the kernel.
  bool comments = false;
  bool explicit_cast = false;  // Stores name the element type.
  bool keyword_other = false;  // tl.load(p, mask=m, other=0.0) instead of tl.load(p, m, 0.0).
  bool block_in_name = false;  // BLOCK_SIZE instead of BLOCK.
  bool warps = false;          // Launches say num_warps.
  bool tf32 = false;           // Float32 products as tl.dot makes them by itself, operands cut to TF32.
  int names = 0;               // How values are called.
  int allocation = 0;          // torch.empty, new_empty, empty_like.
  int64_t block = 1024;        // Of flat kernels.
  int64_t tile = 32;           // Of products.
  int64_t conv_rows() const { return std::min<int64_t>(2 * tile, 128); }  // Of a tile of an implicit product: places.
  int64_t conv_columns = 16,
          conv_depth = 16;  // Of a tile of an implicit product: channels out, and taps of channels in.

  // --- Schedules that vary where people write; 0 = what the kernel's writer says.
  bool pass_scalars = false;  // Numbers that are arguments of __init__ are arguments of the kernel, not part of it.
  bool autotune = false;      // Flat and row kernels: from two or three configurations.
  int64_t num_warps = 0, num_stages = 0;
  int64_t rows = 0;           // Rows per program, with many_rows.
  int64_t row_block = 0;      // Of a pass over a long row; 0 = block.
  int64_t longest_row = 0;    // Longer ones are looped over, and norms over several dimensions; 0 = none is.
  bool read_modules = false;  // Windows and groups are read from the module, not written into the kernel.
};
Style draw_style(bool plain, bool gpu_sizes, Rng rng);
// The fast way to write each kernel, always the same.
Style settled_style(bool gpu_sizes);
// What may differ between two solutions that compute alike: tiles, warps, stages, configurations to choose from.
void draw_schedule(Style& style, bool gpu_sizes, Rng rng);

// The whole file, or "" when the code generator does not cover the graph. `writing`: null = bare.
std::string triton_solution(const TensorGraph& graph, const Naming& naming, const Style& style,
                            const Writing* writing = nullptr);

}  // namespace tritonrl::graphs

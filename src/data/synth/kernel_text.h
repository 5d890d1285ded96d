// SPDX-License-Identifier: Apache-2.0
// KernelText: one Triton kernel while it is being written. Internal to the code generator.
//
// The heart is value(): the name of the variable that holds a node's element(s) at a place. Inputs and stored results
// are loaded, pointwise nodes computed, movement turned into other places. A place has one coordinate a dimension, each
// with the condition under which it lies inside the tensor.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "data/synth/launch_plan.h"
#include "data/synth/triton_writer.h"

namespace tritonrl::graphs {

struct Coord {
  std::string text = "0";  // An identifier, a number, or something in parentheses.
  std::string mask;        // "" = always inside.
};

struct Place {
  std::vector<Coord> at;
  std::string flat;  // Offset of this place in a contiguous tensor of shape `of`; "" = not known.
  std::string flat_mask;
  Shape of;
};

// A pool or a convolution whose window the wrapper reads from its module, so that the kernel serves any.
struct ReadWindow {
  std::string owner;                                    // "self.conv".
  std::string suffix;                                   // Of its names in the wrapper: "2" for the second.
  bool dilation = false, groups = false, bias = false;  // Does the module's call speak of them?
  std::vector<std::string> lines = {};  // Of the wrapper: "kh, kw = self.conv.kernel_size" ... "out_h = ...".
};
// All of them, by node. The sizes of their results get names ("out_h") in the graph.
std::map<int, ReadWindow> read_windows(TensorGraph& graph, const Naming& naming);

// Across the kernels of one file.
struct FileText {
  const LaunchPlan& plan;
  const Naming& naming;
  const Style& style;
  std::map<int, ReadWindow> windows;           // By node of the plan.
  std::map<std::string, std::string> helpers;  // Name -> text of a jit function.
  std::vector<std::string> helper_order;
  std::set<std::string> kernel_names;
};

class KernelText {
 public:
  KernelText(FileText& file, int kernel, std::string name);

  // --- Writing.
  void line(const std::string& text);
  void comment(const std::string& text);
  // A line of the head: dropped in the end when nothing below uses `name`.
  void head(const std::string& name, const std::string& text);
  // A line of the head, or of the loop that is open; there, too, dropped when nothing below uses it.
  void define(const std::string& name, const std::string& text);
  void open(const std::string& text);  // "for ..:" and one level deeper; close() forgets what was computed inside.
  void close();
  void close_pass();                           // close(), and names of variables inside are free again.
  std::string fresh(const std::string& stem);  // An unused name.
  std::string assign(const std::string& stem, const std::string& text);
  // The result of a node: plain kernels keep it in x.
  std::string result(const std::string& stem, const std::string& text);

  // --- Arguments.
  std::string pointer(int node, bool store = false);  // "x_ptr".
  std::string scratch(const std::string& name);       // A pointer that the wrapper allocates as float32.
  std::string size(const Dim& dim);                   // "N", or a number.
  std::string size(const std::string& name, const std::string& host);        // Named, computed by the wrapper.
  std::string fixed_size(const std::string& name, const std::string& host);  // The same as tl.constexpr.
  std::string constant(const std::string& name, const std::string& host);    // tl.constexpr, by keyword.

  // --- Values.
  std::string value(int node, const Place& place);
  void set(int node, const std::string& variable) { members_[node] = variable; }
  bool has(int node) const { return members_.count(node) > 0; }
  // Loads with an explicit offset.
  std::string load(int node, const std::string& offset, const std::string& mask, const std::string& other = "0.0");
  void store(int node, const std::string& offset, const std::string& variable, const std::string& mask);
  // `acc` plus the bias of a module that may have none.
  std::string module_bias(const std::string& owner, const std::string& acc, const std::string& offset,
                          const std::string& mask);
  // Coordinates of a flat index over `shape`, as head lines.
  std::vector<Coord> take_apart(const std::string& flat, const Shape& shape, const std::string& mask);
  // The place of `operand` inside a broadcast of `shape`.
  Place broadcast_place(const Place& place, const Shape& shape, const Shape& operand) const;
  std::string offset_of(const Shape& shape, const Place& place);
  static std::string mask_of(const Shape& shape, const Place& place);
  std::string helper(const std::string& name, const std::string& parameters, const std::string& text);

  // --- Row kernels: how reductions along the row are written.
  std::string ax = ", axis=0", axis = "axis=0", row_mask, row_index, row_count;
  Place row_place;

  // --- Results.
  std::string text() const;                    // The whole function.
  std::vector<std::string> arguments() const;  // Of the launch, in order; constants as keywords.
  const std::vector<std::pair<int, std::string>>& pointers() const { return pointers_; }
  const std::vector<std::string>& scratches() const { return scratches_; }
  const TensorGraph& graph() const { return file_.plan.graph; }
  FileText& file() { return file_; }
  const Style& style() const { return file_.style; }
  int kernel() const { return kernel_; }
  const std::string& name() const { return name_; }

 private:
  std::string masked(const std::string& variable, const std::string& fill);
  std::string pointwise(int node, const Place& place);
  std::string row(int node);
  std::string moved(int node, const Place& place);
  std::string key(int node, const Place& place) const;

  FileText& file_;
  int kernel_;
  std::string name_;
  int indent_ = 1;
  bool kept_ = false;  // Plain: x is computed, the first input is in r.
  std::vector<std::pair<std::string, std::string>> head_;
  std::string body_;
  std::vector<std::pair<int, std::string>> pointers_;
  std::vector<std::string> scratches_;
  std::vector<std::pair<std::string, std::string>> sizes_, constants_;
  std::map<int, std::string> members_;
  std::map<std::string, std::string> known_;
  std::vector<std::map<std::string, std::string>> outer_known_;
  std::vector<std::map<int, std::string>> outer_members_;
  std::vector<std::set<std::string>> outer_names_;
  std::vector<size_t> outer_starts_;                // Where bodies of open loops begin.
  std::map<std::string, std::vector<Coord>> rows_;  // What `row` was taken apart into.
  std::set<std::string> names_, fixed_;
};

// Pieces of all writers: the name of the block size, a kernel's own name, its launch, and the stores of what it leaves
// behind, all at one place.
std::string block_name(const Style& style);
std::string kernel_name(FileText& file, const KernelPlan& plan, const std::string& fallback);
void launch(const KernelText& kernel, const std::string& grid, std::vector<std::string>& host, int64_t warps = 0,
            int64_t least = 0);
void store_all(KernelText& kernel, const KernelPlan& plan, const Place& place, const Shape& shape);

// Whether a node is in memory when kernel `kernel` runs; else reading it computes it.
bool in_memory(const FileText& file, int kernel, int node);
// "acc = tl.dot(..)" of two tiles, as exact as their type or as the style has it; and an operand's tile: as it lies in
// memory where it can be (`raw`: in its own type), else computed and masked.
std::string dot_line(const Style& style, Type type, const std::string& a, const std::string& b, bool raw);
std::string tile_of(KernelText& kernel, int node, const Place& place, bool raw, const std::string& stem);

// Writers of triton_products.cpp and triton_windows.cpp, as write_kernel().
std::string gemm_kernel(FileText& file, int kernel, std::vector<std::string>& host);
std::string window_kernel(FileText& file, int kernel, std::vector<std::string>& host);
std::string conv_kernel(FileText& file, int kernel, std::vector<std::string>& host);

// Row kernels: sets the place of a row's elements; stores what the kernel's members leave behind.
void set_row_place(KernelText& kernel, const RowSpace& space, bool many);
void store_rows(KernelText& kernel, const KernelPlan& plan, bool many);
// Where a row kernel stores a node that has one number of each row.
Place row_number_place(const KernelText& kernel, const KernelPlan& plan, const Node& node, const std::string& mask);
// Numbers of each row, or a scan, by loops over the row.
std::string long_row_kernel(FileText& file, int kernel, std::vector<std::string>& host);

// One writer a kind of kernel (triton_kernels.cpp). Each returns the kernels' texts and appends the lines that launch
// them to `host`.
std::string write_kernel(FileText& file, int kernel, std::vector<std::string>& host);
// How the wrapper names a node's tensor: an argument, a parameter, or what it allocated.
std::string host_name(const FileText& file, int node);

}  // namespace tritonrl::graphs

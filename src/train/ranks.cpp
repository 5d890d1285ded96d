// SPDX-License-Identifier: Apache-2.0
#include "train/ranks.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/process/interrupt.h"
#include "base/text.h"
#include "model/cuda/module.h"

namespace tritonrl {

struct Ranks::Backend {
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<c10d::Backend> group;
  c10::intrusive_ptr<c10d::Backend> gpus;  // NCCL's, once tensors of a GPU were to be added up; null = it is not there.
  bool asked_for_gpus = false;
};

namespace {

constexpr int64_t kBlock = (64 << 20) / 4;          // Floats of one all-reduce.
constexpr auto kAnswer = std::chrono::minutes(30);  // Verifying one's share may take another rank that much longer.
constexpr char kLaunchers[] =
    "start it by `torchrun --no-python --nproc-per-node N tritonrl train CONFIG`, or by srun with MASTER_ADDR and "
    "MASTER_PORT";

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (!value || !*value) return std::nullopt;
  return value;
}

int64_t number(const char* name, const std::string& text, int64_t least, int64_t most) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    throw usage_error(cat(name, "=", text, " is not a number from ", least, " to ", most), "environment", kLaunchers);
  }
  return value;
}

int64_t number(const char* name, int64_t least, int64_t most) {
  auto text = variable(name);
  if (!text) throw usage_error(cat(name, " is not set beside the number of ranks"), "environment", kLaunchers);
  return number(name, *text, least, most);
}

std::string message_of(const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  return trim(split(torch ? torch->what_without_backtrace() : error.what(), '\n')[0]);
}

}  // namespace

Ranks::Place Ranks::place() {
  constexpr int64_t kMost = 1 << 20;
  Place place;
  bool slurm = !variable("WORLD_SIZE") && variable("SLURM_STEP_NUM_TASKS") && variable("SLURM_PROCID");
  const char* size = slurm ? "SLURM_STEP_NUM_TASKS" : "WORLD_SIZE";
  if (!variable(size)) {
    if (variable("RANK")) throw usage_error("RANK is set and WORLD_SIZE is not", "environment", kLaunchers);
    return place;
  }
  place.size = number(size, 1, kMost);
  if (place.size == 1) return place;
  place.rank = number(slurm ? "SLURM_PROCID" : "RANK", 0, place.size - 1);
  const char* local = slurm ? "SLURM_LOCALID" : "LOCAL_RANK";
  place.local = number(local, 0, place.size - 1);
  const char* locals = slurm ? "SLURM_NTASKS_PER_NODE" : "LOCAL_WORLD_SIZE";
  place.locals = variable(locals) ? number(locals, 1, place.size) : place.size;
  auto address = variable("MASTER_ADDR");
  if (!address) throw usage_error(cat(size, "=", place.size, " without MASTER_ADDR"), "environment", kLaunchers);
  place.address = *address;
  place.port = number("MASTER_PORT", 1, 65535);
  place.agent = variable("TORCHELASTIC_USE_AGENT_STORE") == "True";
  place.prefix = cat("tritonrl/", variable("TORCHELASTIC_RESTART_COUNT").value_or("0"));
  return place;
}

std::unique_ptr<Ranks> Ranks::join(const Place& place, std::chrono::seconds patience) {
  if (place.size == 1) return std::unique_ptr<Ranks>(new Ranks(place, nullptr));
  auto backend = std::make_unique<Backend>();
  try {
    c10d::TCPStoreOptions options;
    options.port = static_cast<uint16_t>(place.port);
    options.isServer = place.rank == 0 && !place.agent;
    options.numWorkers = static_cast<size_t>(place.size);
    options.waitWorkers = false;
    options.timeout = patience;
    auto store = c10::make_intrusive<c10d::TCPStore>(place.address, options);
    backend->store = c10::make_intrusive<c10d::PrefixStore>(place.prefix, store);
    auto how = c10d::ProcessGroupGloo::Options::create(patience);
    how->devices.push_back(c10d::ProcessGroupGloo::createDefaultDevice());
    auto rank = static_cast<int>(place.rank), size = static_cast<int>(place.size);
    auto group = c10::make_intrusive<c10d::ProcessGroupGloo>(backend->store, rank, size, how);
    group->setTimeout(kAnswer);
    backend->group = group;
  } catch (const std::exception& error) {
    throw environment_error(
        cat("rank ", place.rank, " of ", place.size, " did not meet the others: ", message_of(error)),
        cat(place.address, ":", place.port), "are all ranks started, and may they connect to that port?");
  }
  return std::unique_ptr<Ranks>(new Ranks(place, std::move(backend)));
}

Ranks::Ranks(Place place, std::unique_ptr<Backend> backend) : place_(std::move(place)), backend_(std::move(backend)) {}

Ranks::~Ranks() = default;

template <class F>
void Ranks::together(const char* what, const F& work) {
  try {
    work(*backend_->group);
  } catch (const std::exception& error) {
    if (interrupted()) throw Interrupted();
    throw environment_error(cat("rank ", rank(), " lost the others while ", what, ": ", message_of(error)), "",
                            "the rank that failed first says why in its own output; the same command continues");
  }
}

// Can tensors on `device` be added up there? All ranks find the same.
bool Ranks::between_gpus(const at::Device& device) {
  if (device.is_cpu()) return false;
  if (backend_->asked_for_gpus) return backend_->gpus.defined();
  backend_->asked_for_gpus = true;
  using Make = c10d::Backend*(c10d::Store*, int, int, int8_t);
  auto* make = reinterpret_cast<Make*>(cuda::module_symbol("libtritonrl_nccl.so", "tritonrl_nccl_group",
                                                           "gradients go by way of the processor, which is slower"));
  if (any(!make)) return false;
  together("making NCCL's group", [&](c10d::Backend&) {
    auto store = c10::make_intrusive<c10d::PrefixStore>("nccl", backend_->store);
    auto* made = make(store.get(), static_cast<int>(rank()), static_cast<int>(size()), device.index());
    backend_->gpus = c10::intrusive_ptr<c10d::Backend>::reclaim(made);
  });
  return true;
}

void Ranks::sum(std::vector<at::Tensor> tensors) {
  if (!backend_ || tensors.empty()) return;
  at::InferenceMode no_autograd;
  bool on_gpus = between_gpus(tensors.front().device());
  auto options = at::TensorOptions(at::kFloat).device(on_gpus ? tensors.front().device() : at::Device(at::kCPU));
  at::Tensor block;
  for (size_t begin = 0, end = 0; begin < tensors.size(); begin = end) {
    int64_t floats = 0;
    for (; end < tensors.size() && (end == begin || floats + tensors[end].numel() <= kBlock); ++end) {
      CHECK(tensors[end].is_contiguous() && tensors[end].scalar_type() == at::kFloat);
      floats += tensors[end].numel();
    }
    if (!block.defined() || block.numel() < floats) block = at::empty({std::max(floats, kBlock / 16)}, options);
    std::vector<at::Tensor> flat = {block.slice(0, 0, floats)};
    auto each = [&](const auto& move) {
      for (size_t i = begin, at = 0; i < end; at += static_cast<size_t>(tensors[i].numel()), ++i) {
        move(tensors[i].view({-1}), flat[0].slice(0, static_cast<int64_t>(at)).slice(0, 0, tensors[i].numel()));
      }
    };
    each([](at::Tensor own, at::Tensor part) { part.copy_(own); });
    together("adding up gradients",
             [&](c10d::Backend& group) { (on_gpus ? *backend_->gpus : group).allreduce(flat)->wait(); });
    each([](at::Tensor own, at::Tensor part) { own.copy_(part); });
  }
}

bool Ranks::any(bool mine) {
  if (!backend_) return mine;
  std::vector<at::Tensor> one = {at::full({1}, mine ? 1.0f : 0.0f, at::kFloat)};
  together("agreeing whether to go on", [&](c10d::Backend& group) { group.allreduce(one)->wait(); });
  return one[0].item<float>() > 0;
}

std::vector<std::string> Ranks::gather(std::string_view mine) {
  if (!backend_) return {std::string(mine)};
  auto all = static_cast<size_t>(size());
  std::vector<std::string> out(all);
  together("gathering what each has", [&](c10d::Backend& group) {
    auto exchange = [&](at::Tensor own) {
      std::vector<std::vector<at::Tensor>> theirs(1);
      for (size_t r = 0; r < all; ++r) theirs[0].push_back(at::empty_like(own));
      std::vector<at::Tensor> given = {std::move(own)};
      group.allgather(theirs, given)->wait();
      return std::move(theirs[0]);
    };
    auto lengths = exchange(at::full({1}, static_cast<int64_t>(mine.size()), at::kLong));
    int64_t longest = 1;
    for (const at::Tensor& length : lengths) longest = std::max(longest, length.item<int64_t>());
    at::Tensor padded = at::zeros({longest}, at::kByte);
    if (!mine.empty()) std::memcpy(padded.data_ptr(), mine.data(), mine.size());
    auto bytes = exchange(std::move(padded));
    for (size_t r = 0; r < all; ++r) {
      out[r].assign(static_cast<const char*>(bytes[r].data_ptr()), static_cast<size_t>(lengths[r].item<int64_t>()));
    }
  });
  return out;
}

std::string Ranks::from_first(std::string_view first) {
  if (!backend_) return std::string(first);
  std::string out;
  together("waiting for rank 0", [&](c10d::Backend& group) {
    std::vector<at::Tensor> length = {at::full({1}, static_cast<int64_t>(first.size()), at::kLong)};
    group.broadcast(length)->wait();
    out.resize(static_cast<size_t>(length[0].item<int64_t>()));
    if (out.empty()) return;
    if (this->first()) std::copy(first.begin(), first.end(), out.begin());
    std::vector<at::Tensor> bytes = {at::from_blob(out.data(), {static_cast<int64_t>(out.size())}, at::kByte)};
    group.broadcast(bytes)->wait();
  });
  return out;
}

void Ranks::require_same(const std::string& what, const std::string& value, const std::string& hint) {
  auto values = gather(value);
  for (size_t r = 1; r < values.size(); ++r) {
    if (values[r] != values[0]) throw usage_error(cat("rank ", r, " has another ", what, " than rank 0"), "", hint);
  }
}

void Ranks::wait_for_all() { gather(""); }

}  // namespace tritonrl

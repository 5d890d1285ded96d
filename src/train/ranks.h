// SPDX-License-Identifier: Apache-2.0
// Ranks: the processes that train one policy together, each with a share of every update (data parallel).
//
// Every rank runs the same program on the same config and holds the same policy; what differs is which micro batches it
// computes. Gradients are summed over all, so that each takes the same step. Who starts the processes is torchrun's,
// Slurm's or a launcher's business: they say in the environment who is who. Meeting and talking are c10d's: a TCPStore,
// Gloo between processors, NCCL between GPUs.
//
//   auto ranks = Ranks::join(Ranks::place());           // blocks until all are there
//   ranks->sum(gradient);                               // of all ranks, the same bits everywhere
//
// All calls are collective: every rank makes the same ones in the same order, and each blocks until all have.
// Throws Error (environment) when another rank is gone or does not answer; Interrupted where this one was asked to
// stop. Thread rule: one thread at a time.
#pragma once

#include <ATen/ATen.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tritonrl {

class Ranks {
 public:
  struct Place {
    int64_t rank = 0, size = 1;
    int64_t local = 0;    // Of the ranks on this machine: which GPU is this one's,
    int64_t locals = 1;   // ... and how many these are.
    std::string address;  // Where rank 0 (or torchrun's agent) listens.
    int64_t port = 0;
    bool agent = false;  // torchrun's agent holds the store.
    std::string prefix;  // Of the store's keys: a restart by torchrun meets under another one.
  };
  // What the environment says: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT as torchrun sets them, or
  // SLURM_PROCID, SLURM_STEP_NUM_TASKS and SLURM_LOCALID of a step of srun with MASTER_ADDR and MASTER_PORT. A single
  // rank where neither is there. Throws Error (usage) for half of it.
  static Place place();

  // Meets the others. Throws Error (environment) when they are not there after `patience`.
  static std::unique_ptr<Ranks> join(const Place& place, std::chrono::seconds patience = std::chrono::seconds(300));
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int64_t rank() const { return place_.rank; }
  int64_t size() const { return place_.size; }
  int64_t on_this_machine() const { return place_.locals; }
  bool first() const { return place_.rank == 0; }

  // Adds up float tensors of the same shapes over all ranks, in place, in blocks of 64 MiB. Contiguous; all on
  // one device.
  void sum(std::vector<at::Tensor> tensors);
  bool any(bool mine);
  // What rank 0 has. The others give nothing.
  std::string from_first(std::string_view first);
  // What every rank has, in the order of the ranks.
  std::vector<std::string> gather(std::string_view mine);
  // Throws Error (usage) that names the first rank whose value is not rank 0's, on every rank. `what`: "the config".
  void require_same(const std::string& what, const std::string& value, const std::string& hint = "");
  void wait_for_all();

 private:
  struct Backend;
  Ranks(Place place, std::unique_ptr<Backend> backend);
  template <class F>
  void together(const char* what, const F& work);
  bool between_gpus(const at::Device& device);

  const Place place_;
  std::unique_ptr<Backend> backend_;  // Null: a single rank.
};

}  // namespace tritonrl

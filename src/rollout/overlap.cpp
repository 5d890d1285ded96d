// SPDX-License-Identifier: Apache-2.0
#include "rollout/overlap.h"

#include <mutex>
#include <optional>

#include "base/check.h"
#include "base/log.h"
#include "base/process/interrupt.h"
#include "base/text.h"

namespace tritonrl {
namespace {

constexpr int64_t kSpareWorkers = 1;  // Sampling keeps one thread busy.

}  // namespace

void PhaseTimes::add(const PhaseTimes& other) {
  rollout += other.rollout;
  verify += other.verify;
  verify_alone += other.verify_alone;
  gave_way += other.gave_way;
  drawn += other.drawn;
  judged += other.judged;
  wait_rollout += other.wait_rollout;
  wait_verify += other.wait_verify;
  idle += other.idle;
}

bool should_stream(Switch stream, const Policy& policy) {
  return stream == Switch::kOn || (stream == Switch::kAuto && policy.weights().device.is_cuda());
}

Collected sample_and_verify(Verifier& verifier, std::vector<Candidate> candidates, const DrawAnswers& draw,
                            const Collecting& how, int64_t turn, SharedDevice* device) {
  const auto total = static_cast<int64_t>(candidates.size());
  const std::string what = turn == 1 ? how.what : cat(how.what, ": turn ", turn);
  auto stopping = [&] { return interrupted() || (how.stopped && how.stopped()); };
  Collected out;
  out.verdicts.resize(candidates.size());
  std::mutex mutex;  // Guards judged and verifying.
  int64_t judged = 0, answered = 0;
  std::optional<Progress> verifying;
  auto take = [&](size_t i, Verdict verdict) {
    out.verdicts[i] = std::move(verdict);
    std::lock_guard lock(mutex);
    ++judged;
    if (verifying) verifying->update(judged);
  };
  auto on_verdict = [&](size_t i, Verdict verdict) {
    if (how.journal) how.journal->note(turn, i, verdict);
    take(i, std::move(verdict));
  };
  double start = now_s(), first = 0;
  auto verifier_stream = verifier.stream(on_verdict, how.stream ? kSpareWorkers : 0, how.limits);
  auto submit = [&](size_t i) {
    if (const Verdict* known = how.journal ? how.journal->verdict(turn, i) : nullptr) return take(i, *known);
    if (first == 0) first = now_s();
    ++out.times.judged;
    verifier_stream->submit(i, std::move(candidates[i]));
  };
  {
    Progress sampling(what + ": sampling", total, "answers");
    SharedDevice::Use use(device);
    auto progress = [&](int64_t done, int64_t, int64_t drawn) {
      out.times.drawn = drawn;
      use.give_way();
      std::string note = cat(fixed(static_cast<double>(drawn) / (now_s() - start), 0), " tokens/s");
      if (how.stream) {
        std::lock_guard lock(mutex);
        note += cat(", ", judged, " verified");
      }
      sampling.update(done, note);
      return !stopping();
    };
    draw(progress, [&](size_t i, const Rollout& answer) {
      ++answered;
      out.tokens += static_cast<int64_t>(answer.tokens.size());
      if (how.journal && !how.journal->answer(turn, i)) {
        how.journal->note(turn, i, Generated{answer.tokens, answer.log_probs, answer.finished});
      }
      candidates[i].text = answer.text;
      if (how.stream) submit(i);
    });
    out.times.gave_way = use.seconds_given();
  }
  if (stopping()) throw Interrupted();
  CHECK(answered == total) << answered << " answers of " << total;
  double sampled = now_s();
  if (how.on_sampled) how.on_sampled();
  {
    std::lock_guard lock(mutex);
    verifying.emplace(what + ": verifying", total, "candidates", judged);
  }
  if (!how.stream) {
    for (size_t i = 0; i < candidates.size(); ++i) submit(i);
  }
  verifier_stream->finish();
  verifying->update(judged);
  verifying.reset();
  if (interrupted()) throw Interrupted();
  CHECK(judged == total) << judged << " verdicts of " << total;
  double end = now_s();
  out.times.rollout = sampled - start;
  out.times.verify = first > 0 ? end - first : 0;
  out.times.verify_alone = end - sampled;
  return out;
}

}  // namespace tritonrl

// SPDX-License-Identifier: Apache-2.0
#include "eval/overlap.h"

#include <mutex>
#include <optional>

#include "base/check.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/text.h"

namespace tritonrl {
namespace {

constexpr int64_t kSpareWorkers = 1;  // Sampling keeps one thread busy.

// What the sampler's GPU is called, while answers are timed on it.
class Sharing {
 public:
  Sharing(Verifier& verifier, SharedDevice* device) : verifier_(verifier) { verifier_.share(device); }
  ~Sharing() { verifier_.share(nullptr); }
  Sharing(const Sharing&) = delete;
  Sharing& operator=(const Sharing&) = delete;

 private:
  Verifier& verifier_;
};

}  // namespace

void PhaseTimes::add(const PhaseTimes& other) {
  rollout += other.rollout;
  verify += other.verify;
  verify_alone += other.verify_alone;
  gave_way += other.gave_way;
}

bool should_stream(const std::string& stream, const Policy& policy) {
  return stream == "true" || (stream == "auto" && policy.weights().device.is_cuda());
}

std::vector<Verdict> sample_and_verify(Verifier& verifier, std::vector<Candidate> candidates, const DrawAnswers& draw,
                                       const std::string& what, bool stream, const std::string& device,
                                       PhaseTimes* times, int64_t* tokens) {
  const auto total = static_cast<int64_t>(candidates.size());
  std::vector<Verdict> verdicts(candidates.size());
  SharedDevice shared(device);
  Sharing sharing(verifier, stream ? &shared : nullptr);
  std::mutex mutex;  // Guards judged and verifying.
  int64_t judged = 0, answered = 0;
  std::optional<Progress> verifying;
  auto on_verdict = [&](size_t i, Verdict verdict) {
    verdicts[i] = std::move(verdict);
    std::lock_guard lock(mutex);
    ++judged;
    if (verifying) verifying->update(judged);
  };
  double start = now_s(), first = 0;
  auto verifier_stream = verifier.stream(on_verdict, stream ? kSpareWorkers : 0);
  auto submit = [&](size_t i) {
    if (first == 0) first = now_s();
    verifier_stream->submit(i, std::move(candidates[i]));
  };
  {
    Progress sampling(what + ": sampling", total, "answers");
    SharedDevice::Use use(stream ? &shared : nullptr);
    int64_t drawn = 0;
    auto progress = [&](int64_t done, int64_t, int64_t drawn_now) {
      drawn = drawn_now;
      use.give_way();
      std::string note = cat(fixed(static_cast<double>(drawn) / (now_s() - start), 0), " tokens/s");
      if (stream) {
        std::lock_guard lock(mutex);
        note += cat(", ", judged, " verified");
      }
      sampling.update(done, note);
      return !interrupted();
    };
    draw(progress, [&](size_t i, const std::string& text) {
      ++answered;
      candidates[i].text = text;
      if (stream) submit(i);
    });
    *tokens += drawn;
  }
  if (interrupted()) throw Interrupted();
  CHECK(answered == total) << answered << " answers of " << total;
  double sampled = now_s();
  {
    std::lock_guard lock(mutex);
    verifying.emplace(what + ": verifying", total, "candidates", judged);
  }
  if (!stream) {
    for (size_t i = 0; i < candidates.size(); ++i) submit(i);
  }
  verifier_stream->finish();
  verifying->update(judged);
  verifying.reset();
  if (interrupted()) throw Interrupted();
  CHECK(judged == total) << judged << " verdicts of " << total;
  double end = now_s();
  times->add({sampled - start, total > 0 ? end - first : 0, end - sampled, shared.seconds_given()});
  return verdicts;
}

}  // namespace tritonrl

// SPDX-License-Identifier: Apache-2.0
#include "verify/verify_stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <set>
#include <thread>

#include "base/rng.h"
#include "base/text.h"

namespace tritonrl::verify_stream_test {
namespace {

using namespace std::chrono_literals;

Candidate candidate(const std::string& id, const std::string& text) {
  Candidate one;
  one.id = id;
  one.task.id = "t";
  one.text = text;
  return one;
}

Verdict verdict_of(const Candidate& one) {
  Verdict verdict;
  verdict.candidate_id = one.id;
  verdict.outcome = Outcome::kPass;
  verdict.code = "about " + one.text;
  return verdict;
}

// Waits for what other threads do; false after ten seconds without it.
bool comes_true(const std::function<bool()>& is_so) {
  for (int i = 0; i < 10000 && !is_so(); ++i) std::this_thread::sleep_for(1ms);
  return is_so();
}

TEST(VerifyStream, VerdictsComeBeforeTheLastCandidateDoes) {
  std::atomic<int> seen{0};
  VerifyStream stream(
      verdict_of, [&](size_t, Verdict) { ++seen; }, 2);
  for (int i = 0; i < 3; ++i) {
    stream.submit(static_cast<size_t>(i), candidate(cat("c", i), cat("x", i)));
    EXPECT_TRUE(comes_true([&] { return seen == i + 1; }));
  }
  stream.finish();
}

TEST(VerifyStream, EqualCandidatesAreVerifiedOnceWheneverTheyCome) {
  Rng rng(4);
  for (int round = 0; round < 20; ++round) {
    std::mutex mutex;
    std::multiset<std::string> verified;
    std::vector<std::string> texts, ids(60), codes(60);
    VerifyStream stream(
        [&](const Candidate& one) {
          {
            std::lock_guard lock(mutex);
            verified.insert(one.text);
          }
          std::this_thread::sleep_for(std::chrono::microseconds(one.text.size() * 50));
          return verdict_of(one);
        },
        [&](size_t tag, Verdict verdict) {
          EXPECT_EQ(ids[tag], "") << "a second verdict";
          ids[tag] = verdict.candidate_id;
          codes[tag] = verdict.code;
        },
        4, 1);
    for (size_t i = 0; i < ids.size(); ++i) {
      texts.push_back(std::string(static_cast<size_t>(rng.uniform() * 10) + 1, 'x'));
      stream.submit(i, candidate(cat("c", i), texts[i]));
      if (rng.uniform() < 0.3) std::this_thread::sleep_for(300us);
    }
    stream.finish();
    for (size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(ids[i], cat("c", i));
      EXPECT_EQ(codes[i], "about " + texts[i]);
    }
    EXPECT_EQ(verified.size(), std::set<std::string>(texts.begin(), texts.end()).size());
  }
}

TEST(VerifyStream, SpareWorkersWaitForTheLastCandidate) {
  std::atomic<int> now{0}, most{0};
  std::atomic<bool> go{false};
  auto slow = [&](const Candidate& one) {
    most = std::max<int>(most, ++now);
    comes_true([&] { return go.load(); });
    --now;
    return verdict_of(one);
  };
  VerifyStream stream(
      slow, [](size_t, Verdict) {}, 3, 1);
  for (size_t i = 0; i < 6; ++i) stream.submit(i, candidate(cat("c", i), cat("x", i)));
  EXPECT_TRUE(comes_true([&] { return now == 2; }));
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(most, 2);
  auto end = std::async(std::launch::async, [&] { stream.finish(); });
  EXPECT_TRUE(comes_true([&] { return now == 3; }));
  go = true;
  end.get();
  EXPECT_EQ(most, 3);
}

TEST(VerifyStream, WhereMemoryIsShortTheVerifierIsAskedOnceMoreWhenAllElseIsDone) {
  std::mutex mutex;
  std::map<std::string, int> asked;
  std::vector<std::string> order;
  std::atomic<int> now{0}, most_again{0};
  auto verify = [&](const Candidate& one) {
    ++now;
    int times = 0;
    {
      std::lock_guard lock(mutex);
      times = ++asked[one.text];
      order.push_back(cat(one.text, times));
    }
    std::this_thread::sleep_for(2ms);
    if (times == 2) most_again = std::max<int>(most_again, now.load());
    --now;
    Verdict verdict = verdict_of(one);
    bool fails = one.text == "always" || ((one.text == "once" || one.text == "early") && times == 1);
    if (fails) {
      verdict.outcome = Outcome::kHarnessFault;
      verdict.stages = {{Stage::kExtract, 0, {Rule::kVerifierMemory}}};
    }
    if (one.text == "lost") {
      verdict.outcome = Outcome::kHarnessFault;
      verdict.stages = {{Stage::kExtract, 0, {Rule::kVerifierFailed}}};
    }
    return verdict;
  };
  std::vector<std::vector<Outcome>> seen(12);
  VerifyStream stream(
      verify, [&](size_t tag, Verdict verdict) { seen[tag].push_back(verdict.outcome); }, 4, 1);
  const char* texts[] = {"early", "a", "always", "b", "once", "c", "once", "d", "e", "f", "lost", "always"};
  for (size_t i = 0; i < 12; ++i) stream.submit(i, candidate(cat("c", i), texts[i]));
  EXPECT_TRUE(comes_true([&] {
    std::lock_guard lock(mutex);
    return order.size() == 10;
  }));
  stream.finish();
  for (size_t i = 0; i < 12; ++i) {
    bool fault = texts[i] == std::string("always") || texts[i] == std::string("lost");
    ASSERT_EQ(seen[i].size(), 1u) << texts[i];
    EXPECT_EQ(seen[i][0] == Outcome::kHarnessFault, fault) << texts[i];
  }
  EXPECT_EQ(asked["always"], 2);
  EXPECT_EQ(asked["once"], 2);
  EXPECT_EQ(asked["early"], 2);
  EXPECT_EQ(asked["a"], 1);
  EXPECT_EQ(asked["lost"], 1) << "memory was not in its way";
  EXPECT_EQ(most_again, 1) << "others beside it";
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(order[i].back(), '1') << "again before all else was done";
}

TEST(VerifyStream, WhatTheReceiverThrowsReachesTheSubmitter) {
  auto refuse = [](size_t, Verdict) { throw std::runtime_error("no room"); };
  VerifyStream stream(verdict_of, refuse, 1);
  stream.submit(0, candidate("a", "x"));
  EXPECT_TRUE(comes_true([&] {
    try {
      stream.submit(1, candidate("b", "y"));
      return false;
    } catch (const std::runtime_error&) {
      return true;
    }
  }));
  EXPECT_THROW(stream.finish(), std::runtime_error);
}

TEST(VerifyStream, LeftWithoutFinishItEndsWhatIsUnderWayOnly) {
  std::atomic<int> verified{0}, delivered{0};
  {
    VerifyStream stream(
        [&](const Candidate& one) {
          ++verified;
          std::this_thread::sleep_for(20ms);
          return verdict_of(one);
        },
        [&](size_t, Verdict) { ++delivered; }, 2);
    for (size_t i = 0; i < 50; ++i) stream.submit(i, candidate(cat("c", i), cat("x", i)));
    EXPECT_TRUE(comes_true([&] { return verified > 0; }));
  }
  EXPECT_LT(verified, 10);
  EXPECT_EQ(verified, delivered);
  VerifyStream nothing(
      verdict_of, [](size_t, Verdict) {}, 2);
  nothing.finish();
}

}  // namespace
}  // namespace tritonrl::verify_stream_test

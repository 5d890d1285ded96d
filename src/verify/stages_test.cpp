// SPDX-License-Identifier: Apache-2.0
// The stages over scripted workers: how every way a job can end becomes a verdict, and that our own faults never become
// a pass or a score.
#include "verify/stages.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "base/rng.h"
#include "support/fake_jobs.h"
#include "support/trial.h"
#include "verify/verifier.h"

namespace tritonrl::stages_test {
namespace {

using namespace trial;  // NOLINT(google-build-using-namespace)

TEST(Stages, HonestCandidatePasses) {
  Trial r = run(honest_answer);
  EXPECT_EQ(r.verdict.outcome, Outcome::kPass) << r.verdict.reason();
  EXPECT_EQ(r.verdict.stopped_at, Stage::kFullRun);
  EXPECT_EQ(r.verdict.stages.size(), 5u);
  EXPECT_EQ(r.verdict.path, VerifyPath::kInterpreter);
  EXPECT_EQ(r.verdict.triton_launches, 1);
  EXPECT_FALSE(r.verdict.speedup.has_value());
  EXPECT_EQ(r.verdict.code, "x = 1\n");
  EXPECT_EQ(r.inputs.size(), 3u);  // Two of the full case, one of the tiny one.
  EXPECT_EQ(r.reference, 1);
  EXPECT_EQ(r.record, 1);
  EXPECT_EQ(r.interpret, 5);  // Tiny, tiny without launches, first full input twice, second.
}

TEST(Stages, WithoutTinySizesTheFullOnesServe) {
  Candidate one = candidate();
  one.task.tiny.clear();
  Trial r = run(honest_answer, one);
  EXPECT_TRUE(r.verdict.correct());
  EXPECT_EQ(r.verdict.stages.size(), 5u);
  EXPECT_EQ(r.inputs.size(), 2u);
}

TEST(Stages, EarlyStagesCostNoJob) {
  Candidate answer = candidate("c", "I cannot do that.");
  answer.is_code = false;
  Trial none = run(honest_answer, answer);
  EXPECT_EQ(none.verdict.outcome, Outcome::kNoCode);
  EXPECT_EQ(none.verdict.stopped_at, Stage::kExtract);
  Trial broken = run(honest_answer, candidate("c", "def f(:\n"));
  EXPECT_EQ(broken.verdict.outcome, Outcome::kSyntaxError);
  EXPECT_EQ(broken.reference + broken.record, 0);
  EXPECT_EQ(run(honest_answer, candidate("c", std::string("x = '\xff'\n"))).verdict.outcome, Outcome::kSyntaxError);
  EXPECT_EQ(run(honest_answer, candidate("c", std::string(10 << 20, 'x'))).verdict.outcome, Outcome::kNoCode);
  EXPECT_EQ(run(honest_answer, candidate("c", "")).verdict.outcome, Outcome::kNoCode);
  Candidate chat = candidate("c", "Sure:\n```python\nx = 1\n```\n");
  chat.is_code = false;
  EXPECT_TRUE(run(honest_answer, chat).verdict.correct());
}

// How each end of a child is judged, in either sandboxed stage.
TEST(Stages, EndsOfChildren) {
  struct End {
    const char* name;
    Status status;
    int code;
    std::string result, said;
    Outcome outcome;
    double processor_s = 1;
  };
  const End ends[] = {
      {"exit 0 without a result", Status::kExited, 0, "", "", Outcome::kRuntimeError},
      {"exit 3", Status::kExited, 3, "", "boo", Outcome::kRuntimeError},
      {"exit 3 with a result", Status::kExited, 3, "abc", "", Outcome::kRuntimeError},
      {"MemoryError on the way out", Status::kExited, 1, "", "Traceback ...\nMemoryError", Outcome::kOutOfMemory},
      {"segmentation fault", Status::kSignaled, SIGSEGV, "", "", Outcome::kRuntimeError},
      {"filtered system call", Status::kSignaled, SIGSYS, "", "", Outcome::kRuntimeError},
      {"killed for memory", Status::kMemory, SIGKILL, "", "", Outcome::kOutOfMemory},
      {"processor time", Status::kSignaled, SIGXCPU, "", "", Outcome::kTimeout},
      {"killed for processor time", Status::kSignaled, SIGKILL, "", "", Outcome::kTimeout, 1000},
      {"killed by nobody knows whom", Status::kSignaled, SIGKILL, "", "", Outcome::kHarnessFault, 1},
      {"given no processor", Status::kStarved, SIGKILL, "", "", Outcome::kHarnessFault},
      {"deadline", Status::kDeadline, SIGKILL, "", "", Outcome::kTimeout},
      {"endless result", Status::kOverflow, 0, "abc", "", Outcome::kOutOfMemory},
      {"garbage", Status::kExited, 0, std::string(1000, '\xee'), "", Outcome::kTampered},
      {"half a blob", Status::kExited, 0, blob_bytes({{"ok", true}}).substr(0, 9), "", Outcome::kTampered},
      {"no nonce", Status::kExited, 0, blob_bytes({{"ok", true}}), "", Outcome::kTampered},
      {"wrong nonce", Status::kExited, 0, blob_bytes({{"ok", true}, {"nonce", "0123456789abcdef"}}), "",
       Outcome::kTampered},
  };
  for (const char* kind : {"record", "interpret"}) {
    for (const End& end : ends) {
      Trial r = run(lying(kind, [&](const Job&, const std::string&) {
        JobAnswer answer = raw(end.result);
        answer.status = end.status;
        answer.code = end.code;
        answer.stderr_tail = end.said;
        answer.processor_s = end.processor_s;
        return answer;
      }));
      EXPECT_EQ(r.verdict.outcome, end.outcome) << kind << ": " << end.name << ": " << r.verdict.reason();
      EXPECT_EQ(r.verdict.stopped_at, std::string(kind) == "record" ? Stage::kCompile : Stage::kTinyRun) << end.name;
      EXPECT_FALSE(r.verdict.reason().empty()) << end.name;
      bool ours = end.outcome == Outcome::kHarnessFault;  // A candidate's failure is not retried.
      EXPECT_EQ(r.record, ours ? 2 : 1) << end.name;
    }
  }
}

// The kernel takes jobs first when the machine runs out of memory: which of them, and which process of it, is chance.
TEST(Stages, AMachineWithoutMemoryIsNobodysFault) {
  for (const char* kind : {"record", "compile", "interpret"}) {
    for (bool told : {false, true}) {  // The whole job is killed, or ptxas alone, which its job then tells.
      for (bool beyond : {false, true}) {
        std::atomic<int> calls{0};
        auto answer = [&](const Job& job, const std::string& nonce) {
          JobAnswer out = told ? failure(nonce, "compile_error", "ptxas was killed") : JobAnswer();
          out.status = told ? Status::kExited : Status::kMemory;
          if (!beyond && !told) out.status = Status::kSignaled;
          out.code = told ? 0 : SIGKILL;
          out.machine_ran_out = true;
          out.peak_bytes = beyond ? job.memory_bytes + 1 : job.memory_bytes - 1;
          ++calls;
          return out;
        };
        Trial always = run(lying(kind, answer));
        EXPECT_EQ(always.verdict.is_harness_fault(), !beyond) << kind << told << ": " << always.verdict.reason();
        Trial once = run(lying(kind, [&, first = true](const Job& job, const std::string& nonce) mutable {
          return std::exchange(first, false) ? answer(job, nonce) : honest_answer(job, nonce);
        }));
        // Of runs that shared a child, each is tried alone.
        bool shared = kind == std::string("interpret");
        EXPECT_EQ(once.verdict.correct(), shared || !beyond) << kind << told << ": " << once.verdict.reason();
      }
    }
  }
}

TEST(Stages, FailuresOfTheCandidateKeepTheirKind) {
  for (const char* kind : {"compile_error", "runtime_error", "unsupported", "out_of_memory", "rule_break"}) {
    Trial r = run(lying(
        "record", [&](const Job&, const std::string& nonce) { return failure(nonce, kind, "at /usr/lib/x.py:3"); }));
    EXPECT_STREQ(to_string(r.verdict.outcome), kind);
    EXPECT_EQ(r.verdict.reason(), "at x.py:3");
  }
}

TEST(Stages, LostWorkersAreRetriedOnceAndNeverScored) {
  for (const char* kind : {"reference", "record", "interpret"}) {
    for (Status status : {Status::kLost, Status::kForkFailed, Status::kKilled}) {
      std::atomic<int> calls{0};
      auto lost = [&](const Job&, const std::string&) {
        JobAnswer answer;
        answer.status = status;
        answer.fault = "the worker was lost: it ended";
        return answer;
      };
      Trial always = run(lying(kind, lost));
      EXPECT_EQ(always.verdict.outcome, Outcome::kHarnessFault) << kind;
      EXPECT_FALSE(always.verdict.correct());
      EXPECT_LE(always.record, 2) << kind;
      Trial once = run(lying(kind, [&](const Job& job, const std::string& nonce) {
        return calls++ == 0 ? lost(job, nonce) : honest_answer(job, nonce);
      }));
      EXPECT_EQ(once.verdict.outcome, Outcome::kPass) << kind << ": " << once.verdict.reason();
    }
  }
}

// Whatever it is asked when it goes: once may be chance, twice is the reference's doing.
TEST(Stages, LostJudgesAreRetriedOnceAndNeverScored) {
  for (const char* what : {"task", "inputs", "compare"}) {
    int times = 0;
    for (int lost : {1, 100}) {
      int left = lost;
      Trial r = run(honest_answer, candidate(), {}, [&](const Json& question, const std::string& payload, auto* out) {
        if (question["do"] != what || left == 0) return honest_judge(question, payload, out);
        --left;
        ++times;
        return Json();
      });
      EXPECT_EQ(r.verdict.outcome, lost == 1 ? Outcome::kPass : Outcome::kHarnessFault)
          << what << ": " << r.verdict.reason();
    }
    EXPECT_EQ(times, 3) << what;
  }
}

TEST(Stages, ReferenceThatTheJudgeCannotRunIsOurFaultAndNamesTheTask) {
  for (const char* what : {"inputs", "compare"}) {
    Trial r = run(honest_answer, candidate(), {}, [&](const Json& question, const std::string& payload, auto* out) {
      if (question["do"] != what) return honest_judge(question, payload, out);
      return reference_failed("no float64");
    });
    EXPECT_EQ(r.verdict.outcome, Outcome::kHarnessFault);
    EXPECT_EQ(r.verdict.task_failure, "no float64");
    EXPECT_NE(r.verdict.reason().find("task double"), std::string::npos) << r.verdict.reason();
    EXPECT_EQ(r.record, 1) << "asking again would give the same";
  }
}

// Wherever in the sequence of jobs the worker is lost for good, the candidate neither passes nor fails.
TEST(Stages, NoLossAtAnyPointIsAPass) {
  for (int k = 0; k < 8; ++k) {
    std::atomic<int> calls{0};
    Trial trial = run([&](const Job& job, const std::string& nonce) {
      return calls++ < k ? honest_answer(job, nonce) : JobAnswer();
    });
    EXPECT_EQ(trial.verdict.outcome, Outcome::kHarnessFault) << "lost from job " << k << " on";
  }
  Trial trial = run([](const Job& job, const std::string& nonce) {  // Only the jobs without launches.
    return job.kind == "interpret" && !has_launches(job) ? JobAnswer() : honest_answer(job, nonce);
  });
  EXPECT_EQ(trial.verdict.outcome, Outcome::kHarnessFault);
}

TEST(Stages, BrokenReferenceIsOurFaultAndNamesTheTask) {
  Trial r = run(lying(
      "reference", [](const Job&, const std::string& nonce) { return failure(nonce, "runtime_error", "bad shapes"); }));
  EXPECT_EQ(r.verdict.outcome, Outcome::kHarnessFault);
  EXPECT_NE(r.verdict.reason().find("task double"), std::string::npos) << r.verdict.reason();
  EXPECT_NE(r.verdict.reason().find("bad shapes"), std::string::npos);
  EXPECT_EQ(r.reference, 1);  // Asking again would give the same.
  EXPECT_EQ(r.record, 0);
}

TEST(Stages, InterruptedReferenceIsAskedOnceMoreAndNotKept) {
  for (Status status : {Status::kDeadline, Status::kSignaled}) {
    auto interrupted = [&](const Job&, const std::string&) {
      JobAnswer answer;
      answer.status = status;
      answer.code = 9;
      return answer;
    };
    std::atomic<int> calls{0};
    Trial once = run(lying("reference", [&](const Job& job, const std::string& nonce) {
      return calls++ == 0 ? interrupted(job, nonce) : honest_answer(job, nonce);
    }));
    EXPECT_EQ(once.verdict.outcome, Outcome::kPass) << once.verdict.reason();
    EXPECT_EQ(once.reference, 2);
    FakePool pool(lying("reference", interrupted));
    ReferenceCache cache(pool, 1, 1 << 20);
    for (int64_t asked : {2, 4}) {
      EXPECT_FALSE(cache.ask(candidate().task, {{"full"}}, 1)->failure.empty());
      EXPECT_EQ(pool.count("reference"), asked);
    }
  }
}

TEST(Stages, WrongOutputs) {
  const float wrong[4] = {2, -4, 6, 8.5}, nan[4] = {2, NAN, 6, 8}, zeros[4] = {0, 0, 0, 0};
  auto giving = [](const float(&output)[4]) {
    return lying("interpret",
                 [&output](const Job&, const std::string& nonce) { return interpret_answer(nonce, output); });
  };
  EXPECT_EQ(run(giving(wrong)).verdict.outcome, Outcome::kWrongOutput);
  EXPECT_EQ(run(giving(nan)).verdict.outcome, Outcome::kNotFinite);
  EXPECT_EQ(run(giving(zeros)).verdict.outcome, Outcome::kWrongOutput);
  EXPECT_NE(run(giving(wrong)).verdict.reason().find("N = 2"), std::string::npos);
}

TEST(Stages, WithoutLaunches) {  // The right answer without the launches: Triton did nothing.
  Trial r =
      run(lying("interpret", [](const Job&, const std::string& nonce) { return interpret_answer(nonce, kExpected); }));
  EXPECT_EQ(r.verdict.outcome, Outcome::kRuleBreak);
  EXPECT_EQ(r.verdict.stopped_at, Stage::kTinyRun);
  VerifyConfig config;
  config.skip_stages = {Stage::kTinyRun};
  Trial full =
      run(lying("interpret", [](const Job&, const std::string& nonce) { return interpret_answer(nonce, kExpected); }),
          candidate(), config);
  EXPECT_EQ(full.verdict.outcome, Outcome::kRuleBreak);
  EXPECT_EQ(full.verdict.stopped_at, Stage::kFullRun);
}

TEST(Stages, ResultsThatDependOnGarbage) {  // Right at first, wrong with another poison.
  std::set<uint64_t> poisons, manners;
  std::atomic<int> runs{0};
  Trial r = run(lying("interpret", [&](const Job& job, const std::string& nonce) {
    const float wrong[4] = {2, -4, 6, 7};
    if (!has_launches(job)) return honest_answer(job, nonce);
    poisons.insert(job.args["poison"].get<uint64_t>());
    manners.insert(job.args["poison"].get<uint64_t>() % 4);
    return ++runs == 3 ? interpret_answer(nonce, wrong) : interpret_answer(nonce, kExpected);
  }));
  EXPECT_EQ(r.verdict.outcome, Outcome::kWrongOutput);
  EXPECT_EQ(r.verdict.stopped_at, Stage::kFullRun);
  EXPECT_EQ(poisons.size(), 3u);
  EXPECT_EQ(manners, (std::set<uint64_t>{0, 1, 2}));
}

TEST(Stages, ChangedInputsAndGuards) {
  auto with = [](const char* key, Json value) {
    return lying("interpret", [=](const Job& job, const std::string& nonce) {
      if (!has_launches(job)) return honest_answer(job, nonce);
      Json header = {{"nonce", nonce},
                     {"ok", true},
                     {"outputs", ref("float32", 0, 16)},
                     {"inputs_after", Json::array({nullptr})},
                     {"kept", Json::array()},
                     {"programs", 1},
                     {"guards_broken", Json::array()}};
      header[key] = value;
      return exited(header, bytes_of(kExpected));
    });
  };
  Verdict changed = run(with("inputs_after", Json::array({ref("float32", 0, 16)}))).verdict;
  EXPECT_EQ(changed.outcome, Outcome::kWrongOutput);
  EXPECT_NE(changed.reason().find("input 0"), std::string::npos);
  EXPECT_EQ(run(with("guards_broken", Json::array({1}))).verdict.outcome, Outcome::kWrongOutput);
  EXPECT_EQ(run(with("inputs_after", Json::array())).verdict.outcome, Outcome::kTampered);
  EXPECT_EQ(run(with("verdict", "pass")).verdict.outcome, Outcome::kTampered);
}

TEST(Stages, ForgedTraces) {
  auto outcome = [](const std::function<void(TraceFile&)>& damage) {
    return run(lying("record",
                     [=](const Job& job, const std::string& nonce) {
                       TraceFile file = trace(job.args);
                       damage(file);
                       return record_answer(nonce, file);
                     }))
        .verdict.outcome;
  };
  using File = TraceFile;
  EXPECT_EQ(outcome([](File&) {}), Outcome::kPass);
  EXPECT_EQ(outcome([](File& f) { f.cases.pop_back(); }), Outcome::kTampered);
  EXPECT_EQ(outcome([](File& f) { f.cases.push_back(small_trace("more", {4})); }), Outcome::kTampered);
  EXPECT_EQ(outcome([](File& f) { std::swap(f.cases[0], f.cases[1]); }), Outcome::kTampered);
  EXPECT_EQ(outcome([](File& f) { f.cases[0].inputs.clear(); }), Outcome::kTampered);
  EXPECT_EQ(outcome([](File& f) { f.cases[0].values[0] = trace_value(0, {2}); }), Outcome::kTampered);
  EXPECT_EQ(outcome([](File& f) { f.cases[0].values[0].dtype = Dtype::kInt32; }), Outcome::kTampered);
  EXPECT_EQ(outcome([](File& f) { f.cases[0].tape[1].choices[0].spec = -1; }), Outcome::kTampered);
  EXPECT_EQ(outcome([](File& f) { f.specs.clear(); }), Outcome::kTampered);
  EXPECT_EQ(outcome([](File& f) {  // A cubin that we did not compile.
              f.cubins = file_of({}).cubins;
              f.cases[0].tape[1].choices[0].cubin = 0;
            }),
            Outcome::kTampered);
  // Work that is said to have been done before forward().
  EXPECT_EQ(outcome([](File& f) { f.cases[0].init_steps = 1; }), Outcome::kTampered);
  EXPECT_EQ(outcome([](File& f) {
              f.cases[0].values.push_back(trace_value(2, {4}));
              f.cases[0].tape.insert(f.cases[0].tape.begin(), call_step("aten.rand.default", {}, 2));
              f.cases[0].input_steps = 1;
            }),
            Outcome::kTampered);
  EXPECT_EQ(outcome([](File& f) {
              f.cases[0].parameters.resize(1);
              f.cases[0].parameters[0].name = "no value";
            }),
            Outcome::kTampered);
  auto blob = [](const Json& header, const std::string& tail) {
    return run(lying("record",
                     [=](const Job& job, const std::string& nonce) {
                       Json own = {{"nonce", nonce}, {"ok", true}};
                       own.update(header);
                       return exited(own, write_trace_file(trace(job.args)) + tail);
                     }))
        .verdict.outcome;
  };
  EXPECT_EQ(blob(Json::object(), ""), Outcome::kPass);
  EXPECT_EQ(blob({{"outcome", "pass"}}, ""), Outcome::kTampered);
  EXPECT_EQ(blob(Json::object(), "more"), Outcome::kTampered);
}

TEST(Stages, CompileJobsDecideTheCompileStage) {
  auto verdict = [](const FakePool::Answer& answer) { return run(lying("compile", answer)).verdict; };
  auto failing = [](const char* outcome) {
    return [=](const Job&, const std::string& nonce) {
      return failure(nonce, outcome, "candidate.py:7 in k: no such thing");
    };
  };
  Verdict wrong = verdict(failing("compile_error"));
  EXPECT_EQ(wrong.outcome, Outcome::kCompileError);
  EXPECT_EQ(wrong.stopped_at, Stage::kCompile);
  EXPECT_NE(wrong.reason().find("candidate.py:7"), std::string::npos);
  EXPECT_EQ(verdict([](const Job&, const std::string& nonce) { return record_answer(nonce, TraceFile()); }).outcome,
            Outcome::kTampered);
  EXPECT_EQ(verdict([](const Job&, const std::string&) { return JobAnswer{}; }).outcome, Outcome::kHarnessFault);
  EXPECT_EQ(verdict([](const Job& job, const std::string& nonce) {
              EXPECT_EQ(job.args["kernels"].size(), 1u);
              EXPECT_EQ(job.args["spec"]["kernel"], 0);
              return compile_answer(nonce);
            }).outcome,
            Outcome::kPass);
}

TEST(Stages, TheInterpreterGetsTheTraceAndTheJudgesTensors) {
  auto answer = lying("interpret", [](const Job& job, const std::string& nonce) {
    auto size = job.args["trace"].get<size_t>();
    auto file = parse_trace_file(std::make_shared<const std::string>(job.payload.substr(0, size)));
    EXPECT_TRUE(file) << file.why;
    EXPECT_NE(file.value->find(job.args["case"].get<std::string>()), nullptr);
    auto tensors = job.args["tensors"].get<size_t>();
    EXPECT_GE(tensors, size);
    EXPECT_EQ(tensors % 16, 0u);
    BlobView x = tensor_from(job.args["inputs"][0], std::string_view(job.payload).substr(tensors));
    EXPECT_EQ(x.bytes, bytes_of(kInput));
    return honest_answer(job, nonce);
  });
  EXPECT_EQ(run(answer).verdict.outcome, Outcome::kPass);
}

TEST(Stages, CallRulesDecideOnLibraryCalls) {
  auto answer = lying("record", [](const Job& job, const std::string& nonce) {
    TraceFile file = trace(job.args);
    for (CaseTrace& trace : file.cases) {
      trace.tape.push_back(call_step("aten.mul_.Tensor", {1}, 1));
      trace.tape.back().args.push_back(float_arg(1));
    }
    return record_answer(nonce, file);
  });
  Trial strict = run(answer);
  EXPECT_EQ(strict.verdict.outcome, Outcome::kRuleBreak);
  EXPECT_EQ(strict.verdict.stopped_at, Stage::kCompile);
  VerifyConfig config;
  config.call_rules = CallRules::kMixed;
  Trial mixed = run(answer, candidate(), config);
  EXPECT_EQ(mixed.verdict.outcome, Outcome::kPass) << mixed.verdict.reason();
  EXPECT_EQ(mixed.verdict.delegated_ops, std::vector<std::string>{"aten.mul_.Tensor"});
}

}  // namespace
}  // namespace tritonrl::stages_test

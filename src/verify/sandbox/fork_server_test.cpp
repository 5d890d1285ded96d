// SPDX-License-Identifier: Apache-2.0
// Our end of the wire against fork servers that crash, hang, garble and lie: every job gets an answer, never a wrong
// one.
#include "verify/sandbox/fork_server.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "support/fake_worker.h"

namespace tritonrl::fork_server_test {
namespace {

using Status = JobAnswer::Status;

void honest(const FakeForkServerEnd& end) {
  end.ready();
  for (Json job = end.hear(); job.is_object() && job["type"] == "job"; job = end.hear()) {
    end.done(job, cat("result of ", job["args"]["name"].get<std::string>()));
  }
}

Job job(const std::string& name, double deadline_s = 5) {
  Job out{"record", {{"name", name}}, "payload"};
  out.deadline_s = out.patience_s = deadline_s;
  return out;
}

// Processes of a group that have not ended (whoever adopted them may be slow to reap).
int alive_in(pid_t group) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (!std::isdigit(static_cast<unsigned char>(entry.path().filename().string()[0]))) continue;
    std::ifstream file(entry.path() / "stat");
    std::string text((std::istreambuf_iterator<char>(file)), {});
    char state = 0;
    int parent = 0, pgrp = 0;
    size_t name_end = text.rfind(')');
    if (name_end == std::string::npos) continue;
    if (std::sscanf(text.c_str() + name_end + 1, " %c %d %d", &state, &parent, &pgrp) != 3) continue;
    count += pgrp == group && state != 'Z' && state != 'X';
  }
  return count;
}

std::unique_ptr<ForkServerPool> pool_of(FakeForkServers& servers) {
  return ForkServerPool::open([&](ForkServerKind) { return servers.start(); }, 5);
}

// The first two fork servers (of both kinds) run `script`, later ones are honest.
std::vector<FakeForkServers::Script> then_honest(const FakeForkServers::Script& script) {
  return {script, script, honest};
}

TEST(ForkServer, AnswersManyJobsInAnyOrder) {
  FakeForkServers servers({[](const FakeForkServerEnd& end) {
    end.ready();
    std::vector<Json> jobs;
    for (int i = 0; i < 3; ++i) jobs.push_back(end.hear());
    for (size_t i = jobs.size(); i-- > 0;)
      end.done(jobs[i], cat("result of ", jobs[i]["args"]["name"].get<std::string>()));
    end.hear();
  }});
  auto server = ForkServer::attach(servers.start(), 5);
  auto a = server->submit(job("a")), b = server->submit(job("b")), c = server->submit(job("c"));
  EXPECT_EQ(a.get().result, "result of a");
  EXPECT_EQ(b.get().result, "result of b");
  JobAnswer last = c.get();
  EXPECT_EQ(last.result, "result of c");
  EXPECT_EQ(last.status, Status::kExited);
}

TEST(ForkServer, JobsTravelWhole) {
  std::string large(10 << 20, 'p'), seen;
  Json header;
  FakeForkServers servers({[&](const FakeForkServerEnd& end) {
    end.ready();
    header = end.hear(&seen);
    end.done(header, "ok");
    end.hear();
  }});
  auto server = ForkServer::attach(servers.start(), 5);
  Job big = job("a", 7);
  big.payload = large;
  big.memory_bytes = 123;
  JobAnswer answer = server->submit(big).get();
  EXPECT_EQ(seen, large);
  EXPECT_EQ(header["job"], "record");
  EXPECT_EQ(header["deadline_s"], 7);
  EXPECT_EQ(header["memory_bytes"], 123);
  EXPECT_EQ(header["nonce"], answer.nonce);
  EXPECT_EQ(answer.nonce.size(), 32u);
}

TEST(ForkServer, DoesNotStart) {
  FakeForkServers silent({[](const FakeForkServerEnd& end) { end.hear(); }});
  EXPECT_THROW(ForkServer::attach(silent.start(), 0.1), Error);
  FakeForkServers gone({[](const FakeForkServerEnd&) {}});
  EXPECT_THROW(ForkServer::attach(gone.start(), 5), Error);
  FakeForkServers babbling({[](const FakeForkServerEnd& end) { end.say("hello, this is Python\n"); }});
  EXPECT_THROW(ForkServer::attach(babbling.start(), 5), Error);
  EXPECT_THROW(spawn_fork_server({"/nowhere/jail"}), Error);
}

TEST(ForkServer, ErrorOfAFailedStartHoldsWhatItSaid) {
  try {
    ForkServer::attach(spawn_fork_server({"/bin/sh", "-c", "echo torch is broken >&2; exit 1"}), 10);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("torch is broken"), std::string::npos) << error.message();
    EXPECT_EQ(error.exit_code(), 3);
  }
}

TEST(ForkServer, ProcessGroupDiesWithIt) {
  Connection connection = spawn_fork_server(
      {"/bin/sh", "-c", "printf '\\020\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0{\"type\":\"ready\"}' >&3; sleep 1000 & wait"});
  pid_t group = connection.process;
  EXPECT_GT(alive_in(group), 0);
  { auto server = ForkServer::attach(connection, 10); }
  for (int i = 0; i < 200 && alive_in(group) > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(alive_in(group), 0);
}

struct Lie {
  const char* name;
  FakeForkServers::Script script;
};

// Each of these loses the job at hand, says why, and the next job is done by a new server.
TEST(ForkServer, LiesLoseTheJobAndNothingElse) {
  const Lie lies[] = {
      {"crash", [](const FakeForkServerEnd& end) { end.ready(), end.hear(); }},
      {"garbage", [](const FakeForkServerEnd& end) { end.ready(), end.hear(), end.say(std::string(1000, '\xee')); }},
      {"half a frame",
       [](const FakeForkServerEnd& end) {
         end.ready();
         Json heard = end.hear();
         std::string whole = frame_bytes({{"type", "done"}, {"id", heard["id"]}, {"status", "exited"}}, "0123456789");
         end.say(whole.substr(0, whole.size() - 4));
       }},
      {"wrong id",
       [](const FakeForkServerEnd& end) {
         end.ready();
         end.hear();
         end.done({{"id", 999}}, "forged");
         end.hear();
       }},
      {"no JSON",
       [](const FakeForkServerEnd& end) {
         end.ready(), end.hear(), end.say(std::string("\3\0\0\0\0\0\0\0\0\0\0\0abc", 15));
       }},
      {"unknown status",
       [](const FakeForkServerEnd& end) {
         end.ready();
         end.done(end.hear(), "x", "passed");
         end.hear();
       }},
      {"a payload of 2^60 bytes",
       [](const FakeForkServerEnd& end) {
         end.ready();
         end.hear();
         end.say(std::string("\2\0\0\0\0\0\0\0\0\0\0\x10{}", 14));
         end.hear();
       }},
  };
  for (const Lie& lie : lies) {
    FakeForkServers servers(then_honest(lie.script));
    auto pool = pool_of(servers);
    JobAnswer lost = pool->run(ForkServerKind::kRecord, job("first"));
    EXPECT_EQ(lost.status, Status::kLost) << lie.name;
    EXPECT_FALSE(lost.fault.empty()) << lie.name;
    EXPECT_EQ(lost.result, "") << lie.name;
    JobAnswer next = pool->run(ForkServerKind::kRecord, job("second"));
    EXPECT_EQ(next.status, Status::kExited) << lie.name;
    EXPECT_EQ(next.result, "result of second") << lie.name;
    EXPECT_EQ(pool->restarts(), 1) << lie.name;
  }
}

TEST(ForkServer, HangingIsNoticedFromOutside) {
  FakeForkServers servers(then_honest([](const FakeForkServerEnd& end) {
    end.ready();
    while (end.hear().is_object()) {
    }
  }));
  auto pool = pool_of(servers);
  pool->set_grace_s(0.2);
  double start = now_s();
  EXPECT_EQ(pool->run(ForkServerKind::kRecord, job("first", 0.2)).status, Status::kLost);
  EXPECT_LT(now_s() - start, 3);
  EXPECT_EQ(pool->run(ForkServerKind::kRecord, job("second")).result, "result of second");
}

TEST(ForkServer, AnswersTwice) {
  FakeForkServers servers(then_honest([](const FakeForkServerEnd& end) {
    end.ready();
    Json first = end.hear();
    end.done(first, "one");
    end.done(first, "two");
    end.hear();
  }));
  auto pool = pool_of(servers);
  EXPECT_EQ(pool->run(ForkServerKind::kRecord, job("a")).result, "one");
  // Whether the second answer is noticed before or after the next job goes out, that job is never given "two".
  JobAnswer next = pool->run(ForkServerKind::kRecord, job("b"));
  EXPECT_TRUE(next.status == Status::kLost || next.result == "result of b") << next.result;
}

TEST(ForkServer, OneLostForkServerLosesAllItsJobsButNoOther) {
  FakeForkServers servers({[](const FakeForkServerEnd& end) {
    end.ready();
    for (int i = 0; i < 4; ++i) end.hear();
  }});
  auto server = ForkServer::attach(servers.start(), 5);
  std::vector<std::future<JobAnswer>> futures;
  for (int i = 0; i < 4; ++i) futures.push_back(server->submit(job("j")));
  for (auto& future : futures) EXPECT_EQ(future.get().status, Status::kLost);
  EXPECT_EQ(server->submit(job("late")).get().status, Status::kLost);
}

TEST(ForkServer, OversizedJobIsLostWithoutHarm) {
  FakeForkServers servers({honest});
  auto pool = pool_of(servers);
  EXPECT_EQ(pool->run(ForkServerKind::kRecord, job(std::string(2 << 20, 'x'))).status, Status::kLost);
  EXPECT_EQ(pool->run(ForkServerKind::kRecord, job("a")).result, "result of a");
  EXPECT_EQ(pool->restarts(), 0);
}

}  // namespace
}  // namespace tritonrl::fork_server_test

// SPDX-License-Identifier: Apache-2.0
// The sandbox, from the inside: a Python child goes through jail, monitor and enter, and then tries each thing it must
// not be able to do. One property per test.
#include "verify/sandbox/sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <set>

#include "base/error.h"
#include "base/files/json.h"
#include "base/log.h"
#include "base/process/build_paths.h"
#include "base/text.h"
#include "verify/sandbox/fork_server.h"

namespace tritonrl::sandbox_test {
namespace {

namespace fs = std::filesystem;

// Plays fork server, monitor and job; the body under test sees `out` (a dict) and must fill it.
constexpr const char* kHarness = R"(
import ctypes, json, os, signal, socket, sys, time, errno, resource, mmap
lib = ctypes.CDLL(sys.argv[1])
lib.tritonrl_sandbox_enter.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int, ctypes.c_int, ctypes.c_int]
os.environ_before = dict(os.environ)
secret = open('/tmp/secret_of_the_fork_server', 'w'); secret.write('x'); secret.flush()
def attempt(fn):
    try:
        fn()
        return 'done'
    except MemoryError: return 'MemoryError'
    except OSError as e: return errno.errorcode[e.errno]
read_end, write_end = os.pipe()
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
monitor = os.fork()
if monitor == 0:
    signal.signal(signal.SIGUSR1, lambda *_: os._exit(77))
    rc = lib.tritonrl_sandbox_monitor()
    if rc: print('monitor', rc, flush=True); os._exit(1)
    job = os.fork()
    if job == 0:
        rc = lib.tritonrl_sandbox_enter(256 << 20, 16 << 20, write_end, -1, 20)
        out = {'enter': rc}
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        body = sys.argv[2]
        try: exec(body)
        except BaseException as e: out['raised'] = repr(e)
        os.write(write_end, json.dumps(out).encode())
        os._exit(0)
    os.close(write_end)
    _, status = os.waitpid(job, 0)
    os._exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
os.close(write_end)
data = b''
while chunk := os.read(read_end, 65536): data += chunk
_, status = os.waitpid(monitor, 0)
out = {'status': os.WEXITSTATUS(status), **json.loads(data or b'{}')}
os.write(1, b'RESULT' + json.dumps(out).encode() + b'END')
)";

Json inside(const std::string& body) {
  SandboxFiles files = find_sandbox_files();
  std::string library = fs::canonical(files.library).string();
  Connection process = spawn_fork_server(
      jail_command(files, false, python_program(), {}, {"-I", "-S", "-B", "-c", kHarness, library, body}));
  std::string said;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(process.stderr_fd, buffer, sizeof buffer)) > 0;) said.append(buffer, n);
  int status = 0;
  waitpid(process.process, &status, 0);
  ::close(process.fd);
  ::close(process.stderr_fd);
  size_t begin = said.find("RESULT"), end = said.rfind("END");
  EXPECT_NE(begin, std::string::npos) << said;
  if (begin == std::string::npos) return Json::object();
  Json out = Json::parse(said.substr(begin + 6, end - begin - 6), nullptr, false);
  EXPECT_TRUE(out.is_object()) << said;
  EXPECT_FALSE(out.contains("raised")) << out.dump();
  return out;
}

bool complete() {
  static const bool value = missing_protections(probe_sandbox(find_sandbox_files())).empty();
  return value;
}

class Sandbox : public testing::Test {
  void SetUp() override {
    if (!complete()) GTEST_SKIP() << "this machine cannot put up the whole sandbox";
  }
};

TEST_F(Sandbox, StandsAndSaysSo) {
  Json out = inside(
      "lib.tritonrl_sandbox_missing.restype = ctypes.c_char_p\n"
      "out['missing'] = lib.tritonrl_sandbox_missing().decode()");
  EXPECT_EQ(out["enter"], 0);
  EXPECT_EQ(out["missing"], "");
}

TEST_F(Sandbox, NoNetwork) {
  Json out = inside(
      "out['inet'] = attempt(lambda: socket.socket())\n"
      "out['unix'] = attempt(lambda: socket.socket(socket.AF_UNIX))\n"
      "out['netlink'] = attempt(lambda: socket.socket(16, 3, 0))\n"
      "out['pair'] = attempt(lambda: socket.socketpair())");
  for (const char* key : {"inet", "unix", "netlink", "pair"}) EXPECT_EQ(out[key], "EPERM") << key;
}

TEST_F(Sandbox, ReadOnlyRootWithoutHomes) {
  Json out = inside(
      "out['usr'] = attempt(lambda: open('/usr/x', 'w'))\n"
      "out['root'] = attempt(lambda: open('/x', 'w'))\n"
      "out['dev'] = attempt(lambda: open('/dev/x', 'w'))\n"
      "out['lib'] = attempt(lambda: open(sys.argv[1], 'ab'))\n"
      "out['names'] = sorted(os.listdir('/'))\n"
      "out['home'] = attempt(lambda: os.listdir('/home'))\n"
      "out['shadow'] = attempt(lambda: open('/etc/shadow'))\n"
      "out['devices'] = sorted(os.listdir('/dev'))\n"
      "out['null'] = attempt(lambda: open('/dev/null', 'w').write('x'))");
  for (const char* key : {"usr", "root", "dev", "lib"}) {  // A library under /tmp is not even there.
    bool hidden = out[key] == "ENOENT" && std::string(key) == "lib";
    EXPECT_TRUE(hidden || out[key] == "EROFS" || out[key] == "EACCES" || out[key] == "EPERM") << key << " " << out[key];
  }
  EXPECT_EQ(out["home"], "ENOENT");
  EXPECT_EQ(out["shadow"], "ENOENT");
  EXPECT_EQ(out["devices"], (Json{"full", "null", "random", "urandom", "zero"}));  // No GPU among them.
  EXPECT_EQ(out["null"], "done");
}

TEST_F(Sandbox, PrivateTmpOfLimitedSize) {
  Json out = inside(
      "out['before'] = os.listdir('/tmp')\n"
      "out['small'] = attempt(lambda: open('/tmp/a', 'wb').write(b'0' * (4 << 20)))\n"
      "out['big'] = attempt(lambda: open('/tmp/b', 'wb', buffering=0).write(b'0' * (15 << 20)))\n"
      "out['many'] = attempt(lambda: open('/tmp/c', 'wb').write(b'0' * (15 << 20)))\n"
      "open('/tmp/p', 'w').write('#!/bin/sh\\n'); os.chmod('/tmp/p', 0o755)\n"
      "out['run'] = attempt(lambda: os.execv('/tmp/p', ['p']))\n");
  EXPECT_EQ(out["before"], Json::array());  // Nothing of the fork server's or of other jobs.
  EXPECT_EQ(out["small"], "done");
  EXPECT_EQ(out["many"], "ENOSPC");
  EXPECT_EQ(out["run"], "EACCES");
}

TEST_F(Sandbox, SeesNoOtherProcess) {
  Json out = inside(
      "out['pid'] = os.getpid()\n"
      "out['proc'] = [n for n in os.listdir('/proc') if n.isdigit()]\n"
      "out['kill'] = attempt(lambda: os.kill(2, 0))\n"
      "out['init'] = attempt(lambda: open('/proc/1/environ').read() if os.getpid() != 1 else None)");
  EXPECT_EQ(out["pid"], 1);
  EXPECT_EQ(out["proc"], Json{"1"});
  EXPECT_EQ(out["kill"], "ESRCH");
}

TEST_F(Sandbox, SignalsToItsGroupStayInside) {
  Json out = inside(
      "out['group'] = os.getpgrp()\n"
      "out['session'] = os.getsid(0)\n"
      "os.kill(0, signal.SIGUSR1)\n"
      "out['all'] = attempt(lambda: os.kill(-1, signal.SIGUSR1))\n"
      "time.sleep(0.1)");
  EXPECT_EQ(out["group"], 1);
  EXPECT_EQ(out["session"], 1);
  EXPECT_EQ(out["status"], 0);  // 77 when the monitor heard it.
}

TEST_F(Sandbox, ForkBombIsBoundedAndDiesWithTheJob) {
  double start = now_s();
  Json out = inside(
      "n = 0\n"
      "try:\n"
      "    while True:\n"
      "        if os.fork() == 0: time.sleep(1000)\n"
      "        n += 1\n"
      "except OSError as e: out['error'] = errno.errorcode[e.errno]\n"
      "out['children'] = n");
  EXPECT_EQ(out["error"], "EAGAIN");
  EXPECT_GE(out["children"].get<int>(), 8);
  EXPECT_LE(out["children"].get<int>(), 16);
  EXPECT_LT(now_s() - start, 60);  // Nobody waited for the children.
}

TEST_F(Sandbox, MemoryIsLimited) {
  Json out = inside(
      "out['fits'] = attempt(lambda: bytearray(100 << 20))\n"
      "out['large'] = attempt(lambda: bytearray(400 << 20))\n"
      "out['mapped'] = attempt(lambda: mmap.mmap(-1, 400 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))\n"
      "out['shared'] = attempt(lambda: mmap.mmap(-1, 1 << 20))\n"
      "out['memfd'] = attempt(lambda: os.memfd_create('x'))\n"
      "out['lower'] = attempt(lambda: open('/proc/self/oom_score_adj', 'w').write('0'))\n"
      "out['oom_score'] = open('/proc/self/oom_score_adj').read().strip()");
  EXPECT_EQ(out["fits"], "done");
  EXPECT_EQ(out["large"], "MemoryError");
  EXPECT_EQ(out["mapped"], "ENOMEM");
  EXPECT_NE(out["shared"], "done");
  EXPECT_NE(out["memfd"], "done");
  EXPECT_NE(out["lower"], "done");
  EXPECT_EQ(out["oom_score"], "1000");  // The kernel takes a job first when the machine runs out.
}

TEST_F(Sandbox, SystemCallsAreFiltered) {
  Json out = inside(
      "libc = ctypes.CDLL(None, use_errno=True)\n"
      "def call(*a):\n"
      "    ctypes.set_errno(0)\n"
      "    return errno.errorcode.get(ctypes.get_errno(), '0') if libc.syscall(*a) < 0 else 'done'\n"
      "out['ptrace'] = call(101, 0, 0, 0, 0)\n"
      "out['process_vm_readv'] = call(310, 1, 0, 0, 0, 0, 0)\n"
      "out['mount'] = call(165, 0, 0, 0, 0, 0)\n"
      "out['unshare_user'] = call(272, 0x10000000)\n"
      "out['clone_user'] = call(56, 0x10000000 | 17, 0, 0, 0, 0)\n"
      "out['clone3'] = call(435, 0, 0)\n"
      "out['setns'] = call(308, 0, 0)\n"
      "out['bpf'] = call(321, 0, 0, 0)\n"
      "out['perf_event_open'] = call(298, 0, 0, 0, 0, 0)\n"
      "out['keyctl'] = call(250, 0, 0, 0, 0, 0)\n"
      "out['io_uring_setup'] = call(425, 1, 0)\n"
      "out['userfaultfd'] = call(323, 0)\n"
      "out['kexec_load'] = call(246, 0, 0, 0, 0)\n"
      "out['execveat'] = call(322, 0, 0, 0, 0, 0)\n"
      "out['setsid'] = call(112)\n"
      "out['setpgid'] = call(109, 0, 0)\n"
      "out['pdeathsig'] = call(157, 1, 0, 0, 0, 0)\n"
      "out['future'] = call(600)\n");
  for (const auto& [name, result] : out.items()) {
    if (name == "enter" || name == "status") continue;
    EXPECT_TRUE(result == "EPERM" || result == "ENOSYS") << name << " " << result;
  }
}

TEST_F(Sandbox, NoPrivilegesNoSecretsNoDescriptors) {
  setenv("SECRET_OF_THE_VERIFIER", "1", 1);
  Json out = inside(
      "status = dict(l.split(':', 1) for l in open('/proc/self/status') if ':' in l)\n"
      "out['caps'] = [status[k].strip() for k in ('CapPrm', 'CapEff', 'CapBnd', 'CapAmb')]\n"
      "out['no_new_privs'] = status['NoNewPrivs'].strip()\n"
      "out['setuid'] = attempt(lambda: os.setuid(0))\n"
      "fds = []\n"
      "for fd in range(3, 200):\n"
      "    try: os.fstat(fd); fds.append(fd)\n"
      "    except OSError: pass\n"
      "out['descriptors'] = len(fds)\n"
      "out['core'] = resource.getrlimit(resource.RLIMIT_CORE)[0]\n"
      "out['environment'] = sorted(os.environ_before)");
  for (const Json& caps : out["caps"]) EXPECT_EQ(caps, "0000000000000000");
  EXPECT_EQ(out["no_new_privs"], "1");
  EXPECT_EQ(out["setuid"], "EPERM");
  EXPECT_EQ(out["descriptors"], 1);  // The one to keep.
  EXPECT_EQ(out["core"], 0);
  for (const Json& name : out["environment"]) {
    EXPECT_EQ(name.get<std::string>().find("PYTHON"), std::string::npos) << name;
  }
  EXPECT_EQ(out["environment"].dump().find("SECRET_OF_THE_VERIFIER"), std::string::npos);
}

TEST_F(Sandbox, SubprocessesWork) {  // Triton's compiler runs ptxas.
  Json out = inside(
      "import subprocess\n"
      "out['said'] = subprocess.run(['/bin/echo', 'hello'], capture_output=True, text=True).stdout");
  EXPECT_EQ(out["said"], "hello\n");
}

TEST_F(Sandbox, ProcessorTimeIsLimited) {
  Json out = inside("out['limit'] = resource.getrlimit(resource.RLIMIT_CPU)[0]");
  EXPECT_EQ(out["limit"], 20);
}

TEST(SandboxProbe, ListsEveryLayerOnce) {
  auto protections = probe_sandbox(find_sandbox_files());
  std::set<std::string> names;
  for (const Protection& protection : protections) {
    EXPECT_TRUE(names.insert(protection.name).second) << protection.name;
    EXPECT_EQ(protection.active, protection.reason.empty()) << protection.name;
  }
  for (const char* name : {"private_root", "no_network", "seccomp", "memory_limit", "process_limit", "no_privileges"}) {
    EXPECT_TRUE(names.count(name)) << name;
  }
}

TEST(SandboxProbe, MissingLayersAreNamed) {
  std::vector<Protection> protections = {{"seccomp", false, "no"}, {"no_network", true, ""}};
  EXPECT_EQ(missing_protections(protections), std::vector<std::string>{"seccomp"});
  protections = {{"landlock", false, "no"}};
  for (const char* name : {"private_root", "read_only_root", "private_tmp", "private_proc", "no_privileges"}) {
    EXPECT_EQ(missing_protections(protections), std::vector<std::string>{"landlock"}) << "without " << name;
    protections.push_back({name, true, ""});
  }
  EXPECT_TRUE(missing_protections(protections).empty());
}

TEST(SandboxProbe, JailRefusesBadUse) {
  SandboxFiles files = find_sandbox_files();
  EXPECT_THROW(jail_command(files, false, "/nowhere/bin/python", {}, {}), Error);
  EXPECT_EQ(WEXITSTATUS(std::system((files.jail.string() + " 2>/dev/null").c_str())), 2);
  EXPECT_EQ(WEXITSTATUS(std::system((files.jail.string() + " --open 2>/dev/null").c_str())), 2);
}

}  // namespace
}  // namespace tritonrl::sandbox_test

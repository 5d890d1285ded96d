// SPDX-License-Identifier: Apache-2.0
// tritonrl_jail: the outer jail. Runs a program (a fork server) where there is nothing to steal and nobody to harm.
//
//   tritonrl_jail [--weak] [--bind PATH]... -- PROGRAM ARGUMENTS...
//   tritonrl_jail [--weak] --probe          prints one line a protection: name, "yes" or "no", reason (tab separated)
//
// New PID, mount, network, IPC and UTS namespaces (and a user namespace); a new root folder in memory that shows
// /usr, the paths given by --bind (all read-only), five device nodes, its own /proc and /tmp, and nothing else: no home
// folders, no GPU. Then another identity, no capabilities, a clean environment. Descriptors 0 to 3 are handed on.
// --weak continues where a protection cannot be had; the names of what is missing go to the program in
// TRITONRL_SANDBOX_MISSING. Exit code: the program's, or 125 when the jail could not be built (reason on stderr).
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "verify/sandbox/sandbox_abi.h"

namespace {

constexpr int kExitNoJail = 125;
constexpr uid_t kOuterId = 947213;  // Who the program is outside its user namespace when root starts the jail.
constexpr uid_t kInnerId = 1000;
constexpr const char* kStage = "/mnt";  // Where the new root is put together, in our own mount namespace.

bool weak = false;
std::vector<std::string> missing;

// A protection is missing: continues under --weak, ends otherwise.
void miss(const std::string& name, const std::string& step) {
  int error = errno;
  for (const auto& known : missing) {
    if (known == name) return;
  }
  missing.push_back(name);
  if (weak) return;
  fprintf(stderr, "tritonrl_jail: %s is not possible here (%s: %s)\n", name.c_str(), step.c_str(), strerror(error));
  exit(kExitNoJail);
}

bool write_text(const std::string& path, const std::string& text) {
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  bool ok = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  return close(fd) == 0 && ok;
}

bool map_ids(uid_t inner, uid_t uid, gid_t gid) {
  auto line = [&](unsigned outer) { return std::to_string(inner) + " " + std::to_string(outer) + " 1"; };
  write_text("/proc/self/setgroups", "deny");
  return write_text("/proc/self/uid_map", line(uid)) && write_text("/proc/self/gid_map", line(gid));
}

void make_folders(const std::string& path) {
  for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    mkdir(path.substr(0, at).c_str(), 0755);
  }
}

struct MountAttributes {
  uint64_t set, clear, propagation, user_namespace;
};

bool restrict_mount(const std::string& target, bool recursive, unsigned long flags) {
  uint64_t set = 1;  // MOUNT_ATTR_RDONLY, NOSUID, NODEV, NOEXEC.
  if (flags & MS_NOSUID) set |= 2;
  if (flags & MS_NODEV) set |= 4;
  if (flags & MS_NOEXEC) set |= 8;
  MountAttributes attributes{set, 0, 0, 0};
  constexpr long mount_setattr = 442;
  if (syscall(mount_setattr, AT_FDCWD, target.c_str(), recursive ? 0x8000 : 0, &attributes, sizeof attributes) == 0) {
    return true;
  }
  return mount(nullptr, target.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | flags, nullptr) == 0;
}

// Shows `source` at the same path in the new root, read-only. A path that does not exist is left out.
bool show(const std::string& source, unsigned long flags) {
  struct stat info {};
  if (lstat(source.c_str(), &info) != 0) return true;
  std::string target = kStage + source;
  make_folders(target);
  if (S_ISLNK(info.st_mode)) {
    char link[4096];
    ssize_t n = readlink(source.c_str(), link, sizeof link - 1);
    if (n < 0) return false;
    link[n] = 0;
    return symlink(link, target.c_str()) == 0 || errno == EEXIST;
  }
  if (S_ISDIR(info.st_mode)) {
    mkdir(target.c_str(), 0755);
  } else if (!write_text(target, "")) {
    return false;
  }
  return mount(source.c_str(), target.c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0 &&
         restrict_mount(target, S_ISDIR(info.st_mode), flags);
}

// Builds the new root and moves into it. False (with errno and *step) when a step fails.
bool build_root(const std::vector<std::string>& binds, std::string* step) {
  auto at = [&](const std::string& what) { return *step = what, true; };
  if (at("mount private") && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  std::string root = kStage;
  if (at("mount tmpfs") && mount("tmpfs", kStage, "tmpfs", MS_NOSUID, "size=16m,mode=0755") != 0) return false;
  for (const char* folder : {"/tmp", "/proc", "/etc", "/.old"}) mkdir((root + folder).c_str(), 0755);
  unsigned long flags = MS_NOSUID | MS_NODEV;
  if (at("mount /tmp") && mount("tmpfs", (root + "/tmp").c_str(), "tmpfs", flags, "size=64m,mode=1777") != 0)
    return false;
  std::vector<std::string> shown = {
      "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/ld.so.cache", "/sys/devices/system/cpu"};
  shown.insert(shown.end(), binds.begin(), binds.end());
  for (const auto& path : shown) {
    if (at("bind " + path) && !show(path, flags)) return false;
  }
  for (const char* node : {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}) {
    if (at(std::string("bind ") + node) && !show(node, MS_NOSUID | MS_NOEXEC)) return false;
  }
  write_text(root + "/etc/passwd", "worker:x:1000:1000::/tmp:/bin/false\n");
  write_text(root + "/etc/group", "worker:x:1000:\n");
  if (mount("proc", (root + "/proc").c_str(), "proc", flags | MS_NOEXEC, nullptr) != 0) {
    // Containers that mask parts of /proc forbid new ones. The jobs then see an empty folder.
    if (at("mount /proc") && mount("/proc", (root + "/proc").c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
      return false;
  }
  if (at("pivot_root") && syscall(SYS_pivot_root, kStage, (root + "/.old").c_str()) != 0) return false;
  if (chdir("/") != 0 || umount2("/.old", MNT_DETACH) != 0) return false;
  rmdir("/.old");
  return at("read-only root") && restrict_mount("/", false, MS_NOSUID | MS_NODEV);
}

void become_nobody(bool in_user_namespace) {
  if (!in_user_namespace && geteuid() == 0) {
    // Root: another identity first, then a user namespace in which even that one is somebody else.
    bool changed = setgroups(0, nullptr) == 0 && setresgid(kOuterId, kOuterId, kOuterId) == 0 &&
                   setresuid(kOuterId, kOuterId, kOuterId) == 0;
    if (!changed) miss("no_privileges", "setresuid");
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // Cleared by the change; without it our own /proc files belong to root.
    uid_t uid = geteuid();
    gid_t gid = getegid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 || !map_ids(kInnerId, uid, gid)) miss("user_namespace", "unshare");
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  syscall(SYS_capset, &header, none);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
}

void clean_environment() {
  std::string weak_flag = weak ? "1" : "0", names;
  for (const auto& name : missing) names += (names.empty() ? "" : ",") + name;
  clearenv();
  const char* fixed[][2] = {{"PATH", "/usr/bin:/bin"},
                            {"HOME", "/tmp"},
                            {"TMPDIR", "/tmp"},
                            {"LANG", "C.UTF-8"},
                            {"USER", "worker"},
                            {"LOGNAME", "worker"},
                            {"OMP_NUM_THREADS", "1"},
                            {"MKL_NUM_THREADS", "1"},
                            {"OPENBLAS_NUM_THREADS", "1"},
                            {"TRITON_CACHE_DIR", "/tmp/triton"},
                            {"TORCHINDUCTOR_CACHE_DIR", "/tmp/inductor"},
                            {"CUDA_VISIBLE_DEVICES", ""},
                            {"MALLOC_ARENA_MAX", "2"}};
  for (const auto& [name, value] : fixed) setenv(name, value, 1);
  setenv("TRITONRL_SANDBOX_WEAK", weak_flag.c_str(), 1);
  setenv("TRITONRL_SANDBOX_MISSING", names.c_str(), 1);
}

// --- Probe: puts up the inner sandbox too and tries to break out of it.

void report(const char* name, bool yes, const char* format, ...) {
  char reason[256];
  va_list args;
  va_start(args, format);
  vsnprintf(reason, sizeof reason, format, args);
  va_end(args);
  dprintf(STDOUT_FILENO, "%s\t%s\t%s\n", name, yes ? "yes" : "no", yes ? "" : reason);
}

bool refused(long result) { return result < 0; }

[[noreturn]] void probe_inside() {
  int rc = tritonrl_sandbox_enter(256ull << 20, 1 << 20, -1, -1, 10);
  if (rc != 0) {
    dprintf(STDOUT_FILENO, "sandbox\tno\t%s\n", strerror(-rc));
    _exit(0);
  }
  std::string names = std::string(",") + tritonrl_sandbox_missing() + ",";
  for (const auto& name : missing) names += name + ",";
  auto up = [&](const char* name) {
    char word[64];
    snprintf(word, sizeof word, ",%s,", name);
    return names.find(word) == std::string::npos;
  };
  report("user_namespace", up("user_namespace"), "the kernel refuses user namespaces");
  report("process_group", getpgrp() == getpid() && getsid(0) == getpid() && refused(setpgid(0, 0)),
         "a signal to its own group reaches others");
  report("pid_namespace", getpid() == 1, "other processes can be seen and signalled");
  report("private_root", up("private_root") && access("/home", F_OK) != 0 && access("/root", F_OK) != 0,
         "the machine's file system is visible");
  int fd = open("/usr/tritonrl_probe", O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (fd >= 0) unlink("/usr/tritonrl_probe");
  report("read_only_root", fd < 0, "files outside /tmp can be written");
  report("private_tmp", up("private_tmp"), "no private /tmp of limited size");
  int score = open("/proc/self/oom_score_adj", O_WRONLY);
  if (score >= 0) close(score);
  report("private_proc", up("private_proc") && score < 0, "/proc shows the machine, or can be written to");
  int inet = socket(AF_INET, SOCK_STREAM, 0), local = socket(AF_UNIX, SOCK_STREAM, 0);
  report("no_network", refused(inet) && refused(local), "sockets can be made");
  report("no_privileges", up("no_privileges") && refused(setgid(0)) && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1,
         "capabilities could not be dropped");
  rlimit data{}, processes{}, files{}, core{};
  getrlimit(RLIMIT_DATA, &data);
  getrlimit(RLIMIT_NPROC, &processes);
  getrlimit(RLIMIT_FSIZE, &files);
  getrlimit(RLIMIT_CORE, &core);
  report("memory_limit", up("memory_limit") && data.rlim_cur < (1ull << 40), "memory is not limited");
  report("process_limit", up("process_limit") && processes.rlim_cur <= 16, "the number of processes is not limited");
  report("resource_limits", up("resource_limits") && files.rlim_cur <= (1 << 20) && core.rlim_cur == 0,
         "files and core dumps are not limited");
  report("seccomp", up("seccomp") && refused(syscall(SYS_unshare, 0)) && refused(syscall(SYS_ptrace, 0, 0, 0, 0)),
         "system calls are not filtered");
  _exit(0);
}

int probe() {
  long abi = syscall(SYS_landlock_create_ruleset, nullptr, 0, 1);
  report("landlock", abi >= 1, "this kernel has no Landlock (an additional layer only)");
  pid_t monitor = fork();
  if (monitor == 0) {
    if (int rc = tritonrl_sandbox_monitor(); rc != 0) {
      dprintf(STDOUT_FILENO, "sandbox\tno\t%s\n", strerror(-rc));
      _exit(0);
    }
    pid_t job = fork();
    if (job == 0) probe_inside();
    int status = 0;
    waitpid(job, &status, 0);
    if (WIFSIGNALED(status)) dprintf(STDOUT_FILENO, "sandbox\tno\tprobe ended by signal %d\n", WTERMSIG(status));
    _exit(0);
  }
  int status = 0;
  waitpid(monitor, &status, 0);
  return 0;
}

[[noreturn]] void pass_on(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
  }
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : kExitNoJail);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> binds;
  bool probing = false;
  int at = 1;
  for (; at < argc && strcmp(argv[at], "--") != 0; ++at) {
    if (strcmp(argv[at], "--weak") == 0) {
      weak = true;
    } else if (strcmp(argv[at], "--probe") == 0) {
      probing = true;
    } else if (strcmp(argv[at], "--bind") == 0 && at + 1 < argc) {
      binds.push_back(argv[++at]);
    } else {
      fprintf(stderr, "tritonrl_jail: unknown argument %s\n", argv[at]);
      return 2;
    }
  }
  if (!probing && at + 1 >= argc) {
    fprintf(stderr, "usage: tritonrl_jail [--weak] [--bind PATH]... -- PROGRAM ARGUMENTS...\n");
    return 2;
  }
  syscall(SYS_close_range, 4u, ~0u, 0);
  uid_t uid = geteuid();
  gid_t gid = getegid();
  bool in_user_namespace = false;
  if (uid != 0) {
    in_user_namespace = unshare(CLONE_NEWUSER) == 0 && map_ids(kInnerId, uid, gid);
    if (!in_user_namespace) miss("user_namespace", "unshare");
  }
  if (unshare(CLONE_NEWPID) != 0) miss("pid_namespace", "unshare");
  bool own_mounts = unshare(CLONE_NEWNS) == 0;
  if (!own_mounts) miss("private_root", "unshare");
  if (unshare(CLONE_NEWNET) != 0) miss("network_namespace", "unshare");
  if (unshare(CLONE_NEWIPC | CLONE_NEWUTS) != 0) miss("ipc_namespace", "unshare");
  pid_t child = fork();
  if (child < 0) {
    perror("tritonrl_jail: fork");
    return kExitNoJail;
  }
  if (child > 0) pass_on(child);

  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  umask(022);
  std::string step;
  if (own_mounts && !build_root(binds, &step)) miss("private_root", step);
  become_nobody(in_user_namespace);
  clean_environment();
  if (probing) return probe();
  if (chdir("/tmp") != 0 && chdir("/") != 0) return kExitNoJail;
  execv(argv[at + 1], argv + at + 1);
  fprintf(stderr, "tritonrl_jail: cannot run %s: %s\n", argv[at + 1], strerror(errno));
  return kExitNoJail;
}

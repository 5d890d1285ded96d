// SPDX-License-Identifier: Apache-2.0
// The inner sandbox, one per job. Plain system calls: this runs in a freshly forked Python process.
#include "verify/sandbox/sandbox_abi.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace {

constexpr uid_t kInnerId = 1000;       // What a job is called inside its user namespace.
constexpr uid_t kFallbackId = 947213;  // Outside identity of a job where there are no user namespaces and we are root.
constexpr rlim_t kMaxProcesses = 16;   // Threads included; a Triton compile needs a handful.
constexpr rlim_t kMaxFiles = 256;
constexpr uint64_t kAddressSlack = 1ull << 30;  // Reserved but unused address space (thread stacks, malloc arenas).

char missing_names[512];
bool has_user_namespace = false;
bool has_pid_namespace = false;

bool weaker_allowed() {
  const char* flag = getenv("TRITONRL_SANDBOX_WEAK");
  return flag && strcmp(flag, "1") == 0;
}

// Notes that a protection is missing. Returns 0 when that is allowed, else -error.
int miss(const char* name, int error) {
  if (!strstr(missing_names, name)) {
    size_t used = strlen(missing_names);
    snprintf(missing_names + used, sizeof missing_names - used, "%s%s", used ? "," : "", name);
  }
  return weaker_allowed() ? 0 : error > 0 ? -error : -EPERM;
}

bool write_text(const char* path, const char* text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool ok = write(fd, text, strlen(text)) == static_cast<ssize_t>(strlen(text));
  int error = errno;
  close(fd);
  errno = error;
  return ok;
}

// A field of /proc/self/status in bytes; 0 when it cannot be read.
uint64_t status_bytes(const char* field) {
  FILE* file = fopen("/proc/self/status", "re");
  if (!file) return 0;
  char line[256];
  unsigned long long kib = 0;
  while (fgets(line, sizeof line, file)) {
    if (strncmp(line, field, strlen(field)) == 0 && sscanf(line + strlen(field), ": %llu kB", &kib) == 1) break;
  }
  fclose(file);
  return kib * 1024;
}

// In a mount namespace of the job's own: the monitor still needs the /proc it has.
int private_mounts(uint64_t tmp_bytes) {
  if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return miss("private_tmp", errno);
  }
  char options[96];
  snprintf(options, sizeof options, "size=%llu,mode=0700,nr_inodes=16384", static_cast<unsigned long long>(tmp_bytes));
  if (mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) != 0) {
    if (int rc = miss("private_tmp", errno)) return rc;
  }
  // A /proc that shows this job alone; where the kernel refuses one (containers mask theirs), an empty folder.
  // Read-only: oom_score_adj could be lowered there.
  unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY;
  if (has_pid_namespace && mount("proc", "/proc", "proc", flags, "subset=pid") == 0) return 0;
  if (has_pid_namespace && mount("proc", "/proc", "proc", flags, nullptr) == 0) return 0;
  if (mount("tmpfs", "/proc", "tmpfs", flags, "size=4k,mode=0555") == 0) return 0;
  return miss("private_proc", errno);
}

bool limit(int resource, rlim_t value) {
  rlimit now{};
  if (getrlimit(static_cast<__rlimit_resource_t>(resource), &now) != 0) return false;
  rlim_t hard = now.rlim_max == RLIM_INFINITY ? value : std::min(value, now.rlim_max);
  rlimit wanted{hard, hard};
  return setrlimit(static_cast<__rlimit_resource_t>(resource), &wanted) == 0;
}

// data_bytes and address_bytes: what the process holds already (inherited from the fork server, mostly shared with it).
int limits(uint64_t memory, uint64_t tmp, int processor_s, uint64_t data_bytes, uint64_t address_bytes) {
  bool memory_ok = data_bytes && address_bytes && limit(RLIMIT_DATA, data_bytes + memory) &&
                   limit(RLIMIT_AS, address_bytes + memory + kAddressSlack);
  if (!memory_ok) {
    if (int rc = miss("memory_limit", errno)) return rc;
  }
  if (!has_user_namespace) {  // The count would include every process of this user.
    if (int rc = miss("process_limit", EPERM)) return rc;
  } else if (!limit(RLIMIT_NPROC, kMaxProcesses)) {
    if (int rc = miss("process_limit", errno)) return rc;
  }
  rlim_t cpu = static_cast<rlim_t>(std::max(processor_s, 1));
  bool ok = limit(RLIMIT_FSIZE, tmp) && limit(RLIMIT_NOFILE, kMaxFiles) && limit(RLIMIT_CPU, cpu) &&
            limit(RLIMIT_CORE, 0) && limit(RLIMIT_MEMLOCK, 64 << 10) && limit(RLIMIT_MSGQUEUE, 0);
  return ok ? 0 : miss("resource_limits", errno);
}

void close_others(int a, int b) {
  unsigned low = static_cast<unsigned>(std::max(2, std::min(a, b)));
  unsigned high = static_cast<unsigned>(std::max(2, std::max(a, b)));
  auto close_span = [](unsigned first, unsigned last) {
    if (first > last || syscall(SYS_close_range, first, last, 0) == 0) return;
    for (unsigned fd = first; fd <= std::min(last, 65536u); ++fd) close(static_cast<int>(fd));
  };
  close_span(3, low == 2 ? 0 : low - 1);
  if (high > low) close_span(low + 1, high - 1);
  close_span(high + 1, ~0u);
}

int drop_privileges() {
  if (!has_user_namespace && geteuid() == 0) {
    if (setgroups(0, nullptr) != 0 || setresgid(kFallbackId, kFallbackId, kFallbackId) != 0 ||
        setresuid(kFallbackId, kFallbackId, kFallbackId) != 0) {
      if (int rc = miss("no_privileges", errno)) return rc;
    }
  }
  for (int cap = 0; cap <= 63; ++cap) {
    if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0 && errno == EINVAL) break;
  }
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  if (syscall(SYS_capset, &header, none) != 0) {
    if (int rc = miss("no_privileges", errno)) return rc;
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return miss("no_privileges", errno);
  return 0;
}

// --- Landlock: write access beneath /tmp only. Numbers from the kernel's ABI, so that old headers do.

struct LandlockRuleset {
  uint64_t fs, net, scoped;
};
struct LandlockPath {
  uint64_t access;
  int32_t parent_fd;
} __attribute__((packed));

constexpr uint64_t kFsExecute = 1, kFsWriteFile = 2, kFsReadFile = 4, kFsReadDir = 8, kFsTruncate = 1 << 14,
                   kFsIoctl = 1 << 15;

bool allow_beneath(int ruleset, const char* path, uint64_t access) {
  int fd = open(path, O_PATH | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT;
  LandlockPath rule{access, fd};
  bool ok = syscall(SYS_landlock_add_rule, ruleset, 1, &rule, 0) == 0;
  close(fd);
  return ok;
}

int landlock() {
  long abi = syscall(SYS_landlock_create_ruleset, nullptr, 0, 1);
  if (abi < 1) return 0;  // An extra layer: its absence is told by the doctor, it is not required.
  int bits = abi >= 5 ? 16 : abi >= 3 ? 15 : abi >= 2 ? 14 : 13;
  uint64_t all = (1ull << bits) - 1;
  LandlockRuleset attributes{all, abi >= 4 ? 3ull : 0ull, abi >= 6 ? 3ull : 0ull};
  size_t size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
  int ruleset = static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, size, 0));
  if (ruleset < 0) return miss("landlock", errno);
  uint64_t device = (kFsWriteFile | kFsReadFile | kFsTruncate | kFsIoctl) & all;
  bool ok = allow_beneath(ruleset, "/", kFsExecute | kFsReadFile | kFsReadDir) && allow_beneath(ruleset, "/tmp", all) &&
            allow_beneath(ruleset, "/dev/null", device) && allow_beneath(ruleset, "/dev/zero", device) &&
            allow_beneath(ruleset, "/dev/full", device) && syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
  int error = errno;
  close(ruleset);
  return ok ? 0 : miss("landlock", error);
}

// --- Seccomp: what Python, torch, Triton's compiler and ptxas need, and nothing that reaches beyond the process.
// A call that is not listed answers ENOSYS, so that the C library falls back (clone3 -> clone, whose flags can be
// seen).

constexpr const char* kAllowed[] = {
    // Files, below a read-only root and a private /tmp.
    "read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "preadv2", "pwritev2", "open",
    "openat", "openat2", "creat", "close", "close_range", "stat", "fstat", "lstat", "newfstatat", "statx", "statfs",
    "fstatfs", "lseek", "access", "faccessat", "faccessat2", "dup", "dup2", "dup3", "pipe", "pipe2", "fcntl", "flock",
    "fsync", "fdatasync", "truncate", "ftruncate", "fallocate", "getdents", "getdents64", "getcwd", "chdir", "fchdir",
    "rename", "renameat", "renameat2", "mkdir", "mkdirat", "rmdir", "link", "linkat", "unlink", "unlinkat", "symlink",
    "symlinkat", "readlink", "readlinkat", "chmod", "fchmod", "fchmodat", "chown", "fchown", "lchown", "fchownat",
    "umask", "utime", "utimes", "utimensat", "futimesat", "sendfile", "splice", "tee", "copy_file_range", "fadvise64",
    "readahead", "sync_file_range", "getxattr", "lgetxattr", "fgetxattr", "listxattr", "llistxattr", "flistxattr",
    // Memory (mmap apart).
    "mprotect", "munmap", "brk", "mremap", "msync", "mincore", "madvise", "mlock", "munlock", "membarrier", "mbind",
    "get_mempolicy", "set_mempolicy", "pkey_alloc", "pkey_free", "pkey_mprotect",
    // Waiting.
    "poll", "ppoll", "select", "pselect6", "epoll_create", "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait",
    "epoll_pwait2", "eventfd", "eventfd2", "timerfd_create", "timerfd_settime", "timerfd_gettime", "futex",
    "futex_waitv", "nanosleep", "clock_nanosleep", "pause", "restart_syscall",
    // Signals; the PID namespace holds nobody else.
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigsuspend", "rt_sigtimedwait",
    "rt_sigqueueinfo", "sigaltstack", "kill", "tkill", "tgkill", "signalfd", "signalfd4",
    // Processes and threads (clone, prctl, prlimit64 apart).
    "fork", "vfork", "execve", "exit", "exit_group", "wait4", "waitid", "set_tid_address", "set_robust_list",
    "get_robust_list", "rseq", "arch_prctl", "getpid", "getppid", "gettid", "getpgid", "getpgrp", "getsid",
    "sched_yield", "sched_getaffinity", "sched_setaffinity", "sched_getparam", "sched_getscheduler",
    "sched_get_priority_max", "sched_get_priority_min", "getpriority", "setpriority", "getcpu", "pidfd_open",
    "pidfd_send_signal",
    // Asking.
    "getuid", "geteuid", "getgid", "getegid", "getresuid", "getresgid", "getgroups", "capget", "uname", "sysinfo",
    "times", "getrusage", "getrlimit", "setrlimit", "gettimeofday", "time", "clock_gettime", "clock_getres",
    "getrandom", "alarm", "getitimer", "setitimer", "timer_create", "timer_settime", "timer_gettime",
    "timer_getoverrun", "timer_delete"};

constexpr const char* kDenied[] = {  // Listed so that programs see "permission denied" and not "no such call".
    "socket",
    "socketpair",
    "connect",
    "bind",
    "listen",
    "accept",
    "accept4",
    "sendto",
    "sendmsg",
    "recvfrom",
    "recvmsg",
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "mount",
    "umount2",
    "pivot_root",
    "chroot",
    "unshare",
    "setns",
    "kexec_load",
    "bpf",
    "perf_event_open",
    "keyctl",
    "add_key",
    "request_key",
    "userfaultfd",
    "reboot",
    "memfd_create",
    "shmget",
    "shmat",
    "mknod",
    "mknodat",
    "setuid",
    "setgid",
    "setsid",  // One session and group per job: the scheduler shares processor time between sessions.
    "setpgid",
    "setresuid",
    "setresgid",
    "setgroups"};

bool allow_name(scmp_filter_ctx filter, const char* name) {
  int number = seccomp_syscall_resolve_name(name);
  return number < 0 || seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0) == 0;  // < 0: not on this machine.
}

bool allow_argument(scmp_filter_ctx filter, const char* name, scmp_arg_cmp argument) {
  int number = seccomp_syscall_resolve_name(name);
  return number < 0 || seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number, 1, &argument) == 0;
}

int seccomp() {
  scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
  if (!filter) return miss("seccomp", ENOMEM);
  bool ok = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) == 0;
  ok = ok && seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2) == 0;
  for (const char* name : kAllowed) ok = ok && allow_name(filter, name);
  for (const char* name : kDenied) {
    int number = seccomp_syscall_resolve_name(name);
    ok = ok && (number < 0 || seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0) == 0);
  }
  // Threads and forks, not namespaces.
  constexpr uint64_t new_namespaces = 0x7E020080;  // CLONE_NEW{TIME,NS,CGROUP,UTS,IPC,USER,PID,NET}.
  ok = ok && allow_argument(filter, "clone", SCMP_A0(SCMP_CMP_MASKED_EQ, new_namespaces, 0));
  // Anonymous shared memory escapes RLIMIT_DATA: every mmap but MAP_SHARED | MAP_ANONYMOUS.
  for (uint64_t kind : {0x00, 0x01, 0x20}) {
    ok = ok && allow_argument(filter, "mmap", SCMP_A3(SCMP_CMP_MASKED_EQ, 0x21, kind));
  }
  for (uint64_t option : {PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE, PR_CAPBSET_READ, PR_GET_TIMERSLACK,
                          PR_GET_NO_NEW_PRIVS, 0x53564d41 /* PR_SET_VMA: names for mappings. */}) {
    ok = ok && allow_argument(filter, "prctl", SCMP_A0(SCMP_CMP_EQ, option));
  }
  for (uint64_t request : {TCGETS, FIONREAD, FIONBIO, FIOCLEX, FIONCLEX, TIOCGWINSZ}) {
    ok = ok && allow_argument(filter, "ioctl", SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffu, request));
  }
  ok = ok && allow_argument(filter, "prlimit64", SCMP_A0(SCMP_CMP_EQ, 0));
  int rc = ok ? seccomp_load(filter) : -EINVAL;
  seccomp_release(filter);
  return rc == 0 ? 0 : miss("seccomp", -rc);
}

}  // namespace

int tritonrl_sandbox_monitor(void) {
  uid_t uid = geteuid();
  gid_t gid = getegid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS) == 0) {
    char map[64];
    snprintf(map, sizeof map, "%u %u 1", kInnerId, uid);
    bool ok = write_text("/proc/self/setgroups", "deny") && write_text("/proc/self/uid_map", map);
    snprintf(map, sizeof map, "%u %u 1", kInnerId, gid);
    ok = ok && write_text("/proc/self/gid_map", map);
    has_user_namespace = has_pid_namespace = true;
    if (!ok) return miss("user_namespace", errno);
  } else {
    if (int rc = miss("user_namespace", errno)) return rc;
    has_pid_namespace = unshare(CLONE_NEWPID) == 0;
    if (!has_pid_namespace) {
      if (int rc = miss("pid_namespace", errno)) return rc;
    }
    if (unshare(CLONE_NEWIPC | CLONE_NEWUTS) != 0) {
      if (int rc = miss("ipc_namespace", errno)) return rc;
    }
  }
  return 0;
}

int tritonrl_sandbox_enter(uint64_t memory_bytes, uint64_t tmp_bytes, int keep_fd_a, int keep_fd_b, int processor_s) {
  setsid();                                   // kill(0, ...) reaches this job and nobody else.
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);  // The job never outlives its monitor.
  write_text("/proc/self/oom_score_adj", "1000");
  uint64_t data_bytes = status_bytes("VmData"), address_bytes = status_bytes("VmSize");  // Before /proc changes.
  if (int rc = private_mounts(tmp_bytes)) return rc;
  if (chdir("/tmp") != 0) {
    if (int rc = miss("private_tmp", errno)) return rc;
  }
  umask(077);
  close_others(keep_fd_a, keep_fd_b);
  if (int rc = limits(memory_bytes, tmp_bytes, processor_s, data_bytes, address_bytes)) return rc;
  if (int rc = drop_privileges()) return rc;
  if (int rc = landlock()) return rc;
  return seccomp();
}

const char* tritonrl_sandbox_missing(void) { return missing_names; }

"""seccomp: the list of calls of the system that an app may make; every other fails. libseccomp knows their numbers.

Not on the list, so not possible: other programs, sockets, changing rights or times of files, tracing or reading other
processes, signals to them, mounts, namespaces, keys, other users, modules, io_uring, performance counters, queues and
shared memory of System V, leaving the group by which all processes of an app are ended.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal

CALLS = """
read write readv writev pread64 pwrite64 preadv pwritev lseek close close_range dup dup2 dup3 pipe pipe2 fcntl flock
open openat openat2 creat access faccessat faccessat2 stat fstat lstat newfstatat statx statfs fstatfs readlink
readlinkat getdents getdents64 getcwd chdir fchdir mkdir mkdirat rmdir unlink unlinkat rename renameat renameat2 link
linkat symlink symlinkat ftruncate fallocate fsync fdatasync sync_file_range umask fadvise64 readahead sendfile
copy_file_range splice tee mmap munmap mprotect mremap madvise msync brk mlock munlock mbind set_mempolicy
get_mempolicy membarrier poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait
epoll_pwait2 eventfd eventfd2 timerfd_create timerfd_settime timerfd_gettime futex futex_waitv get_robust_list
set_robust_list set_tid_address rseq sched_yield sched_getaffinity sched_getparam sched_getscheduler
sched_get_priority_max sched_get_priority_min getcpu fork vfork wait4 waitid exit exit_group rt_sigaction
rt_sigprocmask rt_sigreturn rt_sigpending rt_sigsuspend rt_sigtimedwait sigaltstack restart_syscall arch_prctl pause
alarm setitimer getitimer getpid getppid gettid getuid geteuid getgid getegid getresuid getresgid getgroups getpgrp
getpgid getsid clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday time times timer_create timer_settime
timer_delete getrandom uname sysinfo getrlimit getrusage getpriority capget
""".split()  # noqa: SIM905
#: new kinds of processes cannot be told by their flags, which are in memory: libc falls back to `clone`
ABSENT = ("clone3",)
#: terminals and inheritance of descriptors, which Python asks about
IOCTLS = (0x5401, 0x541B, 0x5421, 0x5450, 0x5451)
#: names of threads and of memory; not the signal by which a process goes with the one that guards it
PRCTLS = (3, 15, 16, 0x53564D41)
NEW_NAMESPACES = 0x7E020080

_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
#: equal in all 64 bits: the kernel reads fewer of some arguments, so 'anything but' could be passed by
_EQ, _MASKED_EQ = 4, 7
AF_UNIX = 1


class _Comparison(ctypes.Structure):
    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


def restrict() -> None:
    """Allow the listed calls to this process and its children, for good.

    Raises
    ------
    OSError
        If libseccomp is missing, or the kernel does not filter calls.
    """
    library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    rules = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(_ERRNO | errno.EPERM)))
    if not rules:
        raise OSError("libseccomp cannot be used")

    def rule(name: str, *conditions: tuple[int, int, int, int], action: int = _ALLOW) -> None:
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number < 0:  # another architecture's
            return
        compared = (_Comparison * max(len(conditions), 1))(*(_Comparison(*found) for found in conditions))
        done = library.seccomp_rule_add_array(rules, ctypes.c_uint32(action), number, len(conditions), compared)
        _check(done)

    for name in CALLS:
        rule(name)
    for name in ABSENT:
        rule(name, action=_ERRNO | errno.ENOSYS)
    for request in IOCTLS:
        rule("ioctl", (1, _EQ, request, 0))
    rule("clone", (0, _MASKED_EQ, NEW_NAMESPACES, 0))
    rule("socketpair", (0, _EQ, AF_UNIX, 0))
    rule("prlimit64", (0, _EQ, 0, 0))  # its own limits alone
    for option in PRCTLS:
        rule("prctl", (0, _EQ, option, 0))
    rule("tgkill", (0, _EQ, os.getpid(), 0))  # an abort of its own
    rule("kill", (0, _EQ, os.getpid(), 0), (1, _EQ, signal.SIGABRT, 0))
    try:
        _check(library.seccomp_load(rules))
    finally:
        library.seccomp_release(rules)


def _check(done: int) -> None:
    if done < 0:
        raise OSError(-done, os.strerror(-done))

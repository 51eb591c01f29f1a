// SPDX-License-Identifier: BSD-2-Clause
//
// Makes the kernel answer one system call with an error, for what a healthy disk never does. The
// filter holds for the calling thread and can never be taken off it, so the work is done in a
// thread that ends with it; all other threads are left alone.
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <functional>
#include <thread>

#include "common/base/check.hpp"

namespace vellum::test {

inline void install_failure(unsigned syscall_number, unsigned error_number) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, syscall_number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error_number),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof program / sizeof program[0], program};
  CHECK(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  CHECK(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0);
}

inline void with_failing_syscall(long syscall_number, int error_number,
                                 const std::function<void()>& work) {
  std::thread thread([&] {
    install_failure(static_cast<unsigned>(syscall_number), static_cast<unsigned>(error_number));
    work();
  });
  thread.join();
}

}  // namespace vellum::test

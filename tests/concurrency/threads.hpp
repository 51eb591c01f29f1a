// SPDX-License-Identifier: BSD-2-Clause
//
// Threads of a test that all stop when the time is over or the first of them fails.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/failure.hpp"

namespace vellum::support {

class Threads {
 public:
  // Calls `turn` again and again until the end.
  void start(const std::string& name, std::function<void()> turn) {
    threads_.emplace_back([this, name, turn = std::move(turn)] {
      try {
        while (!stop_.load()) {
          turn();
          turns_.fetch_add(1);
        }
      } catch (const std::exception& failure) {
        note(name + ": " + failure.what());
      }
    });
  }

  // Lets them run; the first failure, or empty.
  std::string run_for(std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (!stop_.load() && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    stop_.store(true);
    for (std::thread& thread : threads_) thread.join();
    std::lock_guard lock(mutex_);
    return failure_;
  }

  bool stopping() const { return stop_.load(); }
  void stop() { stop_.store(true); }
  uint64_t turns() const { return turns_.load(); }

 private:
  void note(const std::string& failure) {
    std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = failure;
    stop_.store(true);
  }

  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> turns_{0};
  std::mutex mutex_;
  std::string failure_;
  std::vector<std::thread> threads_;
};

}  // namespace vellum::support

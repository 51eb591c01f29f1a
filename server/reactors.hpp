// SPDX-License-Identifier: BSD-2-Clause
//
// The threads that serve connections. Each has an io_context of its own, and a connection stays
// with one: so a connection needs neither a strand nor a lock, and its next request wakes no other
// thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>

namespace vellum::server {

class Reactor {
 public:
  Reactor();
  // Joins. Connections must be gone.
  ~Reactor();
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

  asio::io_context& context() { return context_; }
  std::atomic<size_t>& connections() { return connections_; }

 private:
  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::atomic<size_t> connections_ = 0;
  std::thread thread_;
};

class Reactors {
 public:
  explicit Reactors(size_t count);
  Reactor& least_loaded();

 private:
  std::vector<std::unique_ptr<Reactor>> reactors_;
};

}  // namespace vellum::server

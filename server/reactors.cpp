// SPDX-License-Identifier: BSD-2-Clause
#include "server/reactors.hpp"

#include <algorithm>
#include <exception>

#include "server/log.hpp"

namespace vellum::server {

namespace {

// Sessions end their own exceptions; one that gets here cost a single handler.
void run(asio::io_context& context) {
  for (;;) {
    try {
      context.run();
      return;
    } catch (const std::exception& error) {
      log_error("a handler failed: " + std::string(error.what()));
    }
  }
}

}  // namespace

Reactor::Reactor() : work_(context_.get_executor()), thread_([this] { run(context_); }) {}

Reactor::~Reactor() {
  work_.reset();
  context_.stop();
  thread_.join();
}

Reactors::Reactors(size_t count) {
  for (size_t i = 0; i < count; ++i) reactors_.push_back(std::make_unique<Reactor>());
}

Reactor& Reactors::least_loaded() {
  return **std::min_element(reactors_.begin(), reactors_.end(), [](const auto& a, const auto& b) {
    return a->connections() < b->connections();
  });
}

}  // namespace vellum::server

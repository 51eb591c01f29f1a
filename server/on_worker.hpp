// SPDX-License-Identifier: BSD-2-Clause
//
// For a coroutine that must call something that blocks.
#pragma once

#include <exception>
#include <utility>

#include <asio/awaitable.hpp>
#include <asio/bind_executor.hpp>
#include <asio/post.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_awaitable.hpp>

namespace vellum::server {

// Runs `work` on a worker, and goes on at `home`, the coroutine's own executor, also when it
// throws.
template <typename Executor, typename Work>
asio::awaitable<void> on_worker(asio::thread_pool& workers, Executor home, Work work) {
  std::exception_ptr failure;
  co_await asio::post(asio::bind_executor(workers, asio::use_awaitable));
  try {
    work();
  } catch (...) {
    failure = std::current_exception();
  }
  co_await asio::post(asio::bind_executor(home, asio::use_awaitable));
  if (failure) std::rethrow_exception(failure);
}

}  // namespace vellum::server

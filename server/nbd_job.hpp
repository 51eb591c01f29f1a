// SPDX-License-Identifier: BSD-2-Clause
//
// One request that goes to a worker because the store would wait for it. Included by
// nbd_commands.cpp only.
#pragma once

#include <cstddef>
#include <memory>

#include "common/store/store.hpp"
#include "server/nbd_commands.hpp"
#include "server/out_buffer.hpp"

namespace vellum::server {

struct Commands::Job : std::enable_shared_from_this<Commands::Job> {
  Job(std::shared_ptr<void> held, Commands& its_commands, const Request& its_request,
      size_t its_memory_bytes)
      : owner(std::move(held)),
        commands(its_commands),
        request(its_request),
        memory_bytes(its_memory_bytes) {}

  std::shared_ptr<void> owner;  // destroyed last
  Commands& commands;
  const Request request;
  const size_t memory_bytes;  // counted as in flight
  store::Ticket ticket;
  std::unique_ptr<std::byte[]> payload;
  OutBuffer reply;  // what a read or a status query is answered with
  Result<void> result;
};

}  // namespace vellum::server

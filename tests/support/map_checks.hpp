// SPDX-License-Identifier: BSD-2-Clause
//
// Compares what the store says about a version (content, maps, extents, differences) with the
// oracle. Each throws Failure (failure.hpp) with the object's name and what is wrong first.
#pragma once

#include <string>

#include "common/store/store.hpp"
#include "tests/support/content.hpp"
#include "tests/support/random.hpp"

namespace vellum::support {

// Every byte of a volume of a few MiB; of a larger one what holds data, and what is around it.
void check_content(store::Export& opened, const Content& content, Random& random);
void check_read(store::Export& opened, const Content& content, uint64_t offset, uint64_t length,
                bool want_extents);
void check_map(store::Export& opened, const Content& content, Random& random);
void check_allocated(store::Store& store, const std::string& name, const Content& content,
                     Random& random);
void check_extents(store::Store& store, const std::string& name, const Content& content,
                   Random& random);
void check_diff(store::Store& store, const std::string& name, const Content& target,
                const std::string& base_name, const Content& base, Random& random);
// That what is unshared is what differs.
void check_unshared(store::Store& store, const std::string& name, const std::string& base,
                    uint64_t size, Random& random);

}  // namespace vellum::support

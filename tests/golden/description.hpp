// SPDX-License-Identifier: BSD-2-Clause
//
// What a store holds, as text: everything that the format has to keep, and nothing that another
// version of the code may choose anew.
#pragma once

#include <string>

#include "common/store/store.hpp"

namespace vellum::golden {

// JSON: volumes and snapshots with all that is told of them, where they hold data, and CRCs of it.
// A Failure if something cannot be read.
std::string describe(store::Store& from);

}  // namespace vellum::golden

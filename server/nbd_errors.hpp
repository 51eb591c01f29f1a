// SPDX-License-Identifier: BSD-2-Clause
//
// The one place where errors of the store become errors of NBD.
#pragma once

#include "common/base/result.hpp"
#include "server/nbd_protocol.hpp"

namespace vellum::server {

// `writes`: the command was WRITE or WRITE_ZEROES, for which out of range is ENOSPC.
nbd::NbdError nbd_error_of(Errc code, bool writes);

}  // namespace vellum::server

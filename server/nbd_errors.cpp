// SPDX-License-Identifier: BSD-2-Clause
#include "server/nbd_errors.hpp"

namespace vellum::server {

using nbd::NbdError;

NbdError nbd_error_of(Errc code, bool writes) {
  switch (code) {
    case Errc::out_of_range:
      return writes ? NbdError::enospc : NbdError::einval;
    case Errc::no_space:
    case Errc::limit:
      return NbdError::enospc;
    case Errc::invalid_argument:
      return NbdError::einval;
    case Errc::shut_down:
      return NbdError::eshutdown;
    case Errc::unsupported:
      return NbdError::enotsup;
    // A read-only export is refused before the store is asked, so this is a store that takes no
    // changes any more: an I/O error to whoever wrote.
    case Errc::read_only:
    case Errc::io_error:
    case Errc::corrupt:
    default:
      return NbdError::eio;
  }
}

}  // namespace vellum::server

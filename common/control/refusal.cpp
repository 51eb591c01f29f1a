// SPDX-License-Identifier: BSD-2-Clause
#include "common/control/refusal.hpp"

namespace vellum::control {

const char* reason(Code code) {
  switch (code) {
    case Code::parse_error:
      return "parse_error";
    case Code::invalid_request:
      return "invalid_request";
    case Code::method_not_found:
      return "method_not_found";
    case Code::invalid_params:
      return "invalid_params";
    case Code::internal_error:
      return "internal_error";
    case Code::not_found:
      return "not_found";
    case Code::exists:
      return "exists";
    case Code::in_use:
      return "in_use";
    case Code::incompatible:
      return "incompatible";
    case Code::no_space:
      return "no_space";
    case Code::limit:
      return "limit";
    case Code::busy:
      return "busy";
    case Code::out_of_range:
      return "out_of_range";
    case Code::destroyed:
      return "destroyed";
    case Code::precondition:
      return "precondition";
    case Code::io_error:
      return "io_error";
    case Code::timeout:
      return "timeout";
    case Code::corrupt:
      return "corrupt";
    case Code::read_only:
      return "read_only";
    case Code::unsupported:
      return "unsupported";
    case Code::shut_down:
      return "shut_down";
  }
  return "internal_error";
}

Code code_of(Errc errc) {
  switch (errc) {
    case Errc::invalid_argument:
      return Code::invalid_params;
    case Errc::out_of_range:
      return Code::out_of_range;
    case Errc::not_found:
      return Code::not_found;
    case Errc::exists:
      return Code::exists;
    case Errc::in_use:
      return Code::in_use;
    case Errc::incompatible:
      return Code::incompatible;
    case Errc::no_space:
      return Code::no_space;
    case Errc::limit:
      return Code::limit;
    case Errc::busy:
    case Errc::would_block:  // control always waits, so these two never stay
    case Errc::answered:
      return Code::busy;
    case Errc::destroyed:
      return Code::destroyed;
    case Errc::precondition:
      return Code::precondition;
    case Errc::io_error:
      return Code::io_error;
    case Errc::corrupt:
      return Code::corrupt;
    case Errc::read_only:
      return Code::read_only;
    case Errc::shut_down:
      return Code::shut_down;
    case Errc::unsupported:
      return Code::unsupported;
    case Errc::timeout:
      return Code::timeout;
  }
  return Code::internal_error;
}

}  // namespace vellum::control

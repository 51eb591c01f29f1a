// SPDX-License-Identifier: BSD-2-Clause
//
// Errors of the world as values. A function that can fail because of its input, the disk or the
// state of the store returns Result<T>; a mistake of ours is a CHECK (check.hpp). Nothing below
// `control` throws on purpose.
//
// An Error has one of a few codes, which each edge (NBD, JSON-RPC, errno) maps once, and a message
// for people that names the object and, where there is one, the remedy.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "common/base/check.hpp"

namespace vellum {

enum class Errc {
  invalid_argument,  // the caller's argument is malformed
  out_of_range,      // an offset or length beyond the end of its object
  not_found,
  exists,
  in_use,        // attached, locked, or pinned by somebody
  incompatible,  // the objects do not fit each other, or the format is unknown
  no_space,
  limit,  // a stated maximum is reached
  busy,   // try again
  destroyed,
  precondition,
  io_error,     // the disk failed
  corrupt,      // a checksum or a structure is wrong
  read_only,    // the target, or the store after a failed sync, takes no changes
  would_block,  // only from calls that were told not to wait
  answered,     // the request_id has been answered: see Store::find_answer
  shut_down,    // the store is being closed
  unsupported,
  timeout,
};

struct [[nodiscard]] Error {
  Errc code;
  std::string message;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    CHECK(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& {
    CHECK(!ok());
    return *std::get_if<1>(&state_);
  }
  Error&& error() && {
    CHECK(!ok());
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const& {
    CHECK(!ok());
    return *error_;
  }
  Error&& error() && {
    CHECK(!ok());
    return std::move(*error_);
  }

 private:
  std::optional<Error> error_;
};

}  // namespace vellum

// Leaves the enclosing function with the error of `expression`, if it has one.
#define TRY(expression)                                                                         \
  do {                                                                                          \
    if (auto try_result = (expression); !try_result.ok()) return std::move(try_result).error(); \
  } while (false)

#define VELLUM_JOIN_(a, b) a##b
#define VELLUM_JOIN(a, b) VELLUM_JOIN_(a, b)
// TRY_ASSIGN(auto x, f()): declares x from the value of f(), or leaves with its error.
#define TRY_ASSIGN(declaration, expression)                       \
  auto VELLUM_JOIN(try_result_, __LINE__) = (expression);         \
  if (!VELLUM_JOIN(try_result_, __LINE__).ok())                   \
    return std::move(VELLUM_JOIN(try_result_, __LINE__)).error(); \
  declaration = std::move(VELLUM_JOIN(try_result_, __LINE__)).value()

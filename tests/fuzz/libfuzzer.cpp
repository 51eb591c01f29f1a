// SPDX-License-Identifier: BSD-2-Clause
//
// The entry of libFuzzer, for the target that FUZZ_TARGET names. A Failure ends the process, and
// the input stays in a file.
#include "tests/fuzz/targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  vellum::fuzz::FUZZ_TARGET(std::as_bytes(std::span(data, size)));
  return 0;
}

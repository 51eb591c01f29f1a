// SPDX-License-Identifier: BSD-2-Clause
//
// The steps that short sequences are made of, on volumes of three blocks called a and b: each what
// one request makes of it, a write with FUA for example a write and a flush.
#pragma once

#include <string>
#include <vector>

#include "tests/support/model.hpp"
#include "tests/support/operation.hpp"

namespace vellum::support {

using Operations = std::vector<Operation>;

inline constexpr uint64_t kSmallVolumeBytes = 3ull * kContentBlockBytes;
inline constexpr uint64_t kStepsPerPlace = 128;  // more than there ever are to choose from

Operation named(Action action, std::vector<std::string> names);
Operation content(Action action, const std::string& name, uint64_t offset, uint64_t length);
Operation create_small(const std::string& name);
Operation set_delay(uint64_t milliseconds);

// Everything that can be done now: writes, trims and zeroes of each run of blocks and of a part of
// one, and the other operations on everything that they can be done to.
std::vector<Operations> every_step(const Model& model);

// A third of them, and of each kind some. The others are like them in what they make the store do:
// the blocks of a volume lie in one leaf, and what one snapshot goes through another does too.
std::vector<Operations> few_steps(const Model& model);

}  // namespace vellum::support

// SPDX-License-Identifier: BSD-2-Clause
//
// The fuzzers' targets without a fuzzer: the corpus, and then random mutations of it. A seed
// replays one mutation of each target; arguments: tests/support/arguments.hpp.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "tests/fuzz/small_store.hpp"
#include "tests/fuzz/targets.hpp"
#include "tests/support/arguments.hpp"
#include "tests/support/failure.hpp"

namespace vellum::fuzz {
namespace {

using Content = std::vector<std::byte>;

constexpr double kDefaultSeconds = 2;  // for each target
constexpr size_t kLengthMax = 8192;
constexpr std::chrono::seconds kInputMax{20};  // a hang; sanitizers slow things down

std::map<std::string, Content> corpus_of(std::string_view target) {
  const char* root = std::getenv("VELLUM_SOURCE_ROOT");
  support::demand(root != nullptr, "VELLUM_SOURCE_ROOT is not set");
  const auto folder = std::filesystem::path(root) / "tests" / "fuzz" / "corpus" / target;
  std::map<std::string, Content> corpus;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto bytes = std::as_bytes(std::span(text));
    corpus[entry.path().filename()] = Content(bytes.begin(), bytes.end());
  }
  return corpus;
}

Content mutated(Content content, const std::vector<Content>& corpus, support::Random& random) {
  for (uint64_t edits = random.between(1, 8); edits > 0; --edits) {
    const size_t at = content.empty() ? 0 : random.below(content.size());
    const auto here = content.begin() + static_cast<ptrdiff_t>(at);
    const auto byte = static_cast<std::byte>(random.next());
    const size_t length = std::min<size_t>(random.between(1, 16), content.size() - at);
    const uint64_t way = content.empty() ? 3 : random.below(7);
    if (way == 0) *here = byte;
    if (way == 1) *here ^= static_cast<std::byte>(1u << random.below(8));
    if (way == 2) content.erase(here, here + static_cast<ptrdiff_t>(length));
    if (way == 3) content.insert(here, random.between(1, 16), byte);
    if (way == 4) std::fill_n(here, length, random.chance(50) ? std::byte{0} : std::byte{0xff});
    if (way == 5) content.insert(content.end(), here, here + static_cast<ptrdiff_t>(length));
    if (way == 6) {
      const Content& other = corpus[random.below(corpus.size())];
      content.resize(at);
      content.insert(content.end(), other.begin(), other.end());
    }
  }
  content.resize(std::min(content.size(), kLengthMax));
  return content;
}

// What is running, for the case that it ends the process.
std::string running;

extern "C" void tell_running(int signal) {
  (void)!::write(STDERR_FILENO, running.data(), running.size());
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// For `xxd -r -p`, which makes a file of the corpus of it.
std::string hex(const Content& content) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : content) {
    text += kDigits[static_cast<size_t>(byte) / 16];
    text += kDigits[static_cast<size_t>(byte) % 16];
  }
  return text;
}

void run(const Target& target, const std::string& what, const Content& content) {
  running = "while at " + std::string(target.name) + ", " + what + ", input " + hex(content) + "\n";
  const auto begin = std::chrono::steady_clock::now();
  try {
    target.run(content);
  } catch (const std::exception& failure) {
    throw support::Failure(running + failure.what());
  }
  support::demand(std::chrono::steady_clock::now() - begin < kInputMax, what + " takes too long");
}

void replay(const Target& target) {
  const auto corpus = corpus_of(target.name);
  support::demand(!corpus.empty(), "there is no corpus");
  std::vector<Content> contents;
  for (const auto& [name, content] : corpus) {
    run(target, name, content);
    contents.push_back(content);
  }
  const uint64_t mutations = support::run_seeds(kDefaultSeconds, [&](uint64_t seed) {
    support::Random random(seed);
    const Content& from = contents[random.below(contents.size())];
    run(target, "--seed " + std::to_string(seed), mutated(from, contents, random));
  });
  std::printf("%s: %zu files, %lu mutations from seed %lu\n", target.name.data(), corpus.size(),
              mutations, support::arguments().seed.value_or(1));
}

class Fuzz : public testing::TestWithParam<Target> {};

TEST_P(Fuzz, CorpusAndMutations) { ASSERT_NO_THROW(replay(GetParam())); }

INSTANTIATE_TEST_SUITE_P(Targets, Fuzz, testing::ValuesIn(kTargets),
                         [](const auto& target) { return std::string(target.param.name); });

TEST(SmallStore, IsSound) {
  support::Random random(1);
  const auto disk = small_store().disk->survivor(support::Survival::everything, random);
  const auto report = store::check(*disk, small_options(), {.read_data = true});
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->errors, std::vector<std::string>());
  EXPECT_GT(small_store().tables.size(), 8u);
}

}  // namespace
}  // namespace vellum::fuzz

int main(int argc, char** argv) {
  std::signal(SIGABRT, vellum::fuzz::tell_running);
  std::signal(SIGSEGV, vellum::fuzz::tell_running);
  return vellum::support::seeded_main(argc, argv);
}

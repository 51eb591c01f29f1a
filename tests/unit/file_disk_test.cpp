// SPDX-License-Identifier: BSD-2-Clause
#include "common/disk/file_disk.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/failing_syscall.hpp"

namespace vellum::disk {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

Bytes pattern(size_t length, unsigned seed) {
  Bytes bytes(length);
  for (size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>(seed + i * 31 + i / 251);
  return bytes;
}

class FileDiskTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "vellum-file-disk-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    path_ = (folder_ / "store").string();
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::unique_ptr<FileDisk> open(OpenMode mode) {
    Result<std::unique_ptr<FileDisk>> disk = FileDisk::open(path_, mode);
    EXPECT_TRUE(disk.ok()) << (disk.ok() ? "" : disk.error().message);
    return disk.ok() ? std::move(*disk) : nullptr;
  }
  Error refusal(const std::string& path, OpenMode mode) {
    const Result<std::unique_ptr<FileDisk>> disk = FileDisk::open(path, mode);
    EXPECT_FALSE(disk.ok()) << path;
    return disk.ok() ? Error{Errc::invalid_argument, "opened"} : disk.error();
  }
  void put_file(std::string_view content) { std::ofstream(path_) << content; }
  Bytes content(Disk& disk, uint64_t offset, size_t length) {
    Bytes bytes(length, std::byte{0xee});
    EXPECT_TRUE(disk.read(offset, bytes).ok());
    return bytes;
  }
  // Runs `work` in a child process; true if it returned true.
  template <typename Work>
  bool in_child(Work work) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(work() ? 0 : 1);
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  fs::path folder_;
  std::string path_;
};

TEST_F(FileDiskTest, ReadsBackWhatWasWritten) {
  const Bytes data = pattern(3 * 4096, 1);
  {
    const auto disk = open(OpenMode::create);
    ASSERT_TRUE(disk->write(8192, data).ok());
    ASSERT_TRUE(disk->sync().ok());
    EXPECT_EQ(content(*disk, 8192, data.size()), data);
    EXPECT_EQ(disk->size_bytes(), 8192 + data.size());
    EXPECT_TRUE(disk->can_grow());
    EXPECT_EQ(disk->name(), path_);
  }
  const auto disk = open(OpenMode::existing);
  EXPECT_EQ(content(*disk, 8192, data.size()), data);
  EXPECT_EQ(disk->size_bytes(), 8192 + data.size());
}

TEST_F(FileDiskTest, NewStoresArePrivate) {
  const auto disk = open(OpenMode::create);
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 077, 0U);
}

TEST_F(FileDiskTest, ReadsZerosBeyondTheEnd) {
  const auto disk = open(OpenMode::create);
  const Bytes data = pattern(4096, 2);
  ASSERT_TRUE(disk->write(8192, data).ok());
  Bytes expected = data;
  expected.resize(3 * 4096);
  EXPECT_EQ(content(*disk, 8192, expected.size()), expected);
  EXPECT_EQ(content(*disk, uint64_t{1} << 40, 4096), Bytes(4096));
  Bytes out(8192, std::byte{0xee});
  ASSERT_TRUE(disk->read(uint64_t{1} << 40, out, Wait::never).ok());
  EXPECT_EQ(out, Bytes(8192));
}

TEST_F(FileDiskTest, TransfersMorePartsThanOneCallTakes) {
  const auto disk = open(OpenMode::create);
  constexpr size_t kParts = 3 * IOV_MAX + 17;
  Bytes data = pattern(kParts * 48, 3);
  std::vector<iovec> parts;
  size_t used = 0;
  for (size_t i = 0; i < kParts; ++i) {
    const size_t length = i % 97;  // empty parts among them
    parts.push_back({&data[used], length});
    used += length;
  }
  data.resize(used);
  ASSERT_TRUE(disk->write(8192, std::span<const iovec>(parts)).ok());
  EXPECT_EQ(content(*disk, 8192, used), data);
  EXPECT_EQ(disk->size_bytes(), 8192 + used);

  const Bytes written = data;
  std::fill(data.begin(), data.end(), std::byte{0});
  ASSERT_TRUE(disk->read(8192, parts, Wait::allowed).ok());
  EXPECT_EQ(data, written);
  // The last third lies beyond the end: its parts become zeros.
  ASSERT_TRUE(disk->read(8192 + used / 3 * 2, parts, Wait::allowed).ok());
  EXPECT_TRUE(std::equal(data.begin(), data.begin() + used / 3, written.begin() + used / 3 * 2));
  EXPECT_TRUE(
      std::all_of(data.end() - used / 3, data.end(), [](auto b) { return b == std::byte{0}; }));
}

TEST_F(FileDiskTest, EmptyTransfersSucceed) {
  const auto disk = open(OpenMode::create);
  const uint64_t size = disk->size_bytes();
  EXPECT_TRUE(disk->write(4096, std::span<const iovec>()).ok());
  EXPECT_TRUE(disk->read(4096, std::span<const iovec>(), Wait::never).ok());
  EXPECT_EQ(disk->size_bytes(), size);
}

// P14
TEST_F(FileDiskTest, SecondOpenerIsRefusedWithTheOwnersPid) {
  const pid_t owner = ::getpid();
  const std::string expected = path_ + " is in use by process " + std::to_string(owner);
  {
    const auto disk = open(OpenMode::create);
    for (const OpenMode mode :
         {OpenMode::existing, OpenMode::inspect, OpenMode::create, OpenMode::create_forced}) {
      EXPECT_TRUE(in_child([&] {
        const auto second = FileDisk::open(path_, mode);
        return !second.ok() && second.error().code == Errc::in_use &&
               second.error().message == expected;
      }));
    }
  }
  {
    const auto disk = open(OpenMode::existing);
    EXPECT_EQ(refusal(path_, OpenMode::existing).message, expected);
  }
  EXPECT_TRUE(in_child([&] { return FileDisk::open(path_, OpenMode::existing).ok(); }));
}

TEST_F(FileDiskTest, AnOwnerThatDiedHoldsNothing) {
  EXPECT_TRUE(in_child([&] {
    const auto disk = FileDisk::open(path_, OpenMode::create);
    ::_exit(disk.ok() ? 0 : 1);  // without its destructor
    return true;
  }));
  const auto disk = open(OpenMode::existing);
  ASSERT_NE(disk, nullptr);
  EXPECT_EQ(refusal(path_, OpenMode::existing).message,
            path_ + " is in use by process " + std::to_string(::getpid()));
}

TEST_F(FileDiskTest, SeveralMayInspectButNotBesideAnOwner) {
  open(OpenMode::create);
  const auto first = open(OpenMode::inspect);
  const auto second = open(OpenMode::inspect);
  const Error error = refusal(path_, OpenMode::existing);
  EXPECT_EQ(error.code, Errc::in_use);
  EXPECT_NE(error.message.find("inspected"), std::string::npos) << error.message;
}

TEST_F(FileDiskTest, InspectionChangesNothing) {
  open(OpenMode::create);
  const auto disk = open(OpenMode::inspect);
  EXPECT_EQ(disk->write(8192, Bytes(4096)).error().code, Errc::read_only);
  EXPECT_EQ(disk->prepare(8192, 4096).error().code, Errc::read_only);
  EXPECT_EQ(disk->discard(8192, 4096).error().code, Errc::read_only);
  EXPECT_EQ(disk->claim(1).error().code, Errc::read_only);
  EXPECT_TRUE(disk->sync().ok());
  EXPECT_EQ(disk->size_bytes(), 8192U);
}

TEST_F(FileDiskTest, CreationRefusesAFileThatIsNotEmpty) {
  put_file("precious");
  const Error error = refusal(path_, OpenMode::create);
  EXPECT_EQ(error.code, Errc::exists);
  EXPECT_NE(error.message.find(path_ + " is not empty"), std::string::npos) << error.message;
  EXPECT_EQ(fs::file_size(path_), 8U);
  const auto disk = open(OpenMode::create_forced);
  EXPECT_EQ(content(*disk, 0, 4096), Bytes(4096));
}

TEST_F(FileDiskTest, CreationTakesAnEmptyFile) {
  put_file("");
  EXPECT_NE(open(OpenMode::create), nullptr);
}

TEST_F(FileDiskTest, WrongPathsAreRefusedByName) {
  const std::string folder = folder_.string();
  EXPECT_EQ(refusal(path_, OpenMode::existing).code, Errc::not_found);
  EXPECT_EQ(refusal(path_, OpenMode::inspect).message,
            path_ + ": cannot open it: No such file or directory");
  EXPECT_EQ(refusal(folder, OpenMode::existing).code, Errc::invalid_argument);
  EXPECT_EQ(refusal(folder, OpenMode::inspect).code, Errc::invalid_argument);
  EXPECT_EQ(refusal(folder, OpenMode::create).code, Errc::invalid_argument);
  EXPECT_EQ(refusal("/dev/null", OpenMode::existing).code, Errc::invalid_argument);
  EXPECT_EQ(refusal(path_ + "/below", OpenMode::create).code, Errc::not_found);
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(FileDiskTest, AFileThatIsNoStoreIsLeftAlone) {
  const std::string text(10000, 'x');
  put_file(text);
  { EXPECT_NE(open(OpenMode::existing), nullptr); }
  std::ifstream file(path_);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), text);
}

TEST_F(FileDiskTest, ClaimRecordsTheOwnerOfAStoreWithoutARecord) {
  put_file("");
  const auto disk = open(OpenMode::existing);
  EXPECT_EQ(refusal(path_, OpenMode::existing).message, path_ + " is in use by another process");
  ASSERT_TRUE(disk->claim(5).ok());
  EXPECT_EQ(refusal(path_, OpenMode::existing).message,
            path_ + " is in use by process " + std::to_string(::getpid()));
}

TEST_F(FileDiskTest, ReadThatMayNotWaitReadsOrSaysSo) {
  const Bytes data = pattern(1 << 20, 4);
  {
    const auto disk = open(OpenMode::create);
    ASSERT_TRUE(disk->write(8192, data).ok());
  }
  const auto disk = open(OpenMode::existing);  // evicts the data, where the file system can
  Bytes out(data.size());
  const Result<void> first = disk->read(8192, out, Wait::never);
  if (first.ok()) {
    EXPECT_EQ(out, data);
  } else {
    EXPECT_EQ(first.error().code, Errc::would_block);
  }
  ASSERT_TRUE(disk->read(8192, out, Wait::allowed).ok());
  std::fill(out.begin(), out.end(), std::byte{0});
  ASSERT_TRUE(disk->read(8192, out, Wait::never).ok());
  EXPECT_EQ(out, data);
}

TEST_F(FileDiskTest, ReadThatMayNotWaitObeysTheKernelsAnswers) {
  const auto disk = open(OpenMode::create);
  const Bytes data = pattern(4096, 5);
  ASSERT_TRUE(disk->write(8192, data).ok());
  Bytes out(4096);
  test::with_failing_syscall(SYS_preadv2, EAGAIN, [&] {
    EXPECT_EQ(disk->read(8192, out, Wait::never).error().code, Errc::would_block);
  });
  test::with_failing_syscall(SYS_preadv2, EIO, [&] {
    EXPECT_EQ(disk->read(8192, out, Wait::never).error().message,
              path_ + ": cannot read 4096 bytes at offset 8192: Input/output error");
  });
  // A file system that cannot tell (EOPNOTSUPP) is read with calls of the older kind.
  test::with_failing_syscall(SYS_preadv2, EOPNOTSUPP, [&] {
    ASSERT_TRUE(disk->read(8192, out, Wait::never).ok());
    EXPECT_EQ(out, data);
  });
}

TEST_F(FileDiskTest, AFailedSyncIsFinal) {
  const auto disk = open(OpenMode::create);
  ASSERT_TRUE(disk->sync().ok());
  const std::string expected = path_ + ": cannot sync it: Input/output error";
  test::with_failing_syscall(SYS_fdatasync, EIO, [&] {
    const Result<void> failed = disk->sync();
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().code, Errc::io_error);
    EXPECT_EQ(failed.error().message, expected);
  });
  // The kernel would now succeed; the disk must not.
  ASSERT_FALSE(disk->sync().ok());
  EXPECT_EQ(disk->sync().error().message, expected);
}

TEST_F(FileDiskTest, FailedWritesNameTheirPlaceAndReason) {
  const auto disk = open(OpenMode::create);
  const std::pair<int, Errc> cases[] = {{ENOSPC, Errc::no_space},
                                        {EDQUOT, Errc::no_space},
                                        {EROFS, Errc::read_only},
                                        {EIO, Errc::io_error}};
  for (const auto& [error_number, code] : cases) {
    test::with_failing_syscall(SYS_pwritev, error_number, [&, code = code] {
      const Result<void> failed = disk->write(12288, Bytes(4096));
      ASSERT_FALSE(failed.ok());
      EXPECT_EQ(failed.error().code, code);
      EXPECT_EQ(failed.error().message.find(path_ + ": cannot write 4096 bytes at offset 12288: "),
                0U);
    });
  }
  EXPECT_EQ(disk->size_bytes(), 8192U) << "what failed is not counted";
}

// The limit on file sizes cuts the write short first, and refuses the rest.
TEST_F(FileDiskTest, APartialWriteIsContinued) {
  const auto disk = open(OpenMode::create);
  const Bytes data = pattern(8192, 6);
  EXPECT_TRUE(in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{12288, 12288};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
    const Result<void> failed = disk->write(8192, data);
    return !failed.ok() && failed.error().code == Errc::no_space &&
           failed.error().message ==
               path_ + ": cannot write 4096 bytes at offset 12288: File too large";
  }));
  EXPECT_EQ(fs::file_size(path_), 12288U);
  EXPECT_EQ(content(*disk, 8192, 4096), Bytes(data.begin(), data.begin() + 4096));
}

TEST_F(FileDiskTest, PrepareFillsHolesAndKeepsData) {
  const auto disk = open(OpenMode::create);
  const Bytes data = pattern(4096, 7);
  ASSERT_TRUE(disk->write(1 << 20, data).ok());
  ASSERT_TRUE(disk->prepare(8192, 3 << 20).ok());
  EXPECT_EQ(content(*disk, 1 << 20, 4096), data);
  EXPECT_EQ(content(*disk, 2 << 20, 4096), Bytes(4096));
  struct statfs where {};
  ASSERT_EQ(::statfs(path_.c_str(), &where), 0);
  if (where.f_type == TMPFS_MAGIC) {  // nothing to gain there
    EXPECT_EQ(disk->size_bytes(), (1U << 20) + 4096);
    return;
  }
  EXPECT_EQ(disk->size_bytes(), 8192U + (3 << 20));
  ASSERT_TRUE(disk->sync().ok());
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_GE(status.st_blocks * 512, 3 << 20);
}

TEST_F(FileDiskTest, DiscardGivesSpaceBackAndKeepsTheSize) {
  const auto disk = open(OpenMode::create);
  const Bytes data = pattern(4 << 20, 8);
  ASSERT_TRUE(disk->write(8192, data).ok());
  ASSERT_TRUE(disk->sync().ok());
  struct stat before {};
  ASSERT_EQ(::stat(path_.c_str(), &before), 0);
  ASSERT_TRUE(disk->discard(8192 + 4096, (4 << 20) - 8192).ok());
  struct stat after {};
  ASSERT_EQ(::stat(path_.c_str(), &after), 0);
  EXPECT_EQ(after.st_size, before.st_size);
  EXPECT_LT(after.st_blocks, before.st_blocks);
  EXPECT_EQ(content(*disk, 8192, 4096), Bytes(data.begin(), data.begin() + 4096));
  test::with_failing_syscall(SYS_fallocate, EOPNOTSUPP,
                             [&] { EXPECT_TRUE(disk->discard(8192, 4096).ok()); });
  test::with_failing_syscall(SYS_fallocate, EIO, [&] {
    EXPECT_EQ(disk->discard(8192, 4096).error().code, Errc::io_error);
  });
}

TEST_F(FileDiskTest, ServesManyThreads) {
  const auto disk = open(OpenMode::create);
  constexpr unsigned kThreads = 4;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&disk, t] {
      Bytes out(4096);
      for (unsigned i = 0; i < 50; ++i) {
        const uint64_t offset = 8192 + uint64_t{4096} * (i * kThreads + t);
        const Bytes data = pattern(4096, t * 50 + i);
        EXPECT_TRUE(disk->write(offset, data).ok());
        disk->start_writeback(offset, data.size());
        EXPECT_TRUE(disk->read(offset, out).ok());
        EXPECT_EQ(out, data);
        if (i % 16 == 0) {
          EXPECT_TRUE(disk->sync().ok());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(disk->size_bytes(), 8192 + uint64_t{4096} * 50 * kThreads);
}

}  // namespace
}  // namespace vellum::disk

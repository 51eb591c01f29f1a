// SPDX-License-Identifier: BSD-2-Clause
//
// FileDisk on a block device: a loop device over a file. Needs root and the kernel's loop driver;
// who has not got them can say so with VELLUM_WITHOUT_LOOP=1.
#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>

#include "common/disk/descriptor.hpp"
#include "common/disk/file_disk.hpp"

namespace vellum::disk {
namespace {

using Bytes = std::vector<std::byte>;
constexpr uint64_t kDeviceBytes = 8 << 20;

// The number of a loop device that was made to show `file`, or -1 with errno. The kernel dissolves
// it when `device`, and all who opened it, are closed.
int attach_loop(int control, int file, Descriptor& device) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    const int number = ::ioctl(control, LOOP_CTL_GET_FREE);
    if (number < 0) return -1;
    device = Descriptor(::open(("/dev/loop" + std::to_string(number)).c_str(), O_RDWR | O_CLOEXEC));
    loop_config config{};
    config.fd = static_cast<uint32_t>(file);
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
    if (device.valid() && ::ioctl(device.number(), LOOP_CONFIGURE, &config) == 0) return number;
    if (device.valid() && errno != EBUSY) return -1;  // busy: somebody else was faster
  }
  return -1;
}

class BlockDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    const Descriptor control(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
    if (std::getenv("VELLUM_WITHOUT_LOOP") != nullptr) GTEST_SKIP();
    ASSERT_TRUE(control.valid()) << "/dev/loop-control: " << std::strerror(errno);
    std::string name = (std::filesystem::temp_directory_path() / "vellum-device-XXXXXX").string();
    const Descriptor file(::mkstemp(name.data()));
    ASSERT_TRUE(file.valid());
    ::unlink(name.c_str());
    ASSERT_EQ(::ftruncate(file.number(), kDeviceBytes), 0);
    const int number = attach_loop(control.number(), file.number(), device_);
    ASSERT_GE(number, 0) << "a loop device: " << std::strerror(errno);
    path_ = "/dev/loop" + std::to_string(number);
  }

  std::unique_ptr<FileDisk> open(OpenMode mode) {
    Result<std::unique_ptr<FileDisk>> disk = FileDisk::open(path_, mode);
    EXPECT_TRUE(disk.ok()) << (disk.ok() ? "" : disk.error().message);
    return disk.ok() ? std::move(*disk) : nullptr;
  }
  Error refusal(OpenMode mode) {
    const Result<std::unique_ptr<FileDisk>> disk = FileDisk::open(path_, mode);
    EXPECT_FALSE(disk.ok());
    return disk.ok() ? Error{Errc::invalid_argument, "opened"} : disk.error();
  }
  void put(uint64_t offset, std::string_view what) {
    ASSERT_EQ(::pwrite(device_.number(), what.data(), what.size(), static_cast<off_t>(offset)),
              static_cast<ssize_t>(what.size()));
  }

  Descriptor device_;
  std::string path_;
};

TEST_F(BlockDeviceTest, HasItsSizeAndKeepsItsData) {
  const Bytes data(8192, std::byte{7});
  {
    const auto disk = open(OpenMode::create);
    ASSERT_NE(disk, nullptr);
    EXPECT_EQ(disk->size_bytes(), kDeviceBytes);
    EXPECT_FALSE(disk->can_grow());
    ASSERT_TRUE(disk->write(1 << 20, data).ok());
    ASSERT_TRUE(disk->sync().ok());
  }
  const auto disk = open(OpenMode::existing);
  Bytes out(8192);
  ASSERT_TRUE(disk->read(1 << 20, out).ok());
  EXPECT_EQ(out, data);
  ASSERT_TRUE(disk->read(1 << 20, out, Wait::never).ok());
}

TEST_F(BlockDeviceTest, EndsAtItsEnd) {
  const auto disk = open(OpenMode::create);
  ASSERT_NE(disk, nullptr);
  const Result<void> failed = disk->write(kDeviceBytes - 4096, Bytes(8192));
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, Errc::no_space) << failed.error().message;
  EXPECT_EQ(disk->size_bytes(), kDeviceBytes);
  Bytes out(8192, std::byte{9});
  ASSERT_TRUE(disk->read(kDeviceBytes - 4096, out).ok());
  EXPECT_EQ(out, Bytes(8192));
}

TEST_F(BlockDeviceTest, CreationRefusesWhatIsSeen) {
  put(0x438, "\x53\xef");
  const Error error = refusal(OpenMode::create);
  EXPECT_EQ(error.code, Errc::exists);
  EXPECT_EQ(error.message, path_ +
                               " holds an ext2, ext3 or ext4 file system; force the creation to "
                               "give it up");
  const auto disk = open(OpenMode::create_forced);
  Bytes out(4096, std::byte{9});
  ASSERT_TRUE(disk->read(0, out).ok());
  EXPECT_EQ(out, Bytes(4096)) << "the old signature is gone";
}

TEST_F(BlockDeviceTest, CreationSeesTheLastBytesToo) {
  put(kDeviceBytes - 512, "backup");
  EXPECT_NE(refusal(OpenMode::create).message.find("512 bytes before its end"), std::string::npos);
}

TEST_F(BlockDeviceTest, CreationRefusesAnotherStore) {
  { EXPECT_NE(open(OpenMode::create), nullptr); }
  EXPECT_NE(refusal(OpenMode::create).message.find("holds a Vellum store"), std::string::npos);
}

// P14
TEST_F(BlockDeviceTest, SecondOpenerIsRefusedWithTheOwnersPid) {
  const auto disk = open(OpenMode::create);
  const std::string expected = path_ + " is in use by process " + std::to_string(::getpid());
  for (const OpenMode mode : {OpenMode::existing, OpenMode::inspect, OpenMode::create_forced}) {
    const Error error = refusal(mode);
    EXPECT_EQ(error.code, Errc::in_use);
    EXPECT_EQ(error.message, expected);
  }
}

TEST_F(BlockDeviceTest, PrepareAndDiscardSucceed) {
  const auto disk = open(OpenMode::create);
  ASSERT_NE(disk, nullptr);
  const Bytes data(4096, std::byte{5});
  ASSERT_TRUE(disk->write(1 << 20, data).ok());
  EXPECT_TRUE(disk->prepare(2 << 20, 1 << 20).ok());
  EXPECT_TRUE(disk->discard(4 << 20, 1 << 20).ok());
  Bytes out(4096);
  ASSERT_TRUE(disk->read(1 << 20, out).ok());
  EXPECT_EQ(out, data);
}

}  // namespace
}  // namespace vellum::disk

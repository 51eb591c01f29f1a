// SPDX-License-Identifier: BSD-2-Clause
#include "common/store/record.hpp"

#include <cstring>

#include "common/base/endian.hpp"

namespace vellum::store {

namespace {

template <typename T>
void put(std::vector<std::byte>& to, T value, size_t bytes = sizeof(T)) {
  const auto* from = reinterpret_cast<const std::byte*>(&value);
  to.insert(to.end(), from, from + bytes);
}

void put_name(std::vector<std::byte>& to, std::string_view name) {
  CHECK(name.size() < 256);
  put(to, static_cast<uint8_t>(name.size()));
  const auto* from = reinterpret_cast<const std::byte*>(name.data());
  to.insert(to.end(), from, from + name.size());
}

void put_uuid(std::vector<std::byte>& to, const Uuid& uuid) {
  to.insert(to.end(), uuid.begin(), uuid.end());
}

// Takes values from the front of a record; anything missing makes it bad for good.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {}

  template <typename T>
  T get(size_t bytes = sizeof(T)) {
    T value{};
    if (take(bytes)) std::memcpy(&value, at_, bytes);
    return value;
  }
  std::string text(size_t length) {
    if (!take(length)) return {};
    return {reinterpret_cast<const char*>(at_), length};
  }
  std::string name() { return text(get<uint8_t>()); }
  Uuid uuid() {
    Uuid uuid{};
    if (take(uuid.size())) std::memcpy(uuid.data(), at_, uuid.size());
    return uuid;
  }
  bool good() const { return good_; }
  bool more() const { return good_ && !left_.empty(); }
  size_t left() const { return left_.size(); }
  void fail() { good_ = false; }

 private:
  bool take(size_t bytes) {
    if (!good_ || left_.size() < bytes) return good_ = false;
    at_ = left_.data();
    left_ = left_.subspan(bytes);
    return true;
  }
  std::span<const std::byte> left_;
  const std::byte* at_ = nullptr;
  bool good_ = true;
};

template <typename T>
struct Codec;

template <>
struct Codec<WritePiece> {
  static void put_body(std::vector<std::byte>& to, const WritePiece& piece) {
    encode_write(piece.version, piece.block, piece.runs, piece.crcs, to);
  }
  static WritePiece get(Reader& from) {
    WritePiece piece;
    if (from.get<uint8_t>() != 0) from.fail();
    const uint64_t count = from.get<uint16_t>();
    piece.version = from.get<uint32_t>();
    piece.block = from.get<uint64_t>();
    for (uint64_t named = 0; named < count && from.good();) {
      Run run{from.get<uint64_t>(6), from.get<uint16_t>()};
      if (run.count == 0 || run.count > count - named) from.fail();
      named += run.count;
      piece.runs.push_back(run);
    }
    if (count == 0 || from.left() < count * 4) from.fail();
    for (uint64_t i = 0; i < count && from.good(); i++) piece.crcs.push_back(from.get<uint32_t>());
    return piece;
  }
};

template <>
struct Codec<TrimPiece> {
  static void put_body(std::vector<std::byte>& to, const TrimPiece& piece) {
    put(to, piece.version);
    put(to, piece.block);
    put(to, piece.count);
  }
  static TrimPiece get(Reader& from) {
    TrimPiece piece;
    piece.version = from.get<uint32_t>();
    piece.block = from.get<uint64_t>();
    piece.count = from.get<uint64_t>();
    return piece;
  }
};

void put_volume(std::vector<std::byte>& to, const NewVolume& volume) {
  put(to, volume.id);
  put(to, volume.version);
  put_uuid(to, volume.uuid);
  put(to, volume.size);
  put(to, volume.created);
  put(to, static_cast<uint8_t>(volume.provision));
  put_name(to, volume.name);
}

NewVolume get_volume(Reader& from) {
  NewVolume volume;
  volume.id = from.get<uint64_t>();
  volume.version = from.get<uint32_t>();
  volume.uuid = from.uuid();
  volume.size = from.get<uint64_t>();
  volume.created = from.get<int64_t>();
  const auto provision = from.get<uint8_t>();
  if (provision > 1) from.fail();
  volume.provision = static_cast<Provision>(provision);
  volume.name = from.name();
  return volume;
}

template <>
struct Codec<CreateVolumePiece> {
  static void put_body(std::vector<std::byte>& to, const CreateVolumePiece& piece) {
    put_volume(to, piece.volume);
  }
  static CreateVolumePiece get(Reader& from) { return {get_volume(from)}; }
};

template <>
struct Codec<RenamePiece> {
  static void put_body(std::vector<std::byte>& to, const RenamePiece& piece) {
    put(to, piece.id);
    put_name(to, piece.name);
  }
  static RenamePiece get(Reader& from) {
    RenamePiece piece;
    piece.id = from.get<uint64_t>();
    piece.name = from.name();
    return piece;
  }
};

template <>
struct Codec<ResizePiece> {
  static void put_body(std::vector<std::byte>& to, const ResizePiece& piece) {
    put(to, piece.id);
    put(to, piece.size);
  }
  static ResizePiece get(Reader& from) {
    ResizePiece piece;
    piece.id = from.get<uint64_t>();
    piece.size = from.get<uint64_t>();
    return piece;
  }
};

template <>
struct Codec<SnapshotPiece> {
  static void put_body(std::vector<std::byte>& to, const SnapshotPiece& piece) {
    put(to, piece.volume);
    put(to, piece.id);
    put(to, piece.new_head);
    put_uuid(to, piece.uuid);
    put(to, piece.created);
    put(to, piece.next_number);
    put_name(to, piece.suffix);
  }
  static SnapshotPiece get(Reader& from) {
    SnapshotPiece piece;
    piece.volume = from.get<uint64_t>();
    piece.id = from.get<uint64_t>();
    piece.new_head = from.get<uint32_t>();
    piece.uuid = from.uuid();
    piece.created = from.get<int64_t>();
    piece.next_number = from.get<uint64_t>();
    piece.suffix = from.name();
    return piece;
  }
};

template <>
struct Codec<SplitPiece> {
  static void put_body(std::vector<std::byte>& to, const SplitPiece& piece) {
    put(to, piece.volume);
    put(to, piece.new_head);
  }
  static SplitPiece get(Reader& from) {
    SplitPiece piece;
    piece.volume = from.get<uint64_t>();
    piece.new_head = from.get<uint32_t>();
    return piece;
  }
};

template <>
struct Codec<ClonePiece> {
  static void put_body(std::vector<std::byte>& to, const ClonePiece& piece) {
    put(to, piece.parent);
    put_volume(to, piece.volume);
  }
  static ClonePiece get(Reader& from) {
    ClonePiece piece;
    piece.parent = from.get<uint32_t>();
    piece.volume = get_volume(from);
    return piece;
  }
};

template <>
struct Codec<SwitchPiece> {
  static void put_body(std::vector<std::byte>& to, const SwitchPiece& piece) {
    put(to, piece.volume);
    put(to, piece.parent);
    put(to, piece.new_head);
    put(to, piece.size);
  }
  static SwitchPiece get(Reader& from) {
    SwitchPiece piece;
    piece.volume = from.get<uint64_t>();
    piece.parent = from.get<uint32_t>();
    piece.new_head = from.get<uint32_t>();
    piece.size = from.get<uint64_t>();
    return piece;
  }
};

template <typename T>
struct IdCodec {
  static void put_body(std::vector<std::byte>& to, const T& piece) { put(to, piece.id); }
  static T get(Reader& from) { return {from.get<uint64_t>()}; }
};
template <>
struct Codec<EradicateVolumePiece> : IdCodec<EradicateVolumePiece> {};
template <>
struct Codec<EradicateSnapshotPiece> : IdCodec<EradicateSnapshotPiece> {};

template <>
struct Codec<AnswerPiece> {
  static void put_body(std::vector<std::byte>& to, const AnswerPiece& piece) {
    put(to, piece.slot);
    put(to, piece.expires);
    put_name(to, piece.request_id);
    put(to, static_cast<uint32_t>(piece.text.size()));
    const auto* from = reinterpret_cast<const std::byte*>(piece.text.data());
    to.insert(to.end(), from, from + piece.text.size());
  }
  static AnswerPiece get(Reader& from) {
    AnswerPiece piece;
    piece.slot = from.get<uint32_t>();
    piece.expires = from.get<int64_t>();
    piece.request_id = from.name();
    piece.text = from.text(from.get<uint32_t>());
    return piece;
  }
};

template <>
struct Codec<BeginReclaimPiece> {
  static void put_body(std::vector<std::byte>& to, const BeginReclaimPiece& piece) {
    put(to, piece.version);
    put(to, static_cast<uint8_t>(piece.job));
  }
  static BeginReclaimPiece get(Reader& from) {
    BeginReclaimPiece piece;
    piece.version = from.get<uint32_t>();
    piece.job = static_cast<Job>(from.get<uint8_t>());
    if (piece.job < Job::drop || piece.job > Job::sweep) from.fail();
    return piece;
  }
};

template <>
struct Codec<ReclaimStepPiece> {
  static constexpr uint8_t kFinished = 255, kGivenUp = 254;
  static void put_body(std::vector<std::byte>& to, const ReclaimStepPiece& piece) {
    put(to, piece.version);
    put(to, piece.reached.end);
    const auto level = static_cast<uint8_t>(piece.reached.level);
    put(to, piece.finished ? kFinished : piece.given_up ? kGivenUp : level);
  }
  static ReclaimStepPiece get(Reader& from) {
    ReclaimStepPiece piece;
    piece.version = from.get<uint32_t>();
    piece.reached.end = from.get<uint64_t>();
    const auto level = from.get<uint8_t>();
    piece.finished = level == kFinished;
    piece.given_up = level == kGivenUp;
    if (piece.finished || piece.given_up) return piece;
    piece.reached.level = level;
    if (level > kLevels) from.fail();
    return piece;
  }
};

template <>
struct Codec<DestroyPiece> {
  static void put_body(std::vector<std::byte>& to, const DestroyPiece& piece) {
    put(to, piece.id);
    put(to, piece.eradicate_at);
  }
  static DestroyPiece get(Reader& from) {
    DestroyPiece piece;
    piece.id = from.get<uint64_t>();
    piece.eradicate_at = from.get<int64_t>();
    if (piece.eradicate_at < 0 || piece.eradicate_at > kTimeMax) from.fail();
    return piece;
  }
};

template <>
struct Codec<RecoverPiece> : IdCodec<RecoverPiece> {};

template <>
struct Codec<EradicationDelayPiece> {
  static void put_body(std::vector<std::byte>& to, const EradicationDelayPiece& piece) {
    put(to, piece.milliseconds);
  }
  static EradicationDelayPiece get(Reader& from) {
    const auto milliseconds = from.get<int64_t>();
    if (milliseconds < 0 || milliseconds > kEradicationDelayMax) from.fail();
    return {milliseconds};
  }
};

template <>
struct Codec<ReclaimSkipPiece> {
  static void put_body(std::vector<std::byte>& to, const ReclaimSkipPiece& piece) {
    put(to, piece.version);
    put(to, piece.reached.end);
    put(to, static_cast<uint8_t>(piece.reached.level));
  }
  static ReclaimSkipPiece get(Reader& from) {
    ReclaimSkipPiece piece;
    piece.version = from.get<uint32_t>();
    piece.reached.end = from.get<uint64_t>();
    piece.reached.level = from.get<uint8_t>();
    if (piece.reached > kCursorEnd || piece.reached.level > kLevels) from.fail();
    return piece;
  }
};

template <size_t I = 0>
Piece get_piece(size_t type, Reader& from) {
  if constexpr (I < std::variant_size_v<Piece>) {
    if (type == I + 1) return Codec<std::variant_alternative_t<I, Piece>>::get(from);
    return get_piece<I + 1>(type, from);
  } else {
    from.fail();
    return TrimPiece{};
  }
}

}  // namespace

void encode_write(VersionId version, uint64_t block, std::span<const Run> runs,
                  std::span<const uint32_t> crcs, std::vector<std::byte>& to) {
  put(to, uint8_t{1});
  put(to, uint8_t{0});
  put(to, static_cast<uint16_t>(crcs.size()));
  put(to, version);
  put(to, block);
  for (const Run& run : runs) {
    put(to, run.block, 6);
    put(to, static_cast<uint16_t>(run.count));
  }
  for (const uint32_t crc : crcs) put(to, crc);
}

void encode(const Piece& piece, std::vector<std::byte>& to) {
  std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (!std::is_same_v<T, WritePiece>) {
          put(to, static_cast<uint8_t>(piece.index() + 1));
        }
        Codec<T>::put_body(to, value);
      },
      piece);
}

std::optional<std::vector<Piece>> decode(std::span<const std::byte> record) {
  Reader reader(record);
  std::vector<Piece> pieces;
  while (reader.more()) {
    const auto type = reader.get<uint8_t>();
    pieces.push_back(get_piece(type, reader));
  }
  if (!reader.good() || pieces.empty()) return std::nullopt;
  return pieces;
}

}  // namespace vellum::store

// One message as a handler sees it: a view, valid until the record's outcome.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tenure/ids.hpp"
#include "tenure/source_types.hpp"

namespace tenure {

/// Bytes that may be absent: a null key or value is not an empty one. A view.
class Bytes {
 public:
  constexpr Bytes() = default;  ///< null
  constexpr Bytes(const char* data, std::size_t size) : data_(data), size_(size) {}
  constexpr explicit Bytes(std::string_view text) : data_(text.data()), size_(text.size()) {}
  [[nodiscard]] constexpr bool null() const { return data_ == nullptr; }
  [[nodiscard]] constexpr bool empty() const { return size_ == 0; }
  [[nodiscard]] constexpr std::size_t size() const { return size_; }
  [[nodiscard]] constexpr const char* data() const { return data_; }
  /// Empty text for null.
  [[nodiscard]] constexpr std::string_view text() const {
    return data_ == nullptr ? std::string_view{} : std::string_view(data_, size_);
  }
  friend constexpr bool operator==(Bytes a, Bytes b) {
    return a.null() == b.null() && a.text() == b.text();
  }

 private:
  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Key, value and timestamp of one message, read from the client's own object.
struct MessageView {
  Bytes key;
  Bytes value;
  std::int64_t timestamp_ms = -1;  ///< -1 = the message has none
};

using Header = std::pair<std::string_view, Bytes>;

/// Reads the client's messages. Thread-safe; a handle is valid until it is released.
class MessageReader {
 public:
  virtual ~MessageReader() = default;
  /// Fills `views`, as long as `messages`.
  virtual void view(std::span<const MessageHandle> messages,
                    std::span<MessageView> views) const = 0;
  /// All headers in order; names may repeat.
  [[nodiscard]] virtual std::vector<Header> headers(MessageHandle message) const = 0;
};

/// What all records of one owner share. Immutable; outlives its records.
struct RecordOrigin {
  std::string topic;
  Partition partition;
  std::string cluster;
  Uuid topic_id;
  std::string group;
  std::string scope;
  const MessageReader* reader = nullptr;
};

/// A view; any thread, read only; until the record's outcome.
class Record {
 public:
  Record(const RecordOrigin& origin, MessageHandle message, const MessageView& view, Offset offset,
         LeaderEpoch leader_epoch, std::uint16_t attempt, std::uint16_t lane, Offset lane_from)
      : origin_(&origin), message_(message), view_(view), offset_(offset),
        leader_epoch_(leader_epoch), attempt_(attempt), lane_(lane), lane_from_(lane_from) {}

  [[nodiscard]] const std::string& topic() const { return origin_->topic; }
  [[nodiscard]] std::int32_t partition() const { return origin_->partition.value(); }
  [[nodiscard]] std::int64_t offset() const { return offset_.value(); }
  [[nodiscard]] Bytes key() const { return view_.key; }
  [[nodiscard]] Bytes value() const { return view_.value; }
  /// Last header of that name; null when absent.
  [[nodiscard]] Bytes header(std::string_view name) const;
  [[nodiscard]] std::vector<Header> headers() const { return origin_->reader->headers(message_); }
  /// Milliseconds since 1970; -1 when the message has none.
  [[nodiscard]] std::int64_t timestamp_ms() const { return view_.timestamp_ms; }
  /// 1 = first; counted per grant, in memory.
  [[nodiscard]] std::uint16_t attempt() const { return attempt_; }
  /// `<cluster id>/<topic id>/<partition>/<offset>`: equal at every replay.
  [[nodiscard]] std::string identity() const;
  [[nodiscard]] LeaderEpoch leader_epoch() const { return leader_epoch_; }

  /// Lane of the store and its progress before this record (kind transaction), for adapters.
  [[nodiscard]] std::uint16_t lane() const { return lane_; }
  [[nodiscard]] Offset lane_from() const { return lane_from_; }
  [[nodiscard]] const RecordOrigin& origin() const { return *origin_; }

 private:
  const RecordOrigin* origin_;
  MessageHandle message_;
  MessageView view_;
  Offset offset_;
  LeaderEpoch leader_epoch_;
  std::uint16_t attempt_;
  std::uint16_t lane_;
  Offset lane_from_;
};

}  // namespace tenure

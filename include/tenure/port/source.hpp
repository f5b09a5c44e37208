// Where records come from and commits go to: a member of a consumer group.
//
// Threads: every method is called by the Runtime's loop thread, except MessageReader's, which
//   are thread-safe. No method waits for a broker. What happens is handed to the SourceSink
//   during poll_events() and poll_records() only.
// Lifetime: outlives the Runtime. Between close/abandon and the next open() it holds no client.
// Implementations: kafka::make_source (librdkafka); the simulator's; the testing kit's.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tenure/event.hpp"
#include "tenure/ids.hpp"
#include "tenure/record.hpp"
#include "tenure/result.hpp"
#include "tenure/source_types.hpp"
#include "tenure/time.hpp"

namespace tenure {

/// Times of the membership that budgets are computed from (R7, R8, C1).
struct MembershipTimes {
  Duration session{};        ///< lease: client session timeout; KIP-848: the broker's, else 45 s
  Duration heartbeat{};      ///< KIP-848: the broker's, else 5 s
  Duration poll_limit{};     ///< max.poll.interval.ms
  Duration socket_timeout{}; ///< socket.timeout.ms
};

/// Receives what the client reports. Loop thread, inside poll_*.
class SourceSink {
 public:
  virtual ~SourceSink() = default;
  virtual void rebalance(const Rebalance& rebalance) = 0;
  /// One owner, offsets ascending. The sink takes over the messages. Stale messages of a former
  /// grant never reach it.
  virtual void delivered(OwnerRef owner, std::span<const Delivered> records) = 0;
  virtual void reached(const Reached& reached) = 0;
  virtual void record_error(const RecordError& error) = 0;
  virtual void commit_answered(const CommitAnswer& answer) = 0;
  virtual void committed_read(const CommittedRead& read) = 0;
  virtual void topics_read(const TopicsRead& read) = 0;
  virtual void log_ends_read(const LogEndsRead& read) = 0;
  virtual void client_error(const ClientError& error) = 0;
  /// The times became known or changed; always once before the first rebalance.
  virtual void times(const MembershipTimes& times) = 0;
  virtual void closed() = 0;
  virtual void client_log(Level level, std::string_view facility, std::string_view text) = 0;
};

class Source : public MessageReader {
 public:
  /// Creates a client and subscribes; a new client each time (R11). `waker` is called from any
  /// thread when poll_events() or poll_records() may have something to give; it only signals.
  virtual Result<void> open(SourceSink& sink, std::function<void()> waker) = 0;

  /// Hands over everything but records: rebalances, errors, answers. Also counts as the poll
  /// that keeps the membership alive: call it at least every second.
  virtual void poll_events() = 0;
  /// Hands over at most about `records_max` records of partitions whose flow is open. Returns
  /// how many. 0 = none there now.
  virtual std::size_t poll_records(std::size_t records_max) = 0;

  /// Answers an assign: the partitions are taken at a placeholder position and stand still until
  /// start() (O6). Once for every Rebalance (R5). With a protocol that adds to the assignment
  /// the list is what is added, else all there is. False: the event was overtaken or the client
  /// is gone; nothing was applied.
  virtual bool answer_assign(RebalanceId id, std::span<const GrantedPartition> granted) = 0;
  /// Answers a revoke: nothing of these partitions is delivered from here on. After an
  /// incremental answer the source wakes the fetch of kept partitions itself (trap 2).
  virtual bool answer_revoke(RebalanceId id, std::span<const TopicPartition> revoked) = 0;

  /// Starts, or moves, delivery. A record below `offset` is never handed over afterwards. The
  /// reference may be a new one for a partition that is already assigned (T8): its records are
  /// delivered under it from now on. Failure is reported as record_error().
  virtual void start(std::span<const StartAt> starts) = 0;
  /// Closed: what the client has prefetched stays there, nothing is lost, others are not
  /// affected; what was on its way may still come. Not a pause.
  virtual void set_flow(OwnerRef owner, bool open) = 0;
  /// Closes delivery for good (retired, log went back): nothing is handed over for this owner
  /// any more, before or after the release.
  virtual void forget(OwnerRef owner) = 0;

  /// Sends one explicit commit list; answered once by commit_answered(), or never.
  virtual void commit(CommitId id, std::span<const CommitLine> lines) = 0;

  // Reads: each answered once by the sink, with errors inside, or never.
  virtual void read_committed(ReadId id, std::span<const TopicPartition> partitions) = 0;
  virtual void read_topics(ReadId id, std::span<const std::string> topics) = 0;
  virtual void read_log_ends(ReadId id, std::span<const TopicPartition> partitions) = 0;

  /// As the client knows it at this moment (R5b).
  [[nodiscard]] virtual Member member() = 0;

  /// Begins to leave the group and close; rebalances may still come and must be answered;
  /// ends with closed().
  virtual void close() = 0;
  /// Gives the client up without waiting: a watchdog ended, or R5b/R11 asks for a new one. Its
  /// messages stay readable until released. Nothing of it is delivered any more.
  virtual void abandon() = 0;

  /// Frees messages, also those of a client that was closed or abandoned.
  virtual void release(std::span<const MessageHandle> messages) = 0;
};

}  // namespace tenure

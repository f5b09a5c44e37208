// The group coordinator of a simulated cluster: classic (eager, cooperative) and consumer
// (KIP-848), as members see it. Commits are checked by member and generation only, never by
// ownership of the partition (broker-fencing.md).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "property/world_time.hpp"
#include "tenure/ids.hpp"
#include "tenure/source_types.hpp"

namespace tenure::test {

class Group {
 public:
  struct Sync {
    std::string id;
    std::int32_t epoch = -1;
    std::set<int> partitions;
  };
  struct Beat {
    BrokerError error = BrokerError::none;
    std::int32_t epoch = -1;   ///< consumer
    std::set<int> partitions;  ///< consumer: what the member may have now
  };

  Group(Schedule& schedule, Draw& draw, Protocol protocol, int partitions, Duration session,
        Duration rebalance_timeout)
      : schedule_(schedule),
        draw_(draw),
        protocol_(protocol),
        partitions_(partitions),
        session_(session),
        rebalance_timeout_(rebalance_timeout) {}

  // ---- classic ----------------------------------------------------------------------------------

  /// `answer` is called when the rebalance completes; `unknown` at once when the id is.
  void join(const std::string& id, std::set<int> owned, std::int32_t owned_epoch,
            std::function<void(const Sync&)> answer, const std::function<void()>& unknown) {
    if (!id.empty() && !members_.contains(id)) {
      unknown();
      return;
    }
    const std::string mine = id.empty() ? "m-" + std::to_string(++last_member_) : id;
    Member& member = members_[mine];
    begin();
    member.joined = true;
    member.heard = schedule_.now();
    member.owned = std::move(owned);
    member.owned_epoch = owned_epoch;
    member.answer = std::move(answer);
    complete_if_all();
  }

  Beat heartbeat(const std::string& id, std::int32_t epoch) {
    const auto found = members_.find(id);
    if (found == members_.end()) return {BrokerError::unknown_member_id, -1, {}};
    if (epoch != epoch_) return {BrokerError::illegal_generation, -1, {}};
    found->second.heard = schedule_.now();
    return {preparing_ ? BrokerError::rebalance_in_progress : BrokerError::none, -1, {}};
  }

  // ---- consumer ---------------------------------------------------------------------------------

  Beat heartbeat(const std::string& id, std::int32_t epoch, const std::set<int>& owned) {
    if (epoch == 0 && !members_.contains(id)) {
      members_[id].heard = schedule_.now();
      ++epoch_;
      retarget();
    }
    const auto found = members_.find(id);
    if (found == members_.end()) return {BrokerError::unknown_member_id, -1, {}};
    Member& member = found->second;
    if (epoch == 0 && member.epoch != 0) {
      // The former life of the same id is over.
      member = Member{};
      ++epoch_;
      retarget();
    } else if (epoch != member.epoch && epoch != member.former_epoch) {
      return {BrokerError::fenced_member_epoch, -1, {}};
    }
    member.heard = schedule_.now();
    std::set<int> kept;
    bool acknowledged = true;
    for (const int p : member.owned) {
      if (member.target.contains(p)) {
        kept.insert(p);
      } else if (owned.contains(p)) {
        acknowledged = false;
      }
    }
    if (!acknowledged) {
      if (member.revoking_since == never) member.revoking_since = schedule_.now();
      return {BrokerError::none, member.epoch, kept};
    }
    member.revoking_since = never;
    member.owned = kept;
    for (const int p : member.target) {
      const bool taken = std::any_of(members_.begin(), members_.end(), [&](const auto& other) {
        return other.first != id && other.second.owned.contains(p);
      });
      if (!taken) member.owned.insert(p);
    }
    if (member.epoch != epoch_) member.former_epoch = member.epoch;
    member.epoch = epoch_;
    return {BrokerError::none, member.epoch, member.owned};
  }

  // ---- both -------------------------------------------------------------------------------------

  void leave(const std::string& id) {
    if (members_.erase(id) != 0) changed();
  }

  BrokerError may_commit(const std::string& id, std::int32_t epoch) {
    if (epoch < 0 && id.empty()) {
      return members_.empty() ? BrokerError::none : BrokerError::unknown_member_id;
    }
    const auto found = members_.find(id);
    if (found == members_.end()) return BrokerError::unknown_member_id;
    if (protocol_ == Protocol::consumer) {
      if (epoch < found->second.epoch) return BrokerError::stale_member_epoch;
      if (epoch > found->second.epoch) return BrokerError::fenced_member_epoch;
      return BrokerError::none;
    }
    if (epoch != epoch_) return BrokerError::illegal_generation;
    found->second.heard = schedule_.now();
    return BrokerError::none;
  }

  /// Expiry of members and of a rebalance; call it often. While the coordinator is away nobody
  /// expires.
  void tick(bool away) {
    const Instant now = schedule_.now();
    std::vector<std::string> gone;
    for (auto& [id, member] : members_) {
      if (away) {
        member.heard = now;
        continue;
      }
      const bool waits = member.joined && preparing_;
      const bool stuck =
          member.revoking_since != never && now - member.revoking_since > rebalance_timeout_;
      if ((!waits && now - member.heard > session_) || stuck) gone.push_back(id);
    }
    for (const std::string& id : gone) leave(id);
    if (preparing_ && now - preparing_since_ > rebalance_timeout_) complete();
  }

  [[nodiscard]] std::size_t members() const { return members_.size(); }
  [[nodiscard]] bool settled() const { return !preparing_; }

 private:
  struct Member {
    Instant heard;
    // classic
    bool joined = false;
    std::set<int> owned;  ///< claimed with the join; consumer: what it may have
    std::int32_t owned_epoch = -1;
    std::function<void(const Sync&)> answer;
    // consumer
    std::int32_t epoch = 0;
    std::int32_t former_epoch = 0;
    Instant revoking_since = never;
    std::set<int> target;
  };

  void changed() {
    if (protocol_ == Protocol::consumer) {
      ++epoch_;
      retarget();
    } else if (!members_.empty()) {
      begin();
      complete_if_all();
    } else {
      preparing_ = false;
    }
  }

  void begin() {
    if (preparing_) return;
    preparing_ = true;
    preparing_since_ = schedule_.now();
    for (auto& [id, member] : members_) member.joined = false;
  }

  void complete_if_all() {
    for (const auto& [id, member] : members_) {
      if (!member.joined) return;
    }
    complete();
  }

  void complete() {
    std::erase_if(members_, [](const auto& member) { return !member.second.joined; });
    preparing_ = false;
    ++epoch_;
    retarget();
    for (auto& [id, member] : members_) {
      Sync sync{id, epoch_, {}};
      for (const int p : member.target) {
        bool taken = false;
        if (protocol_ == Protocol::cooperative) {
          // Another member still has it: it comes with the next rebalance. Of two claims the one
          // of the later generation counts.
          const std::int32_t mine = member.owned.contains(p) ? member.owned_epoch : -1;
          for (const auto& [other_id, other] : members_) {
            taken =
                taken || (other_id != id && other.owned.contains(p) && other.owned_epoch > mine);
          }
        }
        if (!taken) sync.partitions.insert(p);
      }
      member.heard = schedule_.now();
      if (member.answer) {
        const auto answer = std::move(member.answer);
        member.answer = nullptr;
        answer(sync);
      }
    }
  }

  /// Balanced and mostly sticky.
  void retarget() {
    if (members_.empty()) return;
    const std::size_t most =
        (static_cast<std::size_t>(partitions_) + members_.size() - 1) / members_.size();
    const bool sticky = protocol_ != Protocol::eager && !draw_.chance(20);
    std::set<int> free;
    for (int p = 0; p < partitions_; ++p) free.insert(p);
    for (auto& [id, member] : members_) {
      std::set<int> kept;
      for (const int p : member.target) {
        if (sticky && kept.size() < most && free.erase(p) != 0) kept.insert(p);
      }
      member.target = std::move(kept);
    }
    for (const int p : free) {
      Member* least = nullptr;
      const std::size_t turn = draw_.below(members_.size());
      for (std::size_t n = 0; n < members_.size(); ++n) {
        auto it = members_.begin();
        std::advance(it, static_cast<std::ptrdiff_t>((n + turn) % members_.size()));
        if (least == nullptr || it->second.target.size() < least->target.size()) {
          least = &it->second;
        }
      }
      least->target.insert(p);
    }
  }

  Schedule& schedule_;
  Draw& draw_;
  const Protocol protocol_;
  const int partitions_;
  const Duration session_, rebalance_timeout_;
  std::map<std::string, Member> members_;
  std::int32_t epoch_ = 0;
  bool preparing_ = false;
  Instant preparing_since_;
  std::uint64_t last_member_ = 0;
};

}  // namespace tenure::test

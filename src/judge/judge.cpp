#include "judge/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace tenure::judge {
namespace {

std::string text(Place at) {
  return fmt::format("partition {} offset {}", at.partition, at.offset);
}

std::string text(const EffectRow& effect) {
  return effect.token ? fmt::format("row {} under token {}", effect.pos, *effect.token)
                      : fmt::format("row {} without a fence", effect.pos);
}

/// Collects findings; keeps the first counterexample of each violation.
class Findings {
 public:
  void add(Violation violation, std::string counterexample) {
    Finding& finding = all_[static_cast<std::size_t>(violation)];
    finding.violation = violation;
    if (finding.count++ == 0) finding.counterexample = std::move(counterexample);
  }
  std::vector<Finding> take() {
    std::vector<Finding> out;
    for (Finding& finding : all_) {
      if (finding.count > 0) out.push_back(std::move(finding));
    }
    return out;
  }

 private:
  std::array<Finding, violations> all_;
};

using Effects = std::vector<const EffectRow*>;

/// J1: exactly one effect a record. Returns what was compared.
std::size_t judge_once(const Evidence& evidence, const Effects& effects, Findings& findings) {
  std::map<Place, std::pair<const InputRecord*, const EffectRow*>> records;
  for (const InputRecord& record : evidence.input) records[record.at].first = &record;
  for (const EffectRow* effect : effects) {
    const auto found = records.find(effect->at);
    if (found == records.end()) {
      findings.add(Violation::ghost, fmt::format("{} has an effect ({}) but the topic has no such "
                                                 "record",
                                                 text(effect->at), text(*effect)));
      continue;
    }
    if (found->second.second == nullptr) {
      found->second.second = effect;
    } else {
      findings.add(Violation::duplicate_effect,
                   fmt::format("{} key {}: {} and {}", text(effect->at), effect->key,
                               text(*found->second.second), text(*effect)));
    }
  }
  for (const auto& [at, pair] : records) {
    if (pair.second == nullptr) {
      findings.add(Violation::lost, fmt::format("{} key {}: the record has no effect", text(at),
                                                pair.first->key));
    }
  }
  return records.size();
}

/// J2: effects of a key ascend. Compares neighbours.
std::size_t judge_order(const Effects& effects, Findings& findings) {
  std::size_t compared = 0;
  std::map<std::pair<std::int32_t, std::string_view>, const EffectRow*> last;
  for (const EffectRow* effect : effects) {
    const EffectRow*& before = last[{effect->at.partition, effect->key}];
    if (before != nullptr) {
      ++compared;
      if (effect->at.offset < before->at.offset) {
        findings.add(Violation::key_reorder,
                     fmt::format("key {} in partition {}: offset {} ({}) came after offset {} ({})",
                                 effect->key, effect->at.partition, effect->at.offset,
                                 text(*effect), before->at.offset, text(*before)));
      }
    }
    before = effect;
  }
  return compared;
}

/// J3: the token of an effect is the newest one activated before it.
std::size_t judge_fence(const Evidence& evidence, const Effects& effects, Findings& findings) {
  std::vector<const FenceRow*> fences;
  for (const FenceRow& fence : evidence.fences) fences.push_back(&fence);
  std::sort(fences.begin(), fences.end(),
            [](const FenceRow* a, const FenceRow* b) { return a->pos < b->pos; });
  std::size_t compared = 0;
  std::size_t next = 0;
  std::map<std::int32_t, const FenceRow*> active;
  for (const EffectRow* effect : effects) {
    for (; next < fences.size() && fences[next]->pos < effect->pos; ++next) {
      const FenceRow*& newest = active[fences[next]->partition];
      if (newest == nullptr || fences[next]->token > newest->token) newest = fences[next];
    }
    if (!effect->token) continue;
    ++compared;
    const FenceRow* newest = active[effect->at.partition];
    if (newest == nullptr || *effect->token > newest->token) {
      findings.add(Violation::stale_effect,
                   fmt::format("{} key {}: {}, which was not activated before it",
                               text(effect->at), effect->key, text(*effect)));
    } else if (*effect->token < newest->token) {
      findings.add(Violation::stale_effect,
                   fmt::format("{} key {}: {}, after token {} was activated in row {}",
                               text(effect->at), effect->key, text(*effect), newest->token,
                               newest->pos));
    }
  }
  return compared;
}

/// J4.
std::size_t judge_commits(const Evidence& evidence, Findings& findings) {
  std::vector<PartitionEnd> ends = evidence.ends;
  std::sort(ends.begin(), ends.end(), [](const PartitionEnd& a, const PartitionEnd& b) {
    return a.partition < b.partition;
  });
  for (const PartitionEnd& end : ends) {
    // Nobody need commit in a log that never held anything.
    if (end.committed ? *end.committed == end.end : end.end == 0) continue;
    findings.add(Violation::committed_not_end,
                 fmt::format("partition {}: committed {}, log end {}", end.partition,
                             end.committed ? std::to_string(*end.committed) : "nothing", end.end));
  }
  return ends.size();
}

/// J5.
std::size_t judge_balances(const Evidence& evidence, Findings& findings) {
  std::map<std::string, std::int64_t> expected;
  for (const InputRecord& record : evidence.input) expected[record.key] += record.amount;
  std::map<std::string, std::int64_t> all = expected;
  all.insert(evidence.balances.begin(), evidence.balances.end());
  for (const auto& [key, unused] : all) {
    const auto wanted = expected.find(key);
    const auto found = evidence.balances.find(key);
    if (wanted == expected.end()) {
      findings.add(Violation::balance,
                   fmt::format("key {}: balance {}, but the topic has no record of it", key,
                               found->second));
    } else if (found == evidence.balances.end()) {
      findings.add(Violation::balance,
                   fmt::format("key {}: no balance, expected {}", key, wanted->second));
    } else if (wanted->second != found->second) {
      findings.add(Violation::balance, fmt::format("key {}: balance {}, expected {}", key,
                                                   found->second, wanted->second));
    }
  }
  return expected.size();
}

}  // namespace

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass: return "PASS";
    case Verdict::fail: return "FAIL";
    case Verdict::inconclusive: return "INCONCLUSIVE";
  }
  return "unknown";
}

std::string_view name(Violation violation) {
  switch (violation) {
    case Violation::lost: return "LOST";
    case Violation::duplicate_effect: return "DUPLICATE EFFECT";
    case Violation::ghost: return "GHOST";
    case Violation::key_reorder: return "KEY REORDER";
    case Violation::stale_effect: return "STALE EFFECT";
    case Violation::committed_not_end: return "COMMITTED != END";
    case Violation::balance: return "BALANCE";
  }
  return "unknown";
}

const Finding* Judgement::find(Violation violation) const {
  const auto found = std::find_if(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.violation == violation;
  });
  return found == findings.end() ? nullptr : &*found;
}

std::size_t Judgement::count(Violation violation) const {
  const Finding* finding = find(violation);
  return finding == nullptr ? 0 : finding->count;
}

Judgement judge(const Evidence& evidence, std::span<const Sight> sights) {
  Effects effects;
  for (const EffectRow& effect : evidence.effects) effects.push_back(&effect);
  std::sort(effects.begin(), effects.end(),
            [](const EffectRow* a, const EffectRow* b) { return a->pos < b->pos; });

  Judgement out;
  Findings findings;
  out.records = evidence.input.size();
  out.effects = evidence.effects.size();
  out.compared[0] = judge_once(evidence, effects, findings);
  out.compared[1] = judge_order(effects, findings);
  out.compared[2] = judge_fence(evidence, effects, findings);
  out.compared[3] = judge_commits(evidence, findings);
  out.compared[4] = judge_balances(evidence, findings);
  out.findings = findings.take();

  constexpr std::array<std::string_view, 5> nothing = {
      "J1 compared nothing: the topic holds no record",
      "J2 compared nothing: no key has two effects",
      "J3 compared nothing: no effect carries a token",
      "J4 compared nothing: no partition was read",
      "J5 compared nothing: no balance is expected",
  };
  for (std::size_t i = 0; i < nothing.size(); ++i) {
    if (out.compared[i] == 0) out.missing.emplace_back(nothing[i]);
  }
  for (const Sight& sight : sights) {
    if (!sight.seen) out.missing.push_back("not seen: " + sight.what);
  }
  out.verdict = !out.findings.empty() ? Verdict::fail
                : out.missing.empty() ? Verdict::pass
                                      : Verdict::inconclusive;
  return out;
}

}  // namespace tenure::judge

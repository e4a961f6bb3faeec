#include "runtime/plan_cache.h"

#include <atomic>
#include <list>
#include <mutex>
#include <unordered_map>

#include "base/waiting.h"
#include "plan/planner.h"

namespace gradcell {

namespace {

struct KeyHash {
  size_t operator()(const PlanKey& k) const { return k.a ^ (k.b * 3) ^ k.settings->number; }
};

class PlanCache {
 public:
  static PlanCache& instance() {
    static auto* cache = new PlanCache;
    return *cache;
  }

  std::shared_ptr<const Executable> find(const PlanKey& key) {
    std::lock_guard lock(mutex_);
    auto it = entries_.find(key);
    if (it == entries_.end()) {
      ++info_.misses;
      return nullptr;
    }
    ++info_.hits;
    recent_.splice(recent_.begin(), recent_, it->second.position);
    return it->second.executable;
  }

  void add(const PlanKey& key, std::shared_ptr<const Executable> executable) {
    std::lock_guard lock(mutex_);
    if (entries_.contains(key)) return;
    recent_.push_front(key);
    entries_[key] = {std::move(executable), recent_.begin()};
    if (entries_.size() > kMost) {
      entries_.erase(recent_.back());
      recent_.pop_back();
    }
  }

  void count_run() { runs_.fetch_add(1, std::memory_order_relaxed); }
  PlanCacheInfo info() {
    std::lock_guard lock(mutex_);
    info_.size = entries_.size();
    info_.runs = runs_;
    return info_;
  }

 private:
  static constexpr size_t kMost = 2048;
  struct Entry {
    std::shared_ptr<const Executable> executable;
    std::list<PlanKey>::iterator position;
  };
  std::mutex mutex_;
  std::unordered_map<PlanKey, Entry, KeyHash> entries_;
  std::list<PlanKey> recent_;
  PlanCacheInfo info_{};
  std::atomic<size_t> runs_{0};
};

}  // namespace

std::shared_ptr<const Executable> executable_for(const Graph& g, std::span<const NodeId> live,
                                                 std::span<const NodeId> roots,
                                                 std::span<const NodeId> cuts) {
  const PlanKey key = structural_hash(g, live, roots, cuts);
  PlanCache& cache = PlanCache::instance();
  if (auto found = cache.find(key)) return found;
  auto made = make_executable(g, live, roots, cuts);
  cache.add(key, made);
  return made;
}

PlanCacheInfo plan_cache_info() { return PlanCache::instance().info(); }

std::vector<Array> run_plan(const Executable& executable,
                            std::span<const std::shared_ptr<Storage>> inputs,
                            std::span<const uint64_t> constants, std::span<const int> over) {
  PlanCache::instance().count_run();
  if (!takes_long(executable)) return executable.run(inputs, constants, over);
  std::vector<Array> out;
  letting_others_run([&] { out = executable.run(inputs, constants, over); });
  return out;
}

}  // namespace gradcell

#include "ir/settings.h"

#include <atomic>
#include <deque>
#include <mutex>

namespace gradcell {

namespace {

/// Those after the first. Never freed: graphs and plans refer to them.
struct Others {
  std::mutex mutex;
  std::deque<Settings> all;

  const Settings* of(size_t number) const {
    return number == 0 ? &kFirstSettings : &all.at(number - 1);
  }
};
Others& others() {
  static auto* others = new Others;
  return *others;
}

constinit std::atomic<const Settings*> g_settings{&kFirstSettings};

}  // namespace

const Settings& settings() { return *g_settings.load(std::memory_order_acquire); }

const Settings& settings_of(size_t number) {
  std::lock_guard lock(others().mutex);
  return *others().of(number);
}

const Settings& settings_with(const Settings& before, FunctionRef<void(Settings&)> change) {
  Settings wanted = before;
  change(wanted);
  Others& o = others();
  std::lock_guard lock(o.mutex);
  for (wanted.number = 0; wanted.number <= o.all.size(); ++wanted.number)
    if (*o.of(wanted.number) == wanted) return *o.of(wanted.number);
  return o.all.emplace_back(wanted);
}

void change_settings(FunctionRef<void(Settings&)> change) {
  const Settings* before = &settings();
  while (!g_settings.compare_exchange_weak(before, &settings_with(*before, change))) {
  }
}

}  // namespace gradcell

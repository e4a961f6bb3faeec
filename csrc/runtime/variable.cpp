#include "runtime/variable.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/waiting.h"

namespace gradcell {

namespace {

struct Lock {
  std::mutex mutex;
  std::condition_variable ended;
  uint64_t ends = 0;  ///< of runs that had taken variables
  int waiting = 0;
};

Lock& the_lock() {
  static auto* lock = new Lock;  // outlives every variable
  return *lock;
}

std::atomic<uint64_t> g_made{0};

/// Whether a second holder of this memory is the only other one. What earlier holders did with it
/// has then happened before.
bool is_second(const StoragePtr& holder) {
  // A third one's end is what makes their ends seen: the count by itself does not.
  return StoragePtr(holder).use_count() == 3;
}

}  // namespace

void look_at_variables(FunctionRef<bool()> look) {
  Lock& lock = the_lock();
  for (;;) {
    uint64_t seen;
    {
      const std::lock_guard hold(lock.mutex);
      if (look()) return;
      seen = lock.ends;
      ++lock.waiting;
    }
    letting_others_run([&] {
      std::unique_lock hold(lock.mutex);
      lock.ended.wait(hold, [&] { return lock.ends != seen; });
      --lock.waiting;
    });
  }
}

// Variable ----------------------------------------------------------------------------------------

Variable::Variable(Array value) : Variable(Type{value.dtype, value.dims}) {
  storage_ = shared(value).storage;
}

Variable::Variable(Type type) : number_(++g_made), type_(nullptr) {
  types_.push_back(std::make_unique<const Type>(std::move(type)));
  type_.store(types_.back().get(), std::memory_order_release);
}

const Type* Variable::record(const Type& type) {
  auto same = [&](const auto& t) { return t->dtype == type.dtype && t->dims == type.dims; };
  if (const Type* now = this->type(); same(now)) return now;
  auto made = std::make_unique<const Type>(type);
  const std::lock_guard hold(the_lock().mutex);
  const auto known = std::ranges::find_if(types_, same);
  if (known != types_.end()) return known->get();
  types_.push_back(std::move(made));
  return types_.back().get();
}

void Variable::require_value() const {
  require(
      storage_ != nullptr, ErrorKind::Value,
      "a Parameter that was made inside a transform, of a value that is not known there, is used "
      "after it: make it outside, or return its value");
}

const Type* Variable::settled() const {
  const std::lock_guard hold(the_lock().mutex);
  require_value();
  return type();
}

const StoragePtr* Variable::look(const Type* wanted) const {
  if (overwritten_) {
    require(!in_own_run(), ErrorKind::Runtime,
            "a parameter is used by a run inside of the run that updates it");
    return nullptr;
  }
  require_value();
  require(type() == wanted, ErrorKind::Runtime,
          "a parameter has got another shape or dtype in one thread while another one used it: "
          "now ",
          name(dtype()), to_string(dims()), ", ", name(wanted->dtype), to_string(wanted->dims),
          " before");
  return &storage_;
}

bool Variable::in_own_run() const {
  return holder_ && holder_->thread_ == std::this_thread::get_id();
}

bool Variable::snapshot(Snapshot& s) const {
  s.type = type();
  // What answers a signal in the middle of a run sees the old value, before anything is written.
  s.copied = overwritten_ && in_own_run();
  const StoragePtr* storage = s.copied ? &storage_ : look(s.type);
  if (storage) s.storage = *storage;
  return storage != nullptr;
}

Array Variable::array_of(Snapshot& s) {
  Array a{s.type->dtype, s.type->dims, std::move(s.storage)};
  return s.copied ? duplicate(a) : a;
}

Array Variable::value() const {
  Snapshot s;
  look_at_variables([&] { return snapshot(s); });
  return array_of(s);
}

std::vector<Array> values_of(std::span<const VariablePtr> variables) {
  std::vector<Variable::Snapshot> all(variables.size());
  look_at_variables([&] {
    for (size_t i = 0; i < all.size(); ++i)
      if (!variables[i]->snapshot(all[i])) return false;
    return true;
  });
  std::vector<Array> values;
  for (Variable::Snapshot& s : all) values.push_back(Variable::array_of(s));
  return values;
}

void Variable::set(const Array& now) {
  StoragePtr storage = shared(now).storage;
  const Type* type = record({now.dtype, now.dims});
  look_at_variables([&] {
    require(!in_own_run(), ErrorKind::Runtime,
            "a parameter is set inside of the run that updates it");
    if (holder_) return false;
    std::swap(storage_, storage);
    type_.store(type, std::memory_order_release);
    return true;
  });
  touch();
}

void Variable::lose() {
  StoragePtr storage;  // released after the lock
  const std::lock_guard hold(the_lock().mutex);
  std::swap(storage_, storage);
}

void Variable::overwrite(FunctionRef<void(const Array&)> f) {
  const VariablePtr self(VariablePtr(), this);  // of no count: the caller holds it
  Exclusive held({&self, 1});
  Array a;
  const Type* type = nullptr;
  bool own = false;
  look_at_variables([&] {
    const StoragePtr* storage = look(type = this->type());
    if (!storage || !held.free()) return false;
    held.take();
    a.storage = *storage;
    own = !a.storage->has_device() && held.may_write(0, a.storage);
    return true;
  });
  a.dtype = type->dtype;
  a.dims = type->dims;
  if (!own) a = duplicate(a);
  f(a);
  held.commit({&a, 1}, {&type, 1});
}

Array Variable::expose() {
  Array a;
  StoragePtr copy, copied;
  for (const Type* type = nullptr;;) {
    bool seen = false;
    look_at_variables([&] {
      const StoragePtr* storage = look(type = this->type());
      if (!storage) return false;
      if (*storage == copied) std::swap(storage_, copy);
      a.storage = storage_;
      const Storage& s = *a.storage;
      seen = s.exposed() || !s.on_host() || s.has_device() || is_second(a.storage);
      if (seen && s.on_host() && !s.has_device()) a.storage->expose();
      return true;
    });
    a.dtype = type->dtype;
    a.dims = type->dims;
    if (seen) return a;
    copy.reset();
    copied = a.storage;
    copy = duplicate(a).storage;
  }
}

bool Variable::exposed() const {
  const std::lock_guard hold(the_lock().mutex);
  return !storage_ || storage_->exposed();
}

// Exclusive ---------------------------------------------------------------------------------------

bool Exclusive::free() const {
  for (const VariablePtr& v : variables_)
    require(!v->in_own_run(), ErrorKind::Runtime,
            "a parameter is updated by a run inside of the run that updates it");
  return std::ranges::none_of(variables_, [](const VariablePtr& v) { return v->holder_; });
}

void Exclusive::take() {
  for (const VariablePtr& v : variables_) v->holder_ = this;
  taken_ = true;
}

bool Exclusive::may_write(size_t variable, const StoragePtr& read) {
  Variable& v = *variables_[variable];
  return v.overwritten_ = !read->borrowed() && is_second(read);
}

void Exclusive::commit(std::span<Array> values, std::span<const Type* const> types) noexcept {
  end(values, types);
}

Exclusive::~Exclusive() {
  if (taken_) end({}, {});
}

void Exclusive::end(std::span<Array> values, std::span<const Type* const> types) noexcept {
  Lock& lock = the_lock();
  const std::lock_guard hold(lock.mutex);
  for (size_t i = 0; i < variables_.size(); ++i) {
    Variable& v = *variables_[i];
    v.holder_ = nullptr;
    v.overwritten_ = false;
    if (values.empty()) continue;
    std::swap(v.storage_, values[i].storage);
    v.type_.store(types[i], std::memory_order_release);
    v.touch();
  }
  taken_ = false;
  ++lock.ends;
  if (lock.waiting > 0) lock.ended.notify_all();
}

}  // namespace gradcell

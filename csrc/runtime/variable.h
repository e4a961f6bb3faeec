// Variables: parameters, optimisers' states, the random generator's. Each is a slot that owns its
// memory: an array that somebody else can write to, or can see written, is copied on its way in.
//
// One lock guards what is in all slots, and is held only to look at it or to exchange it. So a
// reader of several variables sees all of them as they are at one time, and the new values of a run
// come all at once. A run that updates variables holds them (Exclusive) from when it reads them
// until they have their new values, and another that updates one of them waits. Who only reads them
// gets the values before that; and waits where the run writes into the variable's own memory, which
// it does only if nobody else holds that.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "base/thread_pool.h"
#include "ir/spec.h"
#include "runtime/storage.h"

namespace gradcell {

class Exclusive;
class Variable;
using VariablePtr = std::shared_ptr<Variable>;
using StoragePtr = std::shared_ptr<Storage>;

/// look() under the lock of all variables, again after each end of a run until it returns true.
void look_at_variables(FunctionRef<bool()> look);

/// A mutable tensor.
class Variable {
 public:
  explicit Variable(Array value);
  /// Without a value: made inside a trace, which has not ended (Trace::born).
  explicit Variable(Type type);
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

  DType dtype() const { return type()->dtype; }
  const Dims& dims() const { return type()->dims; }
  /// The same address as long as the type is the same.
  const Type* type() const { return type_.load(std::memory_order_acquire); }
  /// What type() is once values are of this type.
  const Type* record(const Type& type);

  /// The same of what has a value. Throws Value if the transform in which it was made gave it none.
  const Type* settled() const;
  /// The value now. Throws as settled() does.
  Array value() const;
  void set(const Array& now);
  /// What it had been set to ended with the transform in which it was made: it has no value.
  void lose();
  /// Calls f with the elements, to which it writes, in memory of which nobody else knows.
  void overwrite(FunctionRef<void(const Array&)> f);
  /// The elements in memory that NumPy may see and write to.
  Array expose();
  /// Whether others may write to the elements unseen.
  bool exposed() const;

  /// A number that no other one has or gets: an address may be another one's later.
  uint64_t number() const { return number_; }

  /// Goes on with every change, in a trace or for good.
  uint64_t version() const { return version_.load(std::memory_order_relaxed); }
  void touch() { version_.fetch_add(1, std::memory_order_relaxed); }

  /// Under the lock: the memory; null: a run writes to it. Throws Runtime if the elements are not
  /// of this type, or if that run is this thread's; Value if there are none.
  const StoragePtr* look(const Type* wanted) const;

 private:
  friend class Exclusive;
  friend std::vector<Array> values_of(std::span<const VariablePtr> variables);
  struct Snapshot {
    StoragePtr storage;
    const Type* type = nullptr;
    bool copied = false;  ///< afterwards
  };
  bool snapshot(Snapshot& s) const;
  static Array array_of(Snapshot& s);
  /// Whether a run of this thread holds it.
  bool in_own_run() const;
  void require_value() const;
  const uint64_t number_;
  std::atomic<const Type*> type_;
  std::vector<std::unique_ptr<const Type>> types_;  ///< those that it has had: readers hold them
  std::atomic<uint64_t> version_{0};
  StoragePtr storage_;
  const Exclusive* holder_ = nullptr;  ///< the run that will give it a new value
  bool overwritten_ = false;           ///< which writes to its memory
};

/// The values of several variables at one time.
std::vector<Array> values_of(std::span<const VariablePtr> variables);

/// The variables that a run updates: taken when it reads its inputs, free again at its end. Theirs
/// are then the old values, which are untouched, or the new ones: all of them.
class Exclusive {
 public:
  /// Has none yet.
  explicit Exclusive(std::span<const VariablePtr> variables) : variables_(variables) {}
  ~Exclusive();
  Exclusive(const Exclusive&) = delete;
  Exclusive& operator=(const Exclusive&) = delete;

  /// Under the lock: whether no other run has one of them. Throws Runtime if one of this thread
  /// has.
  bool free() const;
  /// Under the lock: takes them, which are free.
  void take();
  /// Under the lock: whether the run may write to the memory of one that it has taken, of which
  /// `read` is a second holder. Readers then wait. What has been written cannot be undone: nothing
  /// that fails may follow.
  bool may_write(size_t variable, const StoragePtr& read);
  /// Exchanges values, of these types as record() gives them.
  void commit(std::span<Array> values, std::span<const Type* const> types) noexcept;

 private:
  friend class Variable;
  void end(std::span<Array> values, std::span<const Type* const> types) noexcept;
  std::span<const VariablePtr> variables_;
  std::thread::id thread_ = std::this_thread::get_id();
  bool taken_ = false;
};

}  // namespace gradcell

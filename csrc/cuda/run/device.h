// One GPU: its context, its stream, its memory. All work of the process on a device goes through
// one stream, in order: memory that is given back can be handed out again at once.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cuda/run/cublaslt.h"
#include "cuda/run/cudnn.h"
#include "cuda/run/driver.h"
#include "cuda/run/pool.h"
#include "cuda/run/staging.h"

namespace gradcell::cuda {

struct DeviceProperties {
  std::string name;
  int capability;       ///< 90: sm_90
  size_t shared_bytes;  ///< that a block can have
  int multiprocessors;
};
/// Makes no context. Throws Runtime.
DeviceProperties properties_of(int number);

class DeviceBlock;

/// Who keeps memory of a device for later.
class Keeper {
 public:
  virtual ~Keeper() = default;
  /// Lets go of what is in the way: what it has kept together with this block; null: all. Called
  /// with the device's mutex held.
  virtual void let_go(const DeviceBlock* block) noexcept = 0;
};

class Device {
 public:
  /// Throws Runtime for a number that is not there.
  static Device& get(int number);
  /// Null if nobody has asked for it yet.
  static Device* if_made(int number);

  int number() const { return number_; }
  const std::string& name() const { return properties_.name; }
  int capability() const { return properties_.capability; }  ///< 90: sm_90
  size_t shared_bytes() const { return properties_.shared_bytes; }
  /// The same with what plans have to know of it, and of the libraries that are there.
  Target target(const Target& asked) const {
    return {
        capability(), shared_bytes(), !library_paths().cudnn.empty(), properties_.multiprocessors,
        asked.tf32,   asked.weights};
  }
  StreamHandle stream() const { return stream_; }
  /// Where graphs are captured: nothing ever runs on it, so that transfers of other threads are not
  /// recorded among a plan's steps.
  StreamHandle capture_stream() const { return capture_stream_; }
  /// Made at the first call, which throws if cuBLASLt is missing.
  CublasLt& products();
  DevicePointer workspace();  ///< of cuBLASLt
  /// The same of cuDNN.
  Cudnn& convolutions();
  DevicePointer convolutions_workspace();

  /// f() with the device's context as this thread's; afterwards the one is that was before. Every
  /// entry from outside is one of these. Throws Runtime in a forked process, and where the device
  /// was lost: by f itself, or before.
  template <class F>
  auto enter(F f) const {
    require_usable();
    const Current current(*this);
    try {
      return f();
    } catch (const Fatal& e) {
      throw lost(e.what());
    }
  }
  /// The same where errors have nowhere to go: nothing, if the device cannot be used.
  template <class F>
  void enter_quietly(F f) const noexcept {
    if (!usable()) return;
    const Current current(*this);
    f();
  }
  bool usable() const { return !Driver::forked() && !lost_; }
  /// Work that comes next on the stream, in words: for the error if it fails.
  void note(std::shared_ptr<const std::string> work);

  /// 256-byte aligned, uninitialised; from the pool where a piece of that size is free. Throws
  /// Memory: what was asked, what is held, what is free.
  DevicePointer allocate(size_t bytes);
  void release(DevicePointer p, size_t bytes);
  /// Of memory that other libraries could reach: it is used again after all that any stream of the
  /// device has to do by now. Nothing waits for that here.
  void release_shared(DevicePointer p, size_t bytes) noexcept;
  void release_cached();
  /// The same after plans have let go of the memory that they keep between their runs.
  void release_kept();
  /// Each buffer is an allocation of exactly its size, given back when nobody holds it, for tools
  /// that check memory: GRADCELL_CUDA_EXACT_MEMORY=1 in the environment.
  bool exact_memory() const { return exact_memory_; }
  size_t in_use() const { return in_use_; }
  size_t cached();

  /// The caller may change or free `from` at once.
  void upload(DevicePointer to, const void* from, size_t bytes);
  void copy(DevicePointer to, DevicePointer from, size_t bytes);
  /// For the temporaries of one plan's run at a time: work on the stream is in order, so that all
  /// plans can have the same memory. It lives as long as one of them holds it.
  struct Arena {
    std::shared_ptr<DeviceBlock> block;
  };
  std::shared_ptr<Arena> arena();
  /// Those that are asked for what they keep when memory is short.
  void add(Keeper& keeper);
  void remove(Keeper& keeper) noexcept;
  /// They all let go of it: see Keeper.
  void let_go(const DeviceBlock* block);
  /// Where kernels flag an index that is out of range.
  DevicePointer status();
  /// Waits for all work before; throws Index if some of it met an index out of range.
  void download(void* to, DevicePointer from, size_t bytes);
  void synchronise();

  /// Work comes after all that any stream of the device has to do by now; false: the driver
  /// refuses.
  bool wait_for_others() noexcept;

  /// Work on this device comes after what is on another stream by now, or the other way about.
  /// Throws Runtime where that stream is being captured.
  void wait_for(StreamHandle other);
  void let_wait(StreamHandle other);

  /// Held while work is enqueued: the stream has one writer. A destructor may find it held.
  std::recursive_mutex& mutex() { return mutex_; }

 private:
  class Current {
   public:
    explicit Current(const Device& device);
    ~Current();
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

   private:
    const Driver& driver_;
    void *mine_, *before_ = nullptr;
  };

  friend class LateWord;
  explicit Device(int number);
  void require_usable() const;
  /// Marks the device, and says what may have been the cause.
  Error lost(const std::string& what) const;
  /// wait(), before which everything noted is done when it returns.
  template <class F>
  void waiting(F wait);

  const Driver& driver_;
  int number_;
  DeviceProperties properties_;
  void* context_ = nullptr;
  void order(StreamHandle first, StreamHandle then);
  void require_not_captured(StreamHandle other) const;
  /// Null where the driver cannot say when all streams are done.
  EventHandle all_done() noexcept;
  /// For all streams of the device, other libraries' too; whether that was possible.
  bool wait_for_all() noexcept;
  void free_now(size_t bytes, DevicePointer p);
  Pool::Piece free_piece(size_t size);  ///< null: there is none
  /// A new segment. Throws Memory where there is none after all that is kept was let go of.
  DevicePointer from_driver(size_t bytes, size_t size);
  /// The bytes of large free segments.
  size_t whole_segments();
  /// Gives the driver the free segments of at least so many bytes.
  void free_segments(size_t least);
  /// What was unsafe is free; false: no wait for all streams is possible now.
  bool make_safe();

  StreamHandle stream_ = nullptr, capture_stream_ = nullptr;
  EventHandle event_ = nullptr;
  std::unique_ptr<Staging> staging_;
  std::recursive_mutex mutex_;
  std::mutex memory_mutex_, event_mutex_;
  const bool exact_memory_;
  Pool pool_;
  std::vector<DevicePointer> unsafe_;  ///< free, but other streams may be using them
  std::atomic<size_t> in_use_{0}, unsafe_bytes_{0};
  std::once_flag products_once_, convolutions_once_;
  std::unique_ptr<CublasLt> products_;
  std::unique_ptr<Cudnn> convolutions_;
  DevicePointer workspace_ = 0, convolutions_workspace_ = 0;
  std::atomic<DevicePointer> status_{0};
  std::weak_ptr<Arena> arena_;
  std::vector<Keeper*> keepers_;

  mutable std::atomic<bool> lost_{false};
  mutable std::mutex notes_mutex_;  ///< of what follows
  mutable std::string why_lost_;
  /// With their numbers, the latest last.
  std::deque<std::pair<size_t, std::shared_ptr<const std::string>>> notes_;
  size_t noted_ = 0, done_ = 0;  ///< in all; of these, known to be done
};

/// Four bytes of a device on their way to the host, for which nobody waits unless asked to.
class LateWord {
 public:
  explicit LateWord(Device& device);
  ~LateWord();
  LateWord(const LateWord&) = delete;
  LateWord& operator=(const LateWord&) = delete;

  Device& device() const { return device_; }
  /// What is at `from` when all work before is done. One at a time.
  void send_for(DevicePointer from);
  bool has_come() const;
  void wait() const;
  int32_t value() const { return *word_; }  ///< once it has come

 private:
  Device& device_;
  int* word_;
  EventHandle done_ = nullptr;
};

/// Bytes of a device, for as long as anything needs them: the device's own, or another library's.
///
/// Memory that other libraries can reach is kept, in the end, from all that may still use it:
/// theirs goes back after this engine's stream, ours, once shared, is used again after every
/// stream.
class DeviceBlock {
 public:
  DeviceBlock(Device& device, size_t bytes)
      : device_(device), bytes_(bytes), pointer_(bytes ? device.allocate(bytes) : 0) {}
  DeviceBlock(Device& device, DevicePointer pointer, size_t bytes, std::function<void()> give_back)
      : device_(device), bytes_(bytes), pointer_(pointer), give_back_(std::move(give_back)) {}
  ~DeviceBlock();
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;

  Device& device() const { return device_; }
  DevicePointer pointer() const { return pointer_; }
  size_t bytes() const { return bytes_; }
  /// Other libraries will use it, on streams of their own.
  void share() { shared_ = true; }
  /// Nobody else holds it: this engine's next work on it comes after that of all to whom it was
  /// given. False where the driver refuses.
  bool take_back();
  bool foreign() const { return give_back_ != nullptr; }

 private:
  Device& device_;
  size_t bytes_;
  DevicePointer pointer_;
  std::function<void()> give_back_;
  std::atomic<bool> shared_{false};
};

}  // namespace gradcell::cuda

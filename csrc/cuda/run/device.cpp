#include "cuda/run/device.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "base/error.h"
#include "cuda/cuda_plan.h"

namespace gradcell::cuda {

namespace {

constexpr int kNonBlocking = 1;        // CU_STREAM_NON_BLOCKING
constexpr int kImplicitCapture = 906;  // CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
constexpr size_t kMaxNotes = 4;
/// Bytes that may wait for all streams, where the driver cannot say when these are done.
constexpr size_t kMostUnsafe = size_t{256} << 20;
constexpr int kMajorOf = 75, kMinorOf = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
constexpr int kSharedOf = 97;           // CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
constexpr int kMultiprocessorsOf = 16;  // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT

}  // namespace

DeviceProperties properties_of(int number) {
  const Driver& driver = Driver::get();
  int device = 0, major = 0, minor = 0, shared = 0, multiprocessors = 0;
  driver.call(driver.cuDeviceGet, &device, number);
  char name[256] = {};
  driver.call(driver.cuDeviceGetName, name, sizeof name - 1, device);
  driver.call(driver.cuDeviceGetAttribute, &major, kMajorOf, device);
  driver.call(driver.cuDeviceGetAttribute, &minor, kMinorOf, device);
  driver.call(driver.cuDeviceGetAttribute, &shared, kSharedOf, device);
  driver.call(driver.cuDeviceGetAttribute, &multiprocessors, kMultiprocessorsOf, device);
  return {name, major * 10 + minor, static_cast<size_t>(shared), multiprocessors};
}

namespace {

void require_not_forked() {
  require(
      !Driver::forked(), ErrorKind::Runtime,
      "this process was forked from one that had begun to use a GPU, which CUDA does not allow: "
      "start it with multiprocessing's 'spawn' method, or choose the GPU after the fork");
}

std::mutex& devices_mutex() {
  static std::mutex mutex;
  return mutex;
}
std::map<int, std::unique_ptr<Device>>& devices() {
  static auto* all = new std::map<int, std::unique_ptr<Device>>;
  return *all;
}

}  // namespace

Device& Device::get(int number) {
  require_not_forked();
  const Driver& driver = Driver::get();
  require(number >= 0 && number < driver.device_count, ErrorKind::Runtime, "device_id ", number,
          " is not there: this machine has ", driver.device_count, " GPU",
          driver.device_count == 1 ? "" : "s", ", numbered from 0");
  std::lock_guard lock(devices_mutex());
  auto& entry = devices()[number];
  if (!entry) entry.reset(new Device(number));
  return *entry;
}

Device* Device::if_made(int number) {
  std::lock_guard lock(devices_mutex());
  auto it = devices().find(number);
  return it == devices().end() ? nullptr : it->second.get();
}

namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value && std::string_view(value) == "1";
}

}  // namespace

Device::Device(int number)
    : driver_(Driver::get()),
      number_(number),
      properties_(properties_of(number)),
      exact_memory_(is_set("GRADCELL_CUDA_EXACT_MEMORY")) {
  require(capability() >= 75, ErrorKind::Runtime, "the GPU ", name(), " has compute capability ",
          capability() / 10, ".", capability() % 10, "; gradcell needs 7.5 or later");
  int device = 0;
  driver_.call(driver_.cuDeviceGet, &device, number);
  // The primary context is the one that the CUDA runtime, and so CuPy and PyTorch, use.
  driver_.call(driver_.cuDevicePrimaryCtxRetain, &context_, device);
  enter([&] {
    driver_.call(driver_.cuStreamCreate, &stream_, kNonBlocking);
    driver_.call(driver_.cuStreamCreate, &capture_stream_, kNonBlocking);
    driver_.call(driver_.cuEventCreate, &event_, kNoTiming);
    staging_ = std::make_unique<Staging>(driver_);
  });
}

// Contexts, and devices that are lost -------------------------------------------------------------

Device::Current::Current(const Device& device) : driver_(device.driver_), mine_(device.context_) {
  driver_.cuCtxGetCurrent(&before_);
  if (before_ != mine_) driver_.cuCtxSetCurrent(mine_);
}

Device::Current::~Current() {
  if (before_ != mine_) driver_.cuCtxSetCurrent(before_);
}

void Device::require_usable() const {
  require_not_forked();
  if (!lost_) return;
  std::lock_guard lock(notes_mutex_);
  fail(ErrorKind::Runtime, "GPU ", number_, " (", name(),
       ") cannot be used any more in this process: ", why_lost_);
}

Error Device::lost(const std::string& what) const {
  std::lock_guard lock(notes_mutex_);
  std::string works;
  for (const auto& [number, work] : notes_)
    if (number > done_) works += str(works.empty() ? "" : "; ", *work);
  why_lost_ = works.empty() ? str(what, ", in what another library does there")
                            : str(what, ", in work since a value was last read: ", works,
                                  " (CUDA_LAUNCH_BLOCKING=1 in the environment finds the launch)");
  lost_ = true;
  return {ErrorKind::Runtime, str(why_lost_, ". GPU ", number_, " (", name(),
                                  ") cannot be used any more in this process")};
}

void Device::note(std::shared_ptr<const std::string> work) {
  std::lock_guard lock(notes_mutex_);
  ++noted_;
  if (!notes_.empty() && notes_.back().second == work) {
    notes_.back().first = noted_;
    return;
  }
  notes_.emplace_back(noted_, std::move(work));
  if (notes_.size() > kMaxNotes) notes_.pop_front();
}

template <class F>
void Device::waiting(F wait) {
  std::unique_lock lock(notes_mutex_);
  const size_t before = noted_;
  lock.unlock();
  wait();
  lock.lock();
  done_ = std::max(done_, before);
}

CublasLt& Device::products() {
  std::call_once(products_once_, [this] {
    // The library's handle is for the device that is current.
    enter([this] {
      products_ = std::make_unique<CublasLt>(str(name(), " of compute capability ", capability()));
    });
  });
  return *products_;
}

DevicePointer Device::workspace() {
  if (!workspace_) workspace_ = allocate(CublasLt::kWorkspace);
  return workspace_;
}

Cudnn& Device::convolutions() {
  std::call_once(convolutions_once_,
                 [this] { enter([this] { convolutions_ = std::make_unique<Cudnn>(); }); });
  return *convolutions_;
}

DevicePointer Device::convolutions_workspace() {
  if (!convolutions_workspace_) convolutions_workspace_ = allocate(Cudnn::kWorkspace);
  return convolutions_workspace_;
}

std::shared_ptr<Device::Arena> Device::arena() {
  std::lock_guard lock(mutex_);
  auto found = arena_.lock();
  if (!found) arena_ = found = std::make_shared<Arena>();
  return found;
}

void Device::add(Keeper& keeper) {
  std::lock_guard lock(mutex_);
  keepers_.push_back(&keeper);
}

void Device::remove(Keeper& keeper) noexcept {
  if (Driver::forked()) return;  // somebody may have held the mutex
  std::lock_guard lock(mutex_);
  std::erase(keepers_, &keeper);
}

void Device::let_go(const DeviceBlock* block) {
  std::lock_guard lock(mutex_);
  for (Keeper* k : keepers_) k->let_go(block);
  if (const auto arena = block ? nullptr : arena_.lock()) arena->block.reset();
}

void Device::release_kept() {
  let_go(nullptr);
  release_cached();
}

DevicePointer Device::allocate(size_t bytes) {
  const size_t size = exact_memory_ ? bytes : Pool::rounded(bytes);
  Pool::Piece found = free_piece(size);
  if (!found.pointer && unsafe_bytes_ > kMostUnsafe && make_safe()) found = free_piece(size);
  enter([&] {
    if (found.until) {
      driver_.call(driver_.cuStreamWaitEvent, stream_, found.until, 0);
      driver_.cuEventDestroy(found.until);
    }
    if (!found.pointer) found = {from_driver(bytes, size), size, nullptr};
  });
  in_use_ += found.bytes;
  return found.pointer;
}

DevicePointer Device::from_driver(size_t bytes, size_t size) {
  DevicePointer p = 0;
  auto gives = [&] {
    if (driver_.cuMemAlloc(&p, size) != 0) return false;
    std::lock_guard lock(memory_mutex_);
    if (!exact_memory_) pool_.add(p, size);
    return true;
  };
  // Where as much is free, though in segments that do not fit, these make room.
  if (whole_segments() >= size) free_segments(Pool::kLarge);
  if (gives()) return p;
  release_cached();
  if (gives()) return p;
  release_kept();
  if (gives()) return p;
  size_t available = 0, total = 0;
  driver_.cuMemGetInfo(&available, &total);
  fail(ErrorKind::Memory, "out of memory on GPU ", number_, " (", name(), "): asked for ", bytes,
       " bytes; tensors and plans hold ", in_use_.load(), " bytes, ", available, " of ", total,
       " bytes are free");
}

Pool::Piece Device::free_piece(size_t size) {
  std::lock_guard lock(memory_mutex_);
  return pool_.take(size);
}

size_t Device::whole_segments() {
  std::lock_guard lock(memory_mutex_);
  return pool_.whole(Pool::kLarge);
}

size_t Device::cached() {
  std::lock_guard lock(memory_mutex_);
  return pool_.free_bytes() + unsafe_bytes_;
}

bool Device::make_safe() {
  decltype(unsafe_) unsafe;
  {
    std::lock_guard lock(memory_mutex_);
    unsafe.swap(unsafe_);
  }
  const bool safe = wait_for_all();
  std::lock_guard lock(memory_mutex_);
  if (!safe) {
    unsafe_.insert(unsafe_.end(), unsafe.begin(), unsafe.end());
    return false;
  }
  for (DevicePointer p : unsafe) unsafe_bytes_ -= pool_.give(p);
  return true;
}

void Device::release(DevicePointer p, size_t bytes) {
  if (exact_memory_) return free_now(bytes, p);
  std::lock_guard lock(memory_mutex_);
  in_use_ -= pool_.give(p);
}

void Device::release_shared(DevicePointer p, size_t bytes) noexcept {
  if (!usable()) return;
  if (exact_memory_) {
    wait_for_all();
    return free_now(bytes, p);
  }
  const EventHandle until = all_done();
  std::lock_guard lock(memory_mutex_);
  if (until) {
    in_use_ -= pool_.give(p, until);
  } else {
    in_use_ -= pool_.size_of(p);
    unsafe_.push_back(p);
    unsafe_bytes_ += pool_.size_of(p);
  }
}

void Device::free_now(size_t bytes, DevicePointer p) {
  in_use_ -= bytes;
  enter_quietly([&] {
    driver_.cuStreamSynchronize(stream_);
    driver_.cuMemFree(p);
  });
}

EventHandle Device::all_done() noexcept {
  if (!static_cast<bool>(driver_.cuCtxRecordEvent)) return nullptr;
  std::lock_guard lock(mutex_);  // it would end another thread's capture
  EventHandle event = nullptr;
  enter_quietly([&] {
    if (driver_.cuEventCreate(&event, kNoTiming) != 0) event = nullptr;
    if (!event || driver_.cuCtxRecordEvent(context_, event) == 0) return;
    driver_.cuEventDestroy(event);
    event = nullptr;
  });
  return event;
}

bool Device::wait_for_others() noexcept {
  const EventHandle until = all_done();
  if (!until) return wait_for_all();
  bool ordered = false;
  enter_quietly([&] {
    ordered = driver_.cuStreamWaitEvent(stream_, until, 0) == 0;
    driver_.cuEventDestroy(until);
  });
  return ordered;
}

bool Device::wait_for_all() noexcept {
  std::lock_guard lock(mutex_);  // it would end another thread's capture
  bool done = false;
  enter_quietly([&] { done = driver_.cuCtxSynchronize() == 0; });
  return done;
}

void Device::release_cached() {
  if (unsafe_bytes_ > 0) make_safe();
  free_segments(0);
}

void Device::free_segments(size_t least) {
  synchronise();  // what was given back may still be at work
  enter([&] {
    std::lock_guard lock(memory_mutex_);
    const auto pieces = pool_.without_free(least, [&](EventHandle until) {
      driver_.cuEventSynchronize(until);
      driver_.cuEventDestroy(until);
    });
    for (const Pool::Piece& piece : pieces) driver_.cuMemFree(piece.pointer);
  });
}

void Device::upload(DevicePointer to, const void* from, size_t bytes) {
  enter([&] { staging_->upload(to, from, bytes, stream_); });
}

void Device::copy(DevicePointer to, DevicePointer from, size_t bytes) {
  enter([&] { driver_.call(driver_.cuMemcpyDtoDAsync, to, from, bytes, stream_); });
}

DevicePointer Device::status() {
  std::lock_guard lock(mutex_);
  if (!status_) {
    DevicePointer p = allocate(sizeof(int));
    int zero = 0;
    upload(p, &zero, sizeof zero);
    status_ = p;
  }
  return status_;
}

void Device::download(void* to, DevicePointer from, size_t bytes) {
  int flagged = 0;
  enter([&] { waiting([&] { flagged = staging_->download(to, from, bytes, stream_, status_); }); });
  const std::string when =
      str(", in work on GPU ", number_, " since the last time a value was read");
  require(!(flagged & kOutOfRange), ErrorKind::Index,
          "an index was out of range for the axis that it is taken from", when);
  for (auto limit : kIntegerLimits)
    require(!(flagged & flag_of(limit)), ErrorKind::Value, broken(limit), when);
}

void Device::synchronise() {
  enter([&] { waiting([&] { driver_.call(driver_.cuStreamSynchronize, stream_); }); });
}

void Device::require_not_captured(StreamHandle other) const {
  int status = 0;
  const int result = driver_.cuStreamIsCapturing(other, &status);
  // The default stream cannot be asked while another one is captured that waits for it.
  require(result != kImplicitCapture && status == 0, ErrorKind::Runtime,
          "the other library's stream is being captured (by torch.cuda.graph, or the like), and "
          "gradcell's work cannot become part of that graph: exchange arrays before the capture "
          "begins or after it has ended");
  driver_.check(result, "cuStreamIsCapturing");
}

void Device::order(StreamHandle first, StreamHandle then) {
  std::lock_guard lock(event_mutex_);
  enter([&] {
    require_not_captured(first == stream_ ? then : first);
    driver_.call(driver_.cuEventRecord, event_, first);
    driver_.call(driver_.cuStreamWaitEvent, then, event_, 0);
  });
}

void Device::wait_for(StreamHandle other) { order(other, stream_); }
void Device::let_wait(StreamHandle other) { order(stream_, other); }

LateWord::LateWord(Device& device) : device_(device), word_(device.staging_->take_word()) {
  device_.enter([&] { Driver::get().call(Driver::get().cuEventCreate, &done_, kNoTiming); });
}

LateWord::~LateWord() {
  device_.enter_quietly([&] { Driver::get().cuEventDestroy(done_); });
  device_.staging_->give_word(word_);
}

void LateWord::send_for(DevicePointer from) {
  const Driver& driver = Driver::get();
  device_.enter([&] {
    driver.call(driver.cuMemcpyDtoHAsync, word_, from, sizeof *word_, device_.stream());
    driver.call(driver.cuEventRecord, done_, device_.stream());
  });
}

bool LateWord::has_come() const {
  const Driver& driver = Driver::get();
  return device_.enter([&] {
    const int result = driver.cuEventQuery(done_);
    if (result != kNotReady) driver.check(result, "cuEventQuery");
    return result != kNotReady;
  });
}

void LateWord::wait() const {
  const Driver& driver = Driver::get();
  device_.enter([&] { driver.call(driver.cuEventSynchronize, done_); });
}

bool DeviceBlock::take_back() {
  if (shared_ && !device_.wait_for_others()) return false;
  shared_ = false;
  return true;
}

DeviceBlock::~DeviceBlock() {
  if (give_back_) {
    device_.enter_quietly([&] { Driver::get().cuStreamSynchronize(device_.stream()); });
    give_back_();
  } else if (pointer_) {
    if (shared_)
      device_.release_shared(pointer_, bytes_);
    else if (device_.usable())
      device_.release(pointer_, bytes_);
  }
}

}  // namespace gradcell::cuda

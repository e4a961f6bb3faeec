#include "cpu/run/communicator.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstring>
#include <thread>

#include "base/interrupt.h"
#include "base/system/system.h"
#include "base/waiting.h"
#include "cpu/kernels/tile_kernels.h"
#include "ops/collective.h"

namespace gradcell::cpu {

namespace {

constexpr size_t kAlarmBytes = 1024;
constexpr size_t kTextBytes = 1024;
constexpr int kAlarmTag = 7;
/// Waiting begins by asking again at once, for data move while MPI is asked; then whoever else has
/// work comes first, and at last the processor is left to others.
constexpr int kAsks = 500;
constexpr double kEager = 0.02;  // seconds
constexpr unsigned kPause = 50;  // microseconds
constexpr double kGrace = 5;     // seconds that a failed run waits for what it has started
constexpr const char* kEnd = "the end of its program";

std::atomic<bool> g_left_behind{false};

/// A pause; of 0 microseconds: as long as others have work.
void rest(unsigned microseconds = kPause) {
  letting_others_run([=] {
    if (microseconds)
      std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
    else
      std::this_thread::yield();
  });
}

double seconds_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
}

/// MPI says nothing of NaN in its MAX and MIN: here it wins, as in this library's own.
template <class T, bool largest>
void extreme(void* in, void* inout, int* count, void*) {
  auto* a = static_cast<const T*>(in);
  auto* b = static_cast<T*>(inout);
  for (int i = 0; i < *count; ++i) {
    const bool takes = largest ? a[i] > b[i] : a[i] < b[i];
    if (takes || a[i] != a[i]) b[i] = a[i];
  }
}

bool reduces(const Call& c) { return reduces(pattern(c.op)); }

void widen(DType t, const void* from, float* to, int64_t n) {
  tile_kernels().transpose.load(from, t, to, static_cast<size_t>(n));
}
void store_wide(DType t, const float* from, void* to, int64_t n) {
  tile_kernels().transpose.store(from, t, to, static_cast<size_t>(n));
}

/// What has to be the same everywhere: op, dtype, shape, reduction or root.
std::string contents(const Call& c) {
  const auto a = decode<CollectiveAttributes>(c.attributes);
  std::string s = info(c.op).name;
  if (has_root(pattern(c.op)))
    s += str("(root ", a.root, ")");
  else if (reduces(c))
    s += str("(", combine_name(a.combine()), ")");
  if (!c.in.empty()) s += str(" of ", name(c.in[0].dtype), to_string(c.in[0].dims));
  return s;
}

std::string described(const Call& c) {
  const std::string at = c.location.text();
  return contents(c) + (at.empty() ? "" : " (" + at + ")");
}

int64_t number_of(const std::string& s) {
  uint64_t h = 0xCBF29CE484222325ull;
  for (unsigned char c : s) h = (h ^ c) * 0x100000001B3ull;
  return static_cast<int64_t>(h);
}

}  // namespace

bool left_behind() { return g_left_behind; }

struct Communicator::Transfer {
  alignas(16) unsigned char request[32] = {};
  bool active = false;
  const Call* call = nullptr;
  void* out = nullptr;
  std::vector<float> wide_in, wide_out;  ///< half types are reduced in float32
  std::vector<char> data;                ///< of messages of the engine's own
  Clock::time_point begin;
};

Communicator& Communicator::get() {
  static auto* c = new Communicator;
  return *c;
}

void Communicator::check(int error, const char* what) const {
  if (error == 0) return;
  char text[1024] = "";
  int length = 0;
  if (mpi_.Error_string(error, text, &length) != 0) length = 0;
  fail(ErrorKind::Runtime, what, ": ", std::string(text, static_cast<size_t>(length)));
}

void Communicator::open(const Mpi& mpi) {
  mpi_ = mpi;
  auto make = [&](void (*f)(void*, void*, int*, void*)) {
    MpiHandle op = 0;
    check(mpi_.Op_create(f, 1, &op), "MPI_Op_create");
    return op;
  };
  float_max_[0] = make(extreme<float, true>), float_max_[1] = make(extreme<double, true>);
  float_min_[0] = make(extreme<float, false>), float_min_[1] = make(extreme<double, false>);
  broken_.clear();
  alarms_ = 0, first_alarm_ = -1;
  open_ = true;
  post_alarm();
}

int Communicator::add_group(MpiHandle communicator, MpiHandle agreements, int size, int rank,
                            std::string name) {
  groups_[next_group_] = {communicator, agreements, size, rank, std::move(name)};
  return next_group_++;
}

void Communicator::remove_group(int group) { groups_.erase(group); }

void Communicator::require_open() const {
  require(open_, ErrorKind::Runtime, "communication.init has not been called, or release has been");
  require(broken_.empty(), ErrorKind::Runtime,
          "this process is out of step with the others: ", broken_);
}

const Communicator::Group& Communicator::group(int64_t id) const {
  auto it = groups_.find(narrow<int>(id));
  require(it != groups_.end(), ErrorKind::Runtime, "a collective of a group that was destroyed");
  return it->second;
}

// Alarms ------------------------------------------------------------------------------------------

void Communicator::post_alarm() {
  alarm_receive_ = std::make_unique<Transfer>();
  alarm_in_.assign(kAlarmBytes, 0);
  check(mpi_.Irecv(alarm_in_.data(), narrow<int>(kAlarmBytes), mpi_.bytes, mpi_.any_source,
                   kAlarmTag, mpi_.alarms, alarm_receive_->request),
        "MPI_Irecv");
  alarm_receive_->active = true;
}

void Communicator::alarm(const std::string& why, int only) {
  if (!open_) return;
  if (broken_.empty()) broken_ = why;
  for (int to = 0; to < mpi_.size; ++to) {
    if (to == mpi_.rank || (only >= 0 && to != only)) continue;
    auto t = std::make_unique<Transfer>();
    t->data.assign(kAlarmBytes, 0);
    std::memcpy(t->data.data(), &mpi_.rank, sizeof mpi_.rank);
    std::memcpy(t->data.data() + 4, why.data(), std::min(why.size(), kAlarmBytes - 5));
    if (mpi_.Isend(t->data.data(), narrow<int>(kAlarmBytes), mpi_.bytes, to, kAlarmTag, mpi_.alarms,
                   t->request) == 0)
      kept_.push_back(std::move(t));  // until the process ends
  }
}

int Communicator::alarms() {
  if (!open_ || !alarm_receive_) return alarms_;
  while (test(*alarm_receive_)) {
    int from = 0;
    std::memcpy(&from, alarm_in_.data(), sizeof from);
    if (alarms_++ == 0) first_alarm_ = from, alarm_text_ = alarm_in_.data() + 4;
    post_alarm();
  }
  return alarms_;
}

void Communicator::look_for_alarm(const std::string& here) {
  if (alarms() == 0) {
    for (auto [rank, process] : process_of_)
      if (!system::process_lives(process))
        fail(ErrorKind::Runtime, "rank ", rank, " (process ", process,
             ") is gone: it was killed, or ran out of memory\nRank ", mpi_.rank,
             " was waiting for it in ", here);
    return;
  }
  fail(ErrorKind::Runtime, "rank ", first_alarm_, " stopped: ", alarm_text_, "\nRank ", mpi_.rank,
       " was waiting for it in ", here);
}

// Transfers ---------------------------------------------------------------------------------------

bool Communicator::test(Transfer& t) {
  if (!t.active) return true;
  alignas(16) unsigned char status[256];
  int done = 0;
  check(mpi_.Test(t.request, &done, status), "MPI_Test");
  if (!done) return false;
  t.active = false;
  if (t.call && !t.wide_out.empty())
    store_wide(t.call->out.dtype, t.wide_out.data(), t.out, t.call->out.count);
  return true;
}

template <class What>
void Communicator::complete(Transfer& t, const What& what) {
  const auto begin = Clock::now();
  for (int asked = 0; !test(t); ++asked) {
    if (asked < kAsks) continue;
    const bool eager = seconds_since(begin) < kEager;
    rest(eager ? 0 : kPause);
    if (asked % 64 != 0) continue;
    check_interrupt();
    look_for_alarm(what());
    if (seconds_since(begin) < patience_) continue;
    // Who waits elsewhere answers with where it is.
    const std::string here = what();
    alarm(str("it waited ", patience_.load(), " s in ", here));
    const auto asked_at = Clock::now();
    while (seconds_since(asked_at) < 2 && alarms() < mpi_.size - 1) rest();
    fail(ErrorKind::Runtime, "rank ", mpi_.rank, " waited ", patience_.load(), " s in ", here,
         ", which not all processes have reached",
         alarms_ ? str("; rank ", first_alarm_, ": ", alarm_text_) : "",
         ". (GRADCELL_COLLECTIVE_TIMEOUT sets the seconds)");
  }
}

MpiHandle Communicator::operation(Combine how, DType t) const {
  const bool wide = t == DType::Float64;
  if (is_floating(t) && how == Combine::Max) return float_max_[wide];
  if (is_floating(t) && how == Combine::Min) return float_min_[wide];
  return mpi_.reductions[static_cast<size_t>(how)];
}

void Communicator::start(const Call& c, const void* in, void* out, Transfer& t) {
  const auto a = decode<CollectiveAttributes>(c.attributes);
  const Group& g = group(a.group);
  t.call = &c, t.out = out, t.begin = Clock::now();
  ++traffic_.exchanges;
  if (pattern(c.op) == Pattern::Nothing) {
    std::memset(out, 0, c.out.bytes());
    check(mpi_.Ibarrier(g.communicator, t.request), "MPI_Ibarrier");
    t.active = true;
    return;
  }
  if (c.in[0].count == 0) return;
  traffic_.bytes += c.in[0].bytes();
  DType dtype = c.in[0].dtype;
  if (reduces(c) && is_narrow_float(dtype)) {
    t.wide_in.resize(static_cast<size_t>(c.in[0].count));
    t.wide_out.resize(static_cast<size_t>(c.out.count));
    widen(dtype, in, t.wide_in.data(), c.in[0].count);
    in = t.wide_in.data(), out = t.wide_out.data();
    dtype = DType::Float32;
  }
  // Narrow floats that are only moved go as integers of their size.
  if (is_narrow_float(dtype)) dtype = item_size(dtype) == 1 ? DType::Int8 : DType::Int16;
  const MpiHandle type = mpi_.dtypes[static_cast<size_t>(dtype)];
  auto count_of = [&](const TensorDesc& d) {
    require(d.count <= INT_MAX, ErrorKind::Runtime, info(c.op).name, " of ", d.count,
            " elements: MPI counts to 2147483647; split the tensor");
    return narrow<int>(d.count);
  };
  const int given = count_of(c.in[0]), had = count_of(c.out);
  const MpiHandle op = operation(a.combine(), dtype);
  int error = 0;
  switch (pattern(c.op)) {
    case Pattern::Reduced:
      error = mpi_.Iallreduce(in, out, given, type, op, g.communicator, t.request);
      break;
    case Pattern::ReducedAtRoot:
      if (a.rank != a.root) {
        std::memset(t.out, 0, c.out.bytes());
        t.wide_out.clear();
      }
      error =
          mpi_.Ireduce(in, out, given, type, op, narrow<int>(a.root), g.communicator, t.request);
      break;
    case Pattern::ReducedParts:
      error = mpi_.Ireduce_scatter_block(in, out, had, type, op, g.communicator, t.request);
      break;
    case Pattern::Gathered:
      error = mpi_.Iallgather(in, given, type, out, given, type, g.communicator, t.request);
      break;
    case Pattern::Swapped: {
      const int part = given / narrow<int>(a.size);
      error = mpi_.Ialltoall(in, part, type, out, part, type, g.communicator, t.request);
      break;
    }
    case Pattern::FromRoot:
      if (a.rank == a.root) std::memcpy(out, in, c.out.bytes());
      error = mpi_.Ibcast(out, given, type, narrow<int>(a.root), g.communicator, t.request);
      break;
    case Pattern::Nothing:
      break;
  }
  check(error, info(c.op).name);
  t.active = true;
}

// Agreement ---------------------------------------------------------------------------------------

std::unique_ptr<Communicator::Transfer> Communicator::ask(const Group& g, int64_t number) {
  auto t = std::make_unique<Transfer>();
  t->data.resize(4 * sizeof number);
  auto* numbers = reinterpret_cast<int64_t*>(t->data.data());
  numbers[0] = number, numbers[1] = ~number;  // the largest of ~x is ~ of the smallest x
  check(
      mpi_.Iallreduce(numbers, numbers + 2, 2, mpi_.dtypes[static_cast<size_t>(DType::Int64)],
                      mpi_.reductions[static_cast<size_t>(Combine::Max)], g.agreements, t->request),
      "MPI_Iallreduce");
  t->active = true;
  return t;
}

bool Communicator::all_same(const Transfer& t) {
  auto* numbers = reinterpret_cast<const int64_t*>(t.data.data());
  return numbers[0] == numbers[2] && numbers[1] == numbers[3];
}

void Communicator::disagree(const Group& g, const std::string& what, const std::string& where) {
  Transfer t;
  std::string mine = (where.empty() ? what : what + " (" + where + ")").substr(0, kTextBytes - 1);
  mine.resize(kTextBytes, '\0');
  std::vector<char> all(kTextBytes * static_cast<size_t>(g.size));
  const int n = narrow<int>(kTextBytes);
  check(mpi_.Iallgather(mine.data(), n, mpi_.bytes, all.data(), n, mpi_.bytes, g.agreements,
                        t.request),
        "MPI_Iallgather");
  t.active = true;
  complete(t, [] { return std::string("comparing what the processes do"); });
  std::map<std::string, std::vector<int>> ranks;
  for (int r = 0; r < g.size; ++r) ranks[&all[kTextBytes * static_cast<size_t>(r)]].push_back(r);
  std::vector<std::pair<std::string, std::vector<int>>> found(ranks.begin(), ranks.end());
  std::ranges::sort(found, {}, [](auto& one) { return one.second[0]; });
  std::string text = str("the processes of ", g.name, " differ in what they exchange");
  for (auto& [said, who] : found) {
    text += who.size() > 1 ? "; ranks " : "; rank ";
    for (size_t i = 0; i < who.size() && i < 8; ++i) text += str(i ? ", " : "", who[i]);
    text += str(who.size() > 8 ? ", ...: " : ": ", said);
  }
  fail(ErrorKind::Runtime, text);
}

void Communicator::close() {
  if (!open_) return;
  if (broken_.empty() && mpi_.size > 1) {
    std::lock_guard lock(mutex_);
    const Group world{mpi_.world, mpi_.alarms, mpi_.size, mpi_.rank, "the world"};
    auto t = ask(world, number_of(kEnd));
    complete(*t, [] { return std::string(kEnd); });
    if (!all_same(*t)) disagree(world, kEnd, "");
  }
  open_ = false;
  if (alarm_receive_ && alarm_receive_->active) {
    mpi_.Cancel(alarm_receive_->request);
    mpi_.Request_free(alarm_receive_->request);
    alarm_receive_->active = false;
  }
  groups_.clear();
}

Agenda::Agenda(const Plan& plan) {
  for (const Stage& s : plan.stages)
    for (const Call& c : s.calls)
      if (c.form == Form::Collective) items.push_back({&c, number_of(contents(c))});
}

Exchange::Exchange(const Agenda& agenda)
    : c_(Communicator::get()),
      agenda_(agenda),
      lock_(c_.mutex_, std::defer_lock),
      transfers_(agenda.items.size()) {
  while (!lock_.try_lock()) rest();
  c_.require_open();
  c_.alarms();
  propose();
}

void Exchange::propose() {
  if (next_ == agenda_.items.size()) return;
  const Agenda::Item& item = agenda_.items[next_];
  const int64_t group = decode<CollectiveAttributes>(item.call->attributes).group;
  proposal_ = c_.ask(c_.group(group), item.number);
}

void Exchange::agree() {
  const auto begin = Communicator::Clock::now();
  const Call& c = *agenda_.items[next_].call;
  c_.complete(*proposal_, [&] { return described(c); });
  c_.traffic_.agreeing += seconds_since(begin);
  if (!c_.all_same(*proposal_)) {
    finish();  // all know, and have come to the same place: they may go on
    const auto& g = c_.group(decode<CollectiveAttributes>(c.attributes).group);
    c_.disagree(g, contents(c), c.location.text());
  }
  proposal_.reset();
}

void Exchange::start(const Call& c, const void* in, void* out) {
  agree();
  auto& t = transfers_[next_++];
  t = std::make_unique<Transfer>();
  c_.start(c, in, out, *t);
  propose();
}

void Exchange::wait(int32_t sequence) {
  if (!transfers_[static_cast<size_t>(sequence)]) return;
  Transfer& t = *transfers_[static_cast<size_t>(sequence)];
  if (!t.active) return;
  const auto begin = Communicator::Clock::now();
  c_.complete(t, [&] { return described(*t.call); });
  c_.traffic_.waited += seconds_since(begin);
  c_.traffic_.in_flight += seconds_since(t.begin);
}

void Exchange::progress() {
  for (auto& t : transfers_)
    if (t && t->active && c_.test(*t)) c_.traffic_.in_flight += seconds_since(t->begin);
}

void Exchange::finish() {
  for (int32_t i = 0; i < narrow<int32_t>(transfers_.size()); ++i) wait(i);
  finished_ = true;
}

Exchange::~Exchange() {
  if (finished_) return;
  // The run failed: the others are told, and what is under way may still end.
  const bool alone = c_.alarms_ == 0 && c_.broken_.empty();
  try {
    if (alone) c_.alarm(why_);
  } catch (...) {  // nobody can be told
  }
  if (c_.broken_.empty()) c_.broken_ = why_;
  const auto begin = Communicator::Clock::now();
  auto end = [&](std::unique_ptr<Transfer>& t) {
    if (!t) return;
    try {
      while (!c_.test(*t) && seconds_since(begin) < (alone ? kGrace : 0.1)) rest();
    } catch (...) {  // as bad as not arriving
    }
    if (!t->active) return;
    if (t->call) g_left_behind = true;
    c_.kept_.push_back(std::move(t));
  };
  for (auto& t : transfers_) end(t);
  end(proposal_);
}

}  // namespace gradcell::cpu

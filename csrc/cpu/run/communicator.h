// The processes that work together, over MPI. Its functions come as addresses, which Python finds
// in the library that mpi4py was built for; nothing of MPI is linked or included.
//
// Holds: every process of a group makes the same exchanges in the same order. Before each of them
// they agree, by a few bytes that travel while the plan comes to it, that it is the same for all;
// so that what differs is an error that names both, not a hang. Who fails tells the others, and who
// waits looks out for that.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace gradcell::cpu {

/// A handle of MPI: an int or a pointer, which registers and the stack pass alike.
using MpiHandle = intptr_t;

struct Mpi {
  int (*Iallreduce)(const void*, void*, int, MpiHandle, MpiHandle, MpiHandle, void*);
  int (*Ireduce)(const void*, void*, int, MpiHandle, MpiHandle, int, MpiHandle, void*);
  int (*Ireduce_scatter_block)(const void*, void*, int, MpiHandle, MpiHandle, MpiHandle, void*);
  int (*Iallgather)(const void*, int, MpiHandle, void*, int, MpiHandle, MpiHandle, void*);
  int (*Ialltoall)(const void*, int, MpiHandle, void*, int, MpiHandle, MpiHandle, void*);
  int (*Ibcast)(void*, int, MpiHandle, int, MpiHandle, void*);
  int (*Ibarrier)(MpiHandle, void*);
  int (*Isend)(const void*, int, MpiHandle, int, int, MpiHandle, void*);
  int (*Irecv)(void*, int, MpiHandle, int, int, MpiHandle, void*);
  int (*Test)(void*, int*, void*);
  int (*Cancel)(void*);
  int (*Request_free)(void*);
  int (*Op_create)(void (*)(void*, void*, int*, void*), int, void*);
  int (*Error_string)(int, char*, int*);
  MpiHandle dtypes[kDTypeCount];  ///< bool as uint8; half types: none
  MpiHandle bytes;
  MpiHandle reductions[4];  ///< by Combine
  MpiHandle world, alarms;  ///< all processes, twice: for what agrees, and for who fails
  int any_source;
  int size, rank;
};

/// What went through a process's exchanges so far.
struct Traffic {
  uint64_t exchanges = 0;
  uint64_t bytes = 0;    ///< that this process gave
  double in_flight = 0;  ///< seconds between start and end, of all exchanges together
  double waited = 0;     ///< seconds of these in which nothing else was done
  double agreeing = 0;   ///< seconds of waiting for the others to come to the same plan
};

class Communicator {
 public:
  static Communicator& get();

  void open(const Mpi& mpi);
  bool is_open() const { return open_; }
  /// Leaves, once all processes are here. Throws what keeps them from agreeing on that.
  void close();
  /// `agreements`: a duplicate, in which processes agree on what comes next.
  int add_group(MpiHandle communicator, MpiHandle agreements, int size, int rank, std::string name);
  void remove_group(int group);
  /// The processes on this machine, by rank: while waiting for them, whether they are there is
  /// looked at. Launchers that end all others when one is killed make no use of it.
  void set_neighbours(std::map<int, int> process_of) { process_of_ = std::move(process_of); }
  /// How long to wait for others, in seconds.
  void set_patience(double seconds) { patience_ = seconds; }

  /// Tells the other processes (or one of them) that this one cannot go on.
  void alarm(const std::string& why, int only = -1);
  /// How many others have told so by now, and the first of them.
  int alarms();
  int first_alarm() const { return first_alarm_; }

  Traffic traffic() const { return traffic_; }

 private:
  friend class Exchange;
  struct Group {
    MpiHandle communicator, agreements;
    int size, rank;
    std::string name;
  };
  struct Transfer;
  using Clock = std::chrono::steady_clock;

  void check(int error, const char* what) const;
  void require_open() const;
  const Group& group(int64_t id) const;
  MpiHandle operation(Combine how, DType t) const;
  void start(const Call& c, const void* in, void* out, Transfer& t);
  bool test(Transfer& t);
  /// Waits; `what` says for whom, if it fails.
  template <class What>
  void complete(Transfer& t, const What& what);
  void look_for_alarm(const std::string& here);
  void post_alarm();
  /// Asks whether all processes of the group bring the same number.
  std::unique_ptr<Transfer> ask(const Group& g, int64_t number);
  static bool all_same(const Transfer& t);
  /// Throws, naming who differs: `what` is what this process comes with, and where.
  [[noreturn]] void disagree(const Group& g, const std::string& what, const std::string& where);

  Mpi mpi_{};
  MpiHandle float_max_[2], float_min_[2];  ///< float32, float64: NaN wins
  std::map<int, Group> groups_;
  int next_group_ = 0;
  bool open_ = false;
  std::atomic<double> patience_{1800};
  std::mutex mutex_;
  std::string broken_;  ///< why this process exchanges nothing any more
  std::vector<std::unique_ptr<Transfer>> kept_;
  std::unique_ptr<Transfer> alarm_receive_;
  std::vector<char> alarm_in_;
  int alarms_ = 0, first_alarm_ = -1;
  std::string alarm_text_;
  std::map<int, int> process_of_;
  Traffic traffic_;
};

/// What a plan exchanges, in order, found once: numbers that differ where anything differs.
struct Agenda {
  struct Item {
    const Call* call;
    int64_t number;
  };
  std::vector<Item> items;
  Agenda() = default;
  explicit Agenda(const Plan& plan);
};

/// One run of a plan's collectives.
class Exchange {
 public:
  explicit Exchange(const Agenda& agenda);
  /// Whatever is under way ends, or is left behind if the others are gone.
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void start(const Call& c, const void* in, void* out);
  void wait(int32_t sequence);
  /// Waits for all.
  void finish();
  /// Lets transfers go on.
  void progress();
  /// Why the run does not finish, for the others.
  void failed(std::string why) { why_ = std::move(why); }

 private:
  using Transfer = Communicator::Transfer;
  /// Begins to agree with the others on the next collective, while the plan comes to it.
  void propose();
  void agree();
  Communicator& c_;
  const Agenda& agenda_;
  std::unique_lock<std::mutex> lock_;
  std::vector<std::unique_ptr<Transfer>> transfers_;
  std::unique_ptr<Transfer> proposal_;
  size_t next_ = 0;
  std::string why_ = "a step was interrupted";
  bool finished_ = false;
};

/// Whether an exchange was left behind, whose buffers must stay what they are.
bool left_behind();

}  // namespace gradcell::cpu

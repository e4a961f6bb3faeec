// NCCL: what several GPUs exchange. Opened at run time, when the first group of processes is made.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>

#include "cuda/cuda_plan.h"
#include "cuda/run/driver.h"

namespace gradcell::cuda {

using NcclId = std::array<char, 128>;  ///< ncclUniqueId

class Nccl {
 public:
  /// Opened at the first use. Throws Runtime, naming the extra that installs it, if it is missing.
  static Nccl& get();

  int version() const { return version_; }  ///< 22703: 2.27.3
  const std::string& path() const;
  /// What one process makes and all have to know to come together.
  NcclId unique_id() const;
  /// Joins the processes with that id, on the current context's device: all of them call this.
  void add_group(int64_t group, const NcclId& id, int size, int rank);
  void remove_group(int64_t group);
  /// Puts a collective on the stream. Throws NotImplemented for a dtype that NCCL does not reduce.
  void enqueue(const Passage& p, DevicePointer in, DevicePointer out, StreamHandle stream);

 private:
  Nccl();
  struct Api;
  void check(int result, const char* what) const;
  std::unique_ptr<Api> api_;
  int version_ = 0;
  std::mutex mutex_;
  std::map<int64_t, void*> groups_;
};

}  // namespace gradcell::cuda

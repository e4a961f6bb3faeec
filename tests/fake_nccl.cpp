// NCCL of the made-up GPU: processes that meet in a folder, whose name is the unique id. Work runs
// late, as all work on the made-up GPU's streams does; what a process gives goes into a file that
// the others wait for. Different calls of the processes are an error, as is a group's work on
// another device's stream.
//
// Environment: FAKE_NCCL_LOG: a folder; rank r's calls are written to nccl_r there, a line each.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <sstream>
#include <thread>

#include "fake_cuda.h"

using namespace fake;

namespace {

struct Id {
  char folder[128];
};

struct Group {
  std::string folder;
  int size, rank, device;
  long calls = 0;
};

constexpr int kInvalidArgument = 4, kInvalidUsage = 5;
constexpr size_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};  // by ncclDataType_t

void log(const Group& g, const std::string& line) {
  if (const char* folder = std::getenv("FAKE_NCCL_LOG"))
    std::ofstream(std::string(folder) + "/nccl_" + std::to_string(g.rank), std::ios::app)
        << line << "\n";
}

/// What every process gives to call `number`, by rank; each begins with what it calls.
std::vector<std::string> exchange(const Group& g, long number, const std::string& what,
                                  const void* data, size_t bytes) {
  auto name = [&](int rank) {
    return g.folder + "/" + std::to_string(number) + "_" + std::to_string(rank);
  };
  const std::string part = name(g.rank) + ".part";
  std::ofstream(part, std::ios::binary) << what << "\n"
                                        << std::string(static_cast<const char*>(data), bytes);
  std::rename(part.c_str(), name(g.rank).c_str());
  std::vector<std::string> all;
  for (int r = 0; r < g.size; ++r) {
    for (int waited = 0; !std::filesystem::exists(name(r)); ++waited) {
      if (waited > 3000) return sticky = kIllegalAddress, all;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    std::ifstream file(name(r), std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    const std::string s = text.str();
    if (s.substr(0, s.find('\n')) != what) sticky = kIllegalAddress;
    all.push_back(s.substr(s.find('\n') + 1));
  }
  return all;
}

template <class T>
void combine(std::string& into, const std::string& other, int how) {
  auto* a = reinterpret_cast<T*>(into.data());
  auto* b = reinterpret_cast<const T*>(other.data());
  for (size_t i = 0; i < into.size() / sizeof(T); ++i)
    a[i] = how == 0   ? a[i] + b[i]
           : how == 1 ? a[i] * b[i]
           : how == 2 ? std::max(a[i], b[i])
                      : std::min(a[i], b[i]);
}

std::string reduced(std::vector<std::string> all, int type, int how) {
  std::string out = all.at(0);
  for (size_t r = 1; r < all.size(); ++r) switch (type) {
      case 0:
        combine<int8_t>(out, all[r], how);
        break;
      case 1:
        combine<uint8_t>(out, all[r], how);
        break;
      case 2:
        combine<int32_t>(out, all[r], how);
        break;
      case 4:
        combine<int64_t>(out, all[r], how);
        break;
      case 6:
        combine<_Float16>(out, all[r], how);
        break;
      case 7:
        combine<float>(out, all[r], how);
        break;
      case 8:
        combine<double>(out, all[r], how);
        break;
    }
  return out;
}

/// Late work: `take` gets what all gave, and writes what this process has of it.
template <class Take>
int late(void* group, void* stream, const std::string& what, const void* from, size_t bytes,
         void* to, size_t out_bytes, Take take) {
  LOCKED;
  auto* g = static_cast<Group*>(group);
  if (wrong(stream) || stream_of(stream)->device != g->device) return kInvalidUsage;
  log(*g, what + (stream_of(stream)->capturing ? " captured" : ""));
  const int device = g->device;
  enqueue(stream, [=] {
    if (bytes && !there(reinterpret_cast<Address>(from), device)) return;
    if (out_bytes && !there(reinterpret_cast<Address>(to), device)) return;
    auto all = exchange(*g, g->calls++, what, from, bytes);
    if (static_cast<int>(all.size()) < g->size) return;
    const std::string out = take(all);
    std::memcpy(to, out.data(), std::min(out.size(), out_bytes));
  });
  return 0;
}

std::string line(const char* call, size_t count, int type, int how = -1) {
  return std::string(call) + " " + std::to_string(count) + " type " + std::to_string(type) +
         (how < 0 ? "" : " op " + std::to_string(how));
}

struct Message {
  bool sends;
  const void* from;
  void* to;
  size_t bytes;
  int peer;
};
thread_local std::vector<Message> messages;
thread_local Group* messages_of = nullptr;
thread_local void* messages_on = nullptr;

}  // namespace

API ncclGetVersion(int* v) { return *v = 22703, 0; }
extern "C" __attribute__((visibility("default"))) const char* ncclGetErrorString(int) {
  return "a made-up error of NCCL";
}
API ncclGetUniqueId(Id* id) {
  std::string folder = std::filesystem::temp_directory_path() / "fake_nccl_XXXXXX";
  if (!mkdtemp(folder.data())) return kInvalidArgument;
  *id = {};
  std::strncpy(id->folder, folder.c_str(), sizeof id->folder - 1);
  return 0;
}
API ncclCommInitRank(void** made, int size, Id id, int rank) {
  LOCKED;
  if (!current || rank < 0 || rank >= size) return kInvalidUsage;
  auto* g = new Group{id.folder, size, rank, current->device};
  *made = g;
  log(*g, "init " + std::to_string(rank) + " of " + std::to_string(size));
  return exchange(*g, -1, "init", "", 0).empty() ? kInvalidUsage : 0;
}
API ncclCommDestroy(void* g) { return delete static_cast<Group*>(g), 0; }

API ncclAllReduce(const void* from, void* to, size_t n, int type, int how, void* g, void* s) {
  const size_t bytes = n * kSizes[type];
  return late(g, s, line("all_reduce", n, type, how), from, bytes, to, bytes,
              [=](auto& all) { return reduced(all, type, how); });
}
API ncclReduce(const void* from, void* to, size_t n, int type, int how, int root, void* g,
               void* s) {
  const size_t bytes = n * kSizes[type];
  const bool mine = static_cast<Group*>(g)->rank == root;
  return late(g, s, line("reduce", n, type, how), from, bytes, to, mine ? bytes : 0,
              [=](auto& all) { return reduced(all, type, how); });
}
API ncclReduceScatter(const void* from, void* to, size_t n, int type, int how, void* g, void* s) {
  auto* group = static_cast<Group*>(g);
  const size_t bytes = n * kSizes[type];
  const size_t rank = static_cast<size_t>(group->rank), size = static_cast<size_t>(group->size);
  return late(g, s, line("reduce_scatter", n, type, how), from, bytes * size, to, bytes,
              [=](auto& all) { return reduced(all, type, how).substr(rank * bytes, bytes); });
}
API ncclAllGather(const void* from, void* to, size_t n, int type, void* g, void* s) {
  const size_t bytes = n * kSizes[type];
  const auto size = static_cast<size_t>(static_cast<Group*>(g)->size);
  return late(g, s, line("all_gather", n, type), from, bytes, to, bytes * size, [](auto& all) {
    std::string out;
    for (auto& part : all) out += part;
    return out;
  });
}
API ncclBroadcast(const void* from, void* to, size_t n, int type, int root, void* g, void* s) {
  const size_t bytes = n * kSizes[type];
  return late(g, s, line("broadcast", n, type, root), from, bytes, to, bytes,
              [=](auto& all) { return all[static_cast<size_t>(root)]; });
}
API ncclGroupStart() { return messages.clear(), 0; }
API ncclSend(const void* from, size_t n, int type, int peer, void* g, void* s) {
  messages_of = static_cast<Group*>(g), messages_on = s;
  messages.push_back({true, from, nullptr, n * kSizes[type], peer});
  return 0;
}
API ncclRecv(void* to, size_t n, int type, int peer, void* g, void* s) {
  messages_of = static_cast<Group*>(g), messages_on = s;
  messages.push_back({false, nullptr, to, n * kSizes[type], peer});
  return 0;
}
/// Equal parts from and to everybody, side by side: what an all-to-all is made of.
API ncclGroupEnd() {
  const void* from = nullptr;
  void* to = nullptr;
  size_t bytes = 0;
  for (const Message& m : messages) {
    if (m.peer == 0) (m.sends ? void(from = m.from) : void(to = m.to));
    bytes = m.bytes;
  }
  const size_t size = static_cast<size_t>(messages_of->size);
  const size_t rank = static_cast<size_t>(messages_of->rank);
  if (messages.size() != 2 * size) return kInvalidUsage;
  return late(messages_of, messages_on, line("all_to_all", bytes, 1), from, bytes * size, to,
              bytes * size, [=](auto& all) {
                std::string out;
                for (auto& part : all) out += part.substr(rank * bytes, bytes);
                return out;
              });
}

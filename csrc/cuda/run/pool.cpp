#include "cuda/run/pool.h"

#include <algorithm>
#include <bit>

namespace gradcell::cuda {

namespace {

constexpr size_t kUnit = 512;
/// What is left of a piece that is smaller than this stays with it.
constexpr size_t kLeast = size_t{64} << 10;

}  // namespace

size_t Pool::rounded(size_t bytes) {
  if (bytes <= kUnit) return kUnit;
  // Eighths of a power of two, so that shapes that vary a little find their blocks again.
  const size_t step = std::max(kUnit, std::bit_floor(bytes) / 8);
  return (bytes + step - 1) / step * step;
}

Pool::Piece Pool::take(size_t bytes) {
  // Small blocks divide nothing. Nor is what will be free only later divided: its event is waited
  // for once.
  auto fits = [&](const auto& piece) {
    return piece.first.first <= bytes + bytes / 4 ||
           (bytes >= kLarge && !pieces_.at(piece.second).until);
  };
  const auto end = bytes >= kLarge ? free_.end() : free_.lower_bound({bytes + bytes / 4 + 1, 0});
  const auto found = std::find_if(free_.lower_bound({bytes, 0}), end, fits);
  if (found == end) return {};
  const Place at = pieces_.find(found->second);
  State& s = at->second;
  leave(at);
  const Piece piece{at->first, s.bytes, s.until};
  s.until = nullptr;
  if (piece.until || s.bytes < bytes + kLeast) return piece;
  const Place rest = pieces_.emplace(at->first + bytes, State{s.bytes - bytes, false}).first;
  s.bytes = bytes;
  enter(rest, nullptr);
  return {piece.pointer, bytes, nullptr};
}

void Pool::add(DevicePointer p, size_t bytes) { pieces_.insert_or_assign(p, State{bytes, true}); }

size_t Pool::give(DevicePointer p, EventHandle until) {
  const Place at = pieces_.find(p);
  const size_t bytes = at->second.bytes;
  enter(at, until);
  return bytes;
}

void Pool::enter(Place at, EventHandle until) {
  auto joins = [&](Place other) { return other->second.free && !other->second.until; };
  auto take_in = [&](Place first, Place second) {
    first->second.bytes += second->second.bytes;
    pieces_.erase(second);
  };
  if (!until) {
    const Place next = std::next(at);
    if (next != pieces_.end() && !next->second.begins && joins(next)) {
      leave(next);
      take_in(at, next);
    }
    if (!at->second.begins && joins(std::prev(at))) {
      const Place before = std::prev(at);
      leave(before);
      take_in(before, at);
      at = before;
    }
  }
  at->second.free = true;
  at->second.until = until;
  at->second.order = next_--;
  free_.emplace(std::pair(at->second.bytes, at->second.order), at->first);
  free_bytes_ += at->second.bytes;
}

void Pool::leave(Place at) {
  at->second.free = false;
  free_.erase({at->second.bytes, at->second.order});
  free_bytes_ -= at->second.bytes;
}

bool Pool::is_whole(std::map<DevicePointer, State>::const_iterator at) const {
  const auto next = std::next(at);
  return at->second.begins && at->second.free && (next == pieces_.end() || next->second.begins);
}

size_t Pool::whole(size_t least) const {
  size_t sum = 0;
  for (auto it = free_.lower_bound({least, 0}); it != free_.end(); ++it)
    if (is_whole(pieces_.find(it->second))) sum += it->first.first;
  return sum;
}

std::vector<Pool::Piece> Pool::without_free(size_t least, FunctionRef<void(EventHandle)> wait) {
  std::vector<DevicePointer> late;
  for (const auto& [p, state] : pieces_)
    if (state.until) late.push_back(p);
  for (DevicePointer p : late) {
    const Place at = pieces_.find(p);
    wait(at->second.until);
    leave(at);
    enter(at, nullptr);
  }
  std::vector<Piece> out;
  for (auto it = free_.lower_bound({least, 0}); it != free_.end();) {
    const Place at = pieces_.find((it++)->second);
    if (!is_whole(at)) continue;
    out.push_back({at->first, at->second.bytes, nullptr});
    leave(at);
    pieces_.erase(at);
  }
  return out;
}

}  // namespace gradcell::cuda

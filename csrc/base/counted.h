// Counts over all threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/thread_pool.h"

namespace gradcell {

/// Counts of [0, length) in tables of a thread each, added up. count(begin, end, table).
template <class F>
std::vector<int64_t> counted(int64_t n, int64_t length, F count) {
  const int64_t parts =
      length > (1 << 16) ? 1 : std::clamp<int64_t>(n / 32768, 1, 4 * max_threads());
  std::vector<std::vector<int64_t>> tables(static_cast<size_t>(parts));
  parallel_for(parts, [&](int part, int) {
    auto& table = tables[static_cast<size_t>(part)];
    table.assign(static_cast<size_t>(length), 0);
    count(n * part / parts, n * (part + 1) / parts, table.data());
  });
  for (size_t part = 1; part < tables.size(); ++part)
    for (size_t k = 0; k < tables[0].size(); ++k) tables[0][k] += tables[part][k];
  return std::move(tables[0]);
}

}  // namespace gradcell

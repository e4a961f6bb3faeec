// Memory for elements, aligned to 64 bytes.
#pragma once

#include <cstddef>

#include "base/system/system.h"

namespace gradcell {

/// A block for system::release, or null. Large ones get pages of 2 MiB where the system has them to
/// give: a matrix's rows are a page each otherwise, which the processor looks up one by one, and
/// the first write to each of its small pages is a call of the system.
inline void* allocate(size_t bytes) {
  constexpr size_t kPage = size_t(2) << 20;
  if (bytes < 2 * kPage) return system::aligned(64, (bytes + 63) / 64 * 64);
  const size_t whole = (bytes + kPage - 1) / kPage * kPage;
  void* p = whole < bytes ? nullptr : system::aligned(kPage, whole);
  if (p) system::take_large_pages(p, whole);
  return p;
}

}  // namespace gradcell

// Memory for elements, aligned to 64 bytes.
#pragma once

#include <cstddef>
#include <cstdlib>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace gradcell {

/// A block for std::free, or null. Large ones get pages of 2 MiB where the system has them to give:
/// a matrix's rows are a page each otherwise, which the processor looks up one by one, and the
/// first write to each of its small pages is a call of the system.
inline void* allocate(size_t bytes) {
  constexpr size_t kPage = size_t(2) << 20;
  if (bytes < 2 * kPage) return std::aligned_alloc(64, bytes);
  const size_t whole = (bytes + kPage - 1) / kPage * kPage;
  void* p = whole < bytes ? nullptr : std::aligned_alloc(kPage, whole);
#ifdef MADV_HUGEPAGE
  if (p) madvise(p, whole, MADV_HUGEPAGE);  // advice: it may be refused
#endif
  return p;
}

}  // namespace gradcell

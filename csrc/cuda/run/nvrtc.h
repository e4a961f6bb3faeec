// Kernel text to machine code: NVRTC, and what it made before, in memory and on disk.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace gradcell::cuda {

/// Code for a compute capability (90: sm_90), from the cache where it is there: a CUBIN, or PTX
/// where this NVRTC does not know the GPU's generation.
///
/// The key is the text, the options, the architecture and NVRTC's version. What cannot be written
/// stays in memory; what cannot be read back is compiled again.
std::shared_ptr<const std::string> compiled(const std::string& source, int capability,
                                            size_t shared_bytes);

/// "13.0" of the NVRTC in use. Throws Runtime, naming the extra that installs it, if there is none.
std::string nvrtc_version();

struct KernelCacheInfo {
  std::string directory;  ///< empty: nowhere to write
  size_t files, bytes;
  size_t compiled, from_disk, from_memory;  ///< of this process
};
KernelCacheInfo kernel_cache_info();
/// Forgets what is in memory (not the files).
void clear_kernel_cache();

}  // namespace gradcell::cuda

// Sums over rows: the kernel that adds up what each chunk of rows comes to.
#include <algorithm>

#include "cuda/write/regions/region_writer.h"
#include "cuda/write/regions/tile_writer.h"

namespace gradcell::cuda {

namespace {

/// Adds up what the chunks of rows come to, for some accumulators side by side.
class SumWriter : Writer {
 public:
  SumWriter(const WriterInputs& in, int32_t stage) : Writer(in, stage) {}

  Written run(const TileRegion& tile, const TileSums& sums) {
    const Region& r = tile.region;
    const std::string type = sum_type(sums.floating), op = reduction(sums.combine, type);
    const std::string p = buffer(sums.partial, type.c_str(), false, "p0");
    const std::string count = size(sums.count), chunks = size(tile.cost.chunks);
    step_.bytes_read += partial_bytes(tile, sums);
    std::string stores;
    int64_t at = 0;
    for (uint32_t k : sums.accumulators) {
      const Accumulator& a = r.accumulators[k];
      const std::string begin = size(at), end = size(at += static_cast<int64_t>(a.count()));
      const std::string value = str("(", type_name(a.type), ")s");
      const std::string q = writes(a.buffer);
      stores += str("    ", stores.empty() ? "" : "else ", "if (e < ", end, ") ", q, "[e - ", begin,
                    "] = ", encoded(a.dtype, narrowed(a.dtype, value)), ";\n");
    }
    const std::string text = str(
        "  for (gc_index e0 = blockIdx.x * blockDim.x; e0 < ", count,
        "; e0 += gridDim.x * blockDim.x) {\n    const gc_index e = e0 + threadIdx.x;\n    ", type,
        " s = ", op, "::none();\n#pragma unroll 8\n    for (gc_index k = threadIdx.y; e < ", count,
        " && k < ", chunks, "; k += blockDim.y) s = ", op, "::of(s, ", p, "[k * ", count,
        " + e]);\n    s = gc_down<", op, ">(s);\n    if (threadIdx.y > 0) continue;\n", stores,
        "  }\n");
    step_.block_x = 32, step_.block_y = 8;
    step_.grid = grid_for(sums.count, step_.block_x);
    return written(text, "tile_sums");
  }
};

}  // namespace

const char* sum_type(bool floating) { return floating ? "double" : "gc_long"; }

std::string reduction(Combine how, const std::string& type) {
  return str("gc_", combine_name(how), "<", type, ">");
}

std::vector<TileSums> tile_sums(const Region& r) {
  std::vector<TileSums> all;
  for (uint32_t k = 0; k < r.accumulators.size(); ++k) {
    const Accumulator& a = r.accumulators[k];
    const bool floating = a.type == Compute::F32 || a.type == Compute::F64;
    auto same = std::ranges::find_if(
        all, [&](const TileSums& s) { return s.combine == a.combine && s.floating == floating; });
    if (same == all.end()) same = all.insert(all.end(), {a.combine, floating, {}});
    same->accumulators.push_back(k);
    same->count += static_cast<int64_t>(a.count());
  }
  return all;
}

size_t partial_bytes(const TileRegion& tile, const TileSums& sums) {
  return static_cast<size_t>(tile.cost.chunks * sums.count) * 8;
}

Written write_tile_sums(const WriterInputs& in, int32_t stage, const TileRegion& tile,
                        const TileSums& sums) {
  return SumWriter(in, stage).run(tile, sums);
}

}  // namespace gradcell::cuda

#include "cuda/join/product_groups.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "cuda/fuse/product_joins.h"
#include "cuda/plan_time.h"

namespace gradcell::cuda {

namespace {

/// Parameters of a launch have room for so many, each with five matrices and five sizes.
constexpr size_t kMostProducts = kMaxParameters / (5 * 8 + 5 * 8) - 1;

bool can_group(const Step& s) {
  const Gemm& p = s.product;
  const bool alone = p.a_parts.empty() && p.b_parts.empty() && p.out_parts.empty();
  return s.is_product() && alone && !p.accumulate && p.batch * p.m * p.n * p.k > 0;
}

/// What products of a group have in common.
auto kind(const Gemm& p) {
  return std::tuple{p.dtype,    p.tf32,  p.transpose_a, p.transpose_b, p.adds,
                    p.has_bias, p.batch, p.m,           p.n,           p.k};
}

class Grouper {
 public:
  Grouper(const CudaPlan& plan, const Target& target) : plan_(plan), target_(target) {
    std::vector<size_t> next(plan.buffers.size(), plan.steps.size());
    needed_.resize(plan.steps.size());
    for (size_t at = plan.steps.size(); at-- > 0;) {
      const Step& s = plan.steps[at];
      if (s.is_product()) needed_[at] = next[s.product.out];
      for (BufferId b : plan.used_by(s)) next[b] = at;
    }
  }

  std::vector<ProductGroup> run() {
    constexpr size_t kOwnOfKernel = 1024;
    std::map<decltype(kind(std::declval<Gemm>())), std::vector<size_t>> alike;
    for (size_t at = 0; at < plan_.steps.size(); ++at)
      if (can_group(plan_.steps[at]) &&
          group_shared_bytes(plan_.steps[at].product.dtype) + kOwnOfKernel <= target_.shared_bytes)
        alike[kind(plan_.steps[at].product)].push_back(at);
    for (const auto& [what, steps] : alike) split(steps);
    return std::move(found_);
  }

 private:
  /// Into groups that can wait for their last one: nobody needs a result before, and what they
  /// read need not be kept for long.
  void split(const std::vector<size_t>& steps) {
    std::vector<size_t> open;
    size_t needed = 0, bytes = 0;
    for (size_t at : steps) {
      const size_t own = plan_.steps[at].bytes_read + plan_.steps[at].bytes_written;
      if (open.empty() || at >= needed || bytes + own > kMostJoinedBytes ||
          open.size() == kMostProducts) {
        close(open);
        open.clear();
        needed = plan_.steps.size(), bytes = 0;
      }
      open.push_back(at);
      needed = std::min(needed, needed_[at]), bytes += own;
    }
    close(open);
  }

  void close(const std::vector<size_t>& steps) {
    if (steps.size() < 2) return;
    double each = 0;
    for (size_t at : steps) each += cycles_of(plan_.steps[at], target_);
    const Gemm& p = plan_.steps[steps[0]].product;
    const auto count = static_cast<int64_t>(steps.size());
    const GroupTime best = quickest_group(p, count, target_);
    if (best.cycles < each) found_.push_back({steps, best.parts, best.partial_bytes, best.work});
  }

  const CudaPlan& plan_;
  const Target& target_;
  std::vector<size_t> needed_;  ///< by step, of a product: the first step that has to come after it
  std::vector<ProductGroup> found_;
};

}  // namespace

int64_t blocks_of_group(const Gemm& p, const ProductGroup& group) {
  return static_cast<int64_t>(group.steps.size()) * group.parts * blocks_of_product(p);
}

/// Two tiles of 64 rows and as many columns, each of 32 terms and the gap of gc_pitch.
size_t group_shared_bytes(DType dtype) {
  const size_t item = item_size(dtype);
  return size_t(2 * 128) * (32 * item + 16);
}

std::vector<ProductGroup> product_groups(const CudaPlan& plan, const Target& target) {
  return Grouper(plan, target).run();
}

}  // namespace gradcell::cuda

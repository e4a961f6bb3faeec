#include "ir/view.h"

namespace gradcell {

View merged(const View& v) {
  View out{{}, {}, v.offset};
  for (size_t k = 0; k < v.dims.size(); ++k) {
    if (v.dims[k] == 1) continue;
    if (!out.dims.empty() && out.strides.back() == v.strides[k] * v.dims[k]) {
      out.dims.back() *= v.dims[k], out.strides.back() = v.strides[k];
    } else {
      out.dims.push_back(v.dims[k]), out.strides.push_back(v.strides[k]);
    }
  }
  if (out.dims.empty()) out.dims = {1}, out.strides = {1};
  return out;
}

std::optional<View> reshaped(const View& v, const Dims& to) {
  View out{to, row_major(to), v.offset};
  if (element_count(to) == 0) return out;
  Dims dims, strides;  // without the dimensions of size 1, which lie anywhere
  for (size_t k = 0; k < v.dims.size(); ++k)
    if (v.dims[k] != 1) dims.push_back(v.dims[k]), strides.push_back(v.strides[k]);
  // Dimensions [i, ie) of v and [k, ke) of the result hold the same elements; each such group of v
  // has to lie as one dimension would.
  size_t i = 0, k = 0;
  while (i < dims.size()) {
    size_t ie = i + 1, ke = k + 1;
    int64_t have = dims[i], want = to[k];
    while (have != want)
      if (want < have)
        want *= to[ke++];
      else
        have *= dims[ie++];
    for (size_t a = i; a + 1 < ie; ++a)
      if (strides[a] != strides[a + 1] * dims[a + 1]) return std::nullopt;
    out.strides[ke - 1] = strides[ie - 1];
    for (size_t b = ke - 1; b > k; --b) out.strides[b - 1] = out.strides[b] * to[b];
    i = ie, k = ke;
  }
  return out;
}

}  // namespace gradcell

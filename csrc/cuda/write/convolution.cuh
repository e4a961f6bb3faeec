// Convolutions as products of matrices that are nowhere in memory: the three partial derivatives of
// the trilinear form of ops/combining/convolution.h. Text for NVRTC, behind attention.cuh.
//
//   part      rows             columns   terms              rows' factor  columns'
//   Output    n, p             o         c, u               x             w
//   Input     n, q             c         o, u               y             w
//   Weight    o                c, u      n, p               y             x
//
// A block of 8 warps takes `tall` * 64 rows by 64 columns, 32 terms at a time. Where an element of
// a factor lies is the sum of a number of its row (or column) and one of its term: both are in
// tables in shared memory, as are bits that say whether it is inside of its image. A bit stands for
// an element u of the kernel along an axis. Terms, or rows in Weight, name one for each axis, and
// the other side has those whose pixels are inside. While warps multiply, what they need next
// is on its way to their registers; a tile has two places, so that a step has one barrier.
//
// In Input, pixels q with the same remainder q % stride have the same u: those of a tile do, and
// its terms are those u alone.

namespace gradcell {
namespace scalar {

struct gc_plain : gc_as_stored {
  static constexpr bool there = false;
};

/// Which derivative, as ConvolutionPart.
constexpr int gc_output_part = 0, gc_input_part = 1, gc_weight_part = 2;

struct gc_axis {
  gc_index input, kernel, output, stride, dilation, before;
};
// `inputs`, `outputs`: channels of a group.
template <int rank>
struct gc_windows {
  gc_index images, groups, inputs, outputs;
  gc_axis axis[rank];
};

// How far neighbours of a tensor are apart: images (of weights: output channels), channels, pixels.
template <int rank>
struct gc_layout {
  gc_index image, channel, pixel[rank];
};
template <bool last, int rank>
GRADCELL_DEVICE gc_layout<rank> gc_layout_of(gc_index channels, const gc_index (&size)[rank]) {
  gc_layout<rank> l;
  gc_index step = last ? channels : 1;
#pragma unroll
  for (int k = rank - 1; k >= 0; --k) l.pixel[k] = step, step *= size[k];
  l.channel = last ? 1 : step;
  l.image = last ? step : step * channels;
  return l;
}

// Such entries of tables move as one, so that they have no gaps.
template <class Mask>
__device__ constexpr int gc_alignment() {
  return sizeof(gc_index) + sizeof(Mask) == 8 ? 16 : 8;
}
// Where a row or a column is in its factor and in the result (-1: there is none), and its bits.
template <class Mask>
struct alignas(gc_alignment<Mask>()) gc_line {
  gc_index at, out;
  Mask bits, none;
};
// Where a term is in the factors of rows and of columns, and its bits.
template <class Mask>
struct alignas(gc_alignment<Mask>()) gc_term {
  gc_index at[2];
  Mask bits, none;
};

// (A call's result that is written where it is wanted is not seen by the tests' emulator.)
template <class Entry>
GRADCELL_DEVICE void gc_enter(Entry& to, const Entry& entry) {
  to = entry;
}

// Elements of the kernel: of each axis first, first + step, ...
template <int rank>
struct gc_taps {
  gc_index first[rank], step[rank], count[rank];
  GRADCELL_DEVICE gc_index all() const {
    gc_index n = 1;
#pragma unroll
    for (int k = 0; k < rank; ++k) n *= count[k];
    return n;
  }
};

template <int part, int rank, bool x_last, bool w_last, bool y_last, class Mask>
struct gc_convolution {
  static constexpr Mask kNever = Mask(1) << (sizeof(Mask) * 8 - 1), kThere = kNever >> 1;
  static constexpr bool terms_name_bits = part != gc_weight_part;
  // Of a channel and an element of the kernel, which comes next: a channel where those of images or
  // of weights are neighbours.
  static constexpr bool channels_last = (part == gc_input_part ? y_last : x_last) || w_last;

  const gc_windows<rank>& w;
  gc_layout<rank> x, k, y;  // of input, weight and output
  gc_taps<rank> taps;
  gc_index rest[rank];  // of Input's pixels
  gc_index wide[rank];  // how many pixels along an axis rows or terms go through
  gc_index from[2];     // where the group begins in the factors
  gc_index to;          // and in the result
  gc_index rows, columns, terms;

  explicit GRADCELL_DEVICE gc_convolution(const gc_windows<rank>& windows) : w(windows) {
    gc_index in[rank], tap[rank], out[rank];
#pragma unroll
    for (int a = 0; a < rank; ++a)
      in[a] = w.axis[a].input, tap[a] = w.axis[a].kernel, out[a] = w.axis[a].output;
    x = gc_layout_of<x_last>(w.groups * w.inputs, in);
    k = gc_layout_of<w_last>(w.inputs, tap);
    y = gc_layout_of<y_last>(w.groups * w.outputs, out);
  }

  // What follows needs `phase`, of `phases`, and the group.
  GRADCELL_DEVICE gc_index phases() const {
    gc_index n = 1;
    if constexpr (part == gc_input_part)
#pragma unroll
      for (int a = 0; a < rank; ++a) n *= w.axis[a].stride;
    return n;
  }
  // The most rows of a phase.
  GRADCELL_DEVICE gc_index most_rows() const {
    if constexpr (part == gc_weight_part) return w.outputs;
    gc_index n = w.images;
#pragma unroll
    for (int a = 0; a < rank; ++a)
      n *= part == gc_output_part ? w.axis[a].output
                                  : (w.axis[a].input + w.axis[a].stride - 1) / w.axis[a].stride;
    return n;
  }
  GRADCELL_DEVICE gc_index all_columns() const {
    if constexpr (part == gc_output_part) return w.outputs;
    gc_index n = w.inputs;
    if constexpr (part == gc_weight_part)
#pragma unroll
      for (int a = 0; a < rank; ++a) n *= w.axis[a].kernel;
    return n;
  }

  GRADCELL_DEVICE void begin(gc_index phase, gc_index group) {
#pragma unroll
    for (int a = rank - 1; a >= 0; --a) {
      const gc_axis& axis = w.axis[a];
      rest[a] = 0;
      taps.first[a] = 0, taps.step[a] = 1, taps.count[a] = axis.kernel;
      wide[a] = axis.output;
      if constexpr (part == gc_input_part) {
        rest[a] = phase % axis.stride, phase /= axis.stride;
        wide[a] = rest[a] < axis.input ? (axis.input - rest[a] - 1) / axis.stride + 1 : 0;
        auto next = [&](gc_index u) {
          while (u < axis.kernel && (rest[a] + axis.before - u * axis.dilation) % axis.stride != 0)
            ++u;
          return u;
        };
        taps.first[a] = next(0);
        taps.step[a] = next(taps.first[a] + 1) - taps.first[a];
        taps.count[a] =
            taps.first[a] < axis.kernel ? (axis.kernel - taps.first[a] - 1) / taps.step[a] + 1 : 0;
      }
    }
    gc_index pixels = w.images;
#pragma unroll
    for (int a = 0; a < rank; ++a) pixels *= wide[a];
    rows = part == gc_weight_part ? w.outputs : pixels;
    columns = all_columns();
    terms = part == gc_output_part  ? w.inputs * taps.all()
            : part == gc_input_part ? w.outputs * taps.all()
                                    : pixels;
    const gc_index in_x = group * w.inputs * x.channel, in_w = group * w.outputs * k.image,
                   in_y = group * w.outputs * y.channel;
    from[0] = part == gc_output_part ? in_x : in_y;
    from[1] = part == gc_weight_part ? in_x : in_w;
    to = part == gc_output_part ? in_y : part == gc_input_part ? in_x : in_w;
  }

  // A place p of Output and Weight, and q of Input.
  GRADCELL_DEVICE gc_index pixel(gc_index i, gc_index (&at)[rank]) const {
#pragma unroll
    for (int a = rank - 1; a >= 0; --a) at[a] = i % wide[a], i /= wide[a];
    return i;
  }
  // Where the pixel that element u of the axis's kernel reads is from that which element 0 reads;
  // of Input, where a place is whose window has q = rest as its element u.
  GRADCELL_DEVICE gc_index shift(int a, gc_index u) const {
    const gc_axis& axis = w.axis[a];
    if constexpr (part == gc_input_part)
      return (rest[a] + axis.before - u * axis.dilation) / axis.stride;
    return u * axis.dilation;
  }
  // The bits of the elements of the kernel whose pixels are inside.
  GRADCELL_DEVICE Mask inside(const gc_index (&at)[rank]) const {
    Mask bits = kThere;
    int bit = 0;
#pragma unroll
    for (int a = 0; a < rank; ++a) {
      const gc_axis& axis = w.axis[a];
      const gc_index first = part == gc_input_part ? at[a] : at[a] * axis.stride - axis.before;
      const gc_index size = part == gc_input_part ? axis.output : axis.input;
      for (gc_index j = 0; j < taps.count[a]; ++j, ++bit) {
        const gc_index q = first + shift(a, taps.first[a] + j * taps.step[a]);
        if (q >= 0 && q < size) bits |= Mask(1) << bit;
      }
    }
    return bits;
  }
  // A channel and an element of the kernel: where that is in images and in weights, and its bits.
  struct Tap {
    gc_index channel, in_image, in_weight;
    Mask bits;
  };
  GRADCELL_DEVICE Tap tap(gc_index i, gc_index channels, const gc_index (&pixel_step)[rank]) const {
    Tap t{};
    if (channels_last) t.channel = i % channels, i /= channels;
    t.bits = kThere;
    int bit = 0;
#pragma unroll
    for (int a = 0; a < rank; ++a) bit += (int)taps.count[a];
#pragma unroll
    for (int a = rank - 1; a >= 0; --a) {
      const gc_index j = i % taps.count[a], u = taps.first[a] + j * taps.step[a];
      i /= taps.count[a];
      bit -= (int)taps.count[a];
      t.bits |= Mask(1) << (bit + (int)j);
      t.in_image += shift(a, u) * pixel_step[a];
      t.in_weight += u * k.pixel[a];
    }
    if (!channels_last) t.channel = i;
    return t;
  }

  GRADCELL_DEVICE gc_line<Mask> row(gc_index i) const {
    if (i >= rows) return {0, -1, terms_name_bits ? Mask(0) : kNever};
    if constexpr (part == gc_weight_part)
      return {from[0] + i * y.channel, to + i * k.image, kThere};
    gc_index at[rank];
    const gc_index n = pixel(i, at);
    gc_line<Mask> line{from[0], to, inside(at)};
    line.at += n * (part == gc_output_part ? x : y).image;
    line.out += n * (part == gc_output_part ? y : x).image;
#pragma unroll
    for (int a = 0; a < rank; ++a) {
      const gc_axis& axis = w.axis[a];
      if constexpr (part == gc_output_part) {
        line.at += (at[a] * axis.stride - axis.before) * x.pixel[a];
        line.out += at[a] * y.pixel[a];
      } else {
        line.at += at[a] * y.pixel[a];
        line.out += (at[a] * axis.stride + rest[a]) * x.pixel[a];
      }
    }
    return line;
  }
  GRADCELL_DEVICE gc_line<Mask> column(gc_index i) const {
    if (i >= columns) return {0, -1, terms_name_bits ? Mask(0) : kNever};
    if constexpr (part == gc_output_part)
      return {from[1] + i * k.image, i * y.channel, Mask(~kNever)};
    if constexpr (part == gc_input_part)
      return {from[1] + i * k.channel, i * x.channel, Mask(~kNever)};
    const Tap t = tap(i, w.inputs, x.pixel);
    return {from[1] + t.channel * x.channel + t.in_image, t.channel * k.channel + t.in_weight,
            t.bits};
  }
  GRADCELL_DEVICE gc_term<Mask> term(gc_index i) const {
    if (i >= terms) return {{0, 0}, terms_name_bits ? kNever : Mask(0)};
    if constexpr (part == gc_weight_part) {
      gc_index at[rank];
      const gc_index n = pixel(i, at);
      gc_term<Mask> term{{n * y.image, n * x.image}, inside(at)};
#pragma unroll
      for (int a = 0; a < rank; ++a) {
        term.at[0] += at[a] * y.pixel[a];
        term.at[1] += (at[a] * w.axis[a].stride - w.axis[a].before) * x.pixel[a];
      }
      return term;
    } else if constexpr (part == gc_output_part) {
      const Tap t = tap(i, w.inputs, x.pixel);
      return {{t.channel * x.channel + t.in_image, t.channel * k.channel + t.in_weight}, t.bits};
    } else {
      const Tap t = tap(i, w.outputs, y.pixel);
      return {{t.channel * y.channel + t.in_image, t.channel * k.image + t.in_weight}, t.bits};
    }
  }
};

// A thread's share of `lines` rows of a factor and 32 terms: neighbouring threads have the same
// term of different rows, and four of them, or the same row.
template <int lines, bool along_rows, bool terms_name_bits, int which, class T, class Mask>
GRADCELL_DEVICE void gc_gather(T (&v)[lines / 8], const T* from, const gc_line<Mask>* line,
                               const gc_term<Mask>* term) {
  auto element = [&](const gc_line<Mask>& l, const gc_term<Mask>& t) {
    const bool there = (l.bits & t.bits) == (terms_name_bits ? t.bits : l.bits);
    return there ? from[l.at + t.at[which]] : T(0);
  };
  if constexpr (along_rows) {
    const gc_line<Mask> l = line[gc_member() % lines];
#pragma unroll
    for (int i = 0; i < lines / 8; ++i)
      v[i] = element(l, term[4 * (gc_member() / lines + i / 4 * (256 / lines)) + i % 4]);
  } else {
    const gc_term<Mask> t = term[gc_member() % 32];
#pragma unroll
    for (int i = 0; i < lines / 8; ++i) v[i] = element(line[gc_member() / 32 + 8 * i], t);
  }
}
template <int lines, bool along_rows, class T>
GRADCELL_DEVICE void gc_put(T* tile, const T (&v)[lines / 8]) {
  constexpr int pitch = gc_pitch<T>(32);
  if constexpr (along_rows) {
    T* const to = tile + gc_member() % lines * pitch;
#pragma unroll
    for (int i = 0; i < lines / 32; ++i)
      gc_store(to, gc_member() / lines + i * (256 / lines),
               gc_pack<T>{v[4 * i], v[4 * i + 1], v[4 * i + 2], v[4 * i + 3]});
  } else {
#pragma unroll
    for (int i = 0; i < lines / 8; ++i)
      tile[(gc_member() / 32 + 8 * i) * pitch + gc_member() % 32] = v[i];
  }
}

// sum += the warp's rows times its columns over 32 terms. What may be infinite or no number is
// left to multiply-adds.
template <class Kind, int tall, class F, class T>
GRADCELL_DEVICE void gc_add_terms(F (&sum)[tall][4][4], const T* a, const T* b) {
  constexpr int pitch = gc_pitch<T>(32);
  if constexpr (Kind::there) {
    const T* const left = a + gc_member() / 32 % 4 * 16 * pitch;
    const T* const right = b + gc_member() / 128 * 32 * pitch;
    float d[tall][4][4] = {};
#pragma unroll
    for (int k = 0; k < 32; k += 4 * Kind::slots) {
      typename Kind::Left x[tall];
#pragma unroll
      for (int i = 0; i < tall; ++i) x[i] = gc_left_at<Kind, pitch>(left + 64 * i * pitch, k);
#pragma unroll
      for (int p = 0; p < 4; p += 2) {
        typename Kind::Right y[2];
        gc_right_at<Kind, pitch>(y, right + 8 * p * pitch, k);
#pragma unroll
        for (int i = 0; i < 2 * tall; ++i) Kind::add(d[i / 2][p + i % 2], x[i / 2], y[i % 2]);
      }
    }
    bool ordinary = true;
#pragma unroll
    for (int i = 0; i < 16 * tall; ++i) ordinary &= gc_ordinary(d[i / 16][i / 4 % 4][i % 4]);
    if (__all_sync(0xffffffffu, ordinary)) {
#pragma unroll
      for (int i = 0; i < 16 * tall; ++i)
        sum[i / 16][i / 4 % 4][i % 4] += d[i / 16][i / 4 % 4][i % 4];
      return;
    }
  }
#pragma unroll
  for (int i = 0; i < tall; ++i) {
    const auto s = gc_dots_exactly<Kind, F, gc_halved, 32>(a + 64 * i * pitch, b);
#pragma unroll
    for (int e = 0; e < 16; ++e) sum[i][e / 4][e % 4] += s.at[0][e / 4][e % 4];
  }
}

// store(part, place, sum) for each element of the result; of `parts` parts each has a share of the
// terms. Rows' factor a, columns' b.
template <class Kind, int tall, class F, class Sums, bool rows_along, bool columns_along,
          class Mask, class T, class Store>
GRADCELL_DEVICE void gc_convolve(Sums c, const T* a, const T* b, gc_index parts, Store store) {
  constexpr int high = 64 * tall, pitch = gc_pitch<T>(32), tile = (high + 64) * pitch;
  constexpr bool named = Sums::terms_name_bits;
  T* const tiles = gc_in_tile<T>(0);
  gc_line<Mask>* const line = gc_in_tile<gc_line<Mask>>(2 * tile * (int)sizeof(T));
  gc_term<Mask>* const term = reinterpret_cast<gc_term<Mask>*>(line + high + 64);
  const gc_index down = (c.most_rows() + high - 1) / high, across = (c.all_columns() + 63) / 64;
  const gc_index phases = c.phases();
  for (gc_index job = blockIdx.x; job < parts * c.w.groups * phases * down * across;
       job += gridDim.x) {
    gc_index rest = job;
    const gc_index left = rest % across * 64;
    rest /= across;
    const gc_index top = rest % down * high;
    rest /= down;
    const gc_index phase = rest % phases;
    rest /= phases;
    const gc_index group = rest % c.w.groups, part = rest / c.w.groups;
    c.begin(phase, group);
    const gc_index steps = (c.terms + 31) / 32;
    const gc_index first = (gc_index)((gc_long)steps * part / parts);
    const gc_index end = (gc_index)((gc_long)steps * (part + 1) / parts);
    auto terms_of = [&](gc_index step) { return term + (step & 1) * 32; };
    auto tile_of = [&](gc_index step) { return tiles + (step & 1) * tile; };
    __syncthreads();
    for (int i = gc_member(); i < high + 64; i += 256)
      gc_enter(line[i], i < high ? c.row(top + i) : c.column(left + i - high));
    if (gc_member() < 64) {
      const gc_index step = first + gc_member() / 32;
      gc_enter(terms_of(step)[gc_member() % 32], c.term(step * 32 + gc_member() % 32));
    }
    __syncthreads();
    T x[high / 8], y[8];
    auto gather = [&](gc_index step) {
      gc_gather<high, rows_along, named, 0>(x, a, line, terms_of(step));
      gc_gather<64, columns_along, named, 1>(y, b, line + high, terms_of(step));
    };
    auto put = [&](gc_index step) {
      gc_put<high, rows_along>(tile_of(step), x);
      gc_put<64, columns_along>(tile_of(step) + high * pitch, y);
    };
    F sum[tall][4][4] = {};
    if (first < end) gather(first), put(first);
    __syncthreads();
    for (gc_index step = first; step < end; ++step) {
      const bool more = step + 1 < end;
      if (more) gather(step + 1);
      if (step + 2 < end && gc_member() / 32 == step % 8)  // another warp each time
        gc_enter(terms_of(step)[gc_member() % 32], c.term((step + 2) * 32 + gc_member() % 32));
      gc_add_terms<Kind, tall>(sum, tile_of(step), tile_of(step) + high * pitch);
      if (more) put(step + 1);
      __syncthreads();
    }
    gc_index columns[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) columns[i] = line[high + gc_halved::other(i / 2, i % 2)].out;
#pragma unroll
    for (int i = 0; i < 2 * tall; ++i) {
      const gc_index row = line[i / 2 * 64 + gc_halved::row(0, i % 2 * 2)].out;
#pragma unroll
      for (int j = 0; j < 8; ++j)
        if (row >= 0 && columns[j] >= 0)
          store(part, row + columns[j], sum[i / 2][j / 2][i % 2 * 2 + j % 2]);
    }
  }
}

}  // namespace scalar
}  // namespace gradcell

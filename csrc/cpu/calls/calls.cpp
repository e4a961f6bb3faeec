#include "cpu/calls/calls.h"

namespace gradcell::cpu {

void run_call(const Call& c, const void* const* in, void* const* outs, const uint64_t* constants) {
  if (c.out.count == 0 && c.more.empty()) return;
  void* const out = outs[0];
  switch (c.form) {
    case Form::Constant:
      return fill(c, out, constants[c.constant]);
    case Form::Range:
      return range(c, out);
    case Form::Random:
      return random_uniform(c, in[0], out);
    case Form::Convert:
      return convert(c, in[0], out);
    case Form::Elementwise:
      return logical(c, in, out);
    case Form::Move:
      return move(c, in, out);
    case Form::Reduce:
      return reduce(c, in[0], out);
    case Form::Extremum:
      return extremum(c, in[0], out);
    case Form::Scan:
      return scan(c, in[0], out);
    case Form::Fourier:
      return fourier(c, in[0], out);
    case Form::Take:
      return take(c, in, out);
    case Form::Scatter:
      return scatter(c, in, out);
    case Form::LastIndex:
      return last_index(c, in, out);
    case Form::Convolve:
      return convolve(c, in, out);
    case Form::Attend:
      return attend(c, in, outs);
    case Form::Window:
      return window(c, in[0], out);
    case Form::TakePlaces:
      return take_along(c, in, out);
    case Form::AddPlaces:
      return put_along(c, in, out);
    case Form::Sampling:
      return sample(c, in, out);
    case Form::Routine:
      return routine(c, in, out);
    case Form::Product:
      return sum_of_products(c, in, out);
    case Form::Input:
    case Form::Marker:
    case Form::Same:
    case Form::Loop:
    case Form::Collective:
      fail(ErrorKind::NotImplemented, info(c.op).name, " is no call");
  }
}

}  // namespace gradcell::cpu

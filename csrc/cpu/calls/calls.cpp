#include "cpu/calls/calls.h"

namespace gradcell::cpu {

void no_call(const Call& c, const void* const*, void*) {
  fail(ErrorKind::NotImplemented, info(c.op).name, " is no call");
}

void run_call(const Call& c, const void* const* in, void* out, const uint64_t* constants) {
  if (c.out.count == 0) return;
  const void* number = c.form == Form::Constant ? &constants[c.constant] : nullptr;
  if (number) in = &number;
  switch (c.form) {
#define FORM(Name, parts, rows, tile, call, ...) \
  case Form::Name:                               \
    return call(c, in, out);
#include "ir/forms.def"
  }
}

}  // namespace gradcell::cpu

#include "base/narrow.h"

#include "base/error.h"

namespace gradcell {

void does_not_fit(double value, int64_t most) {
  fail(ErrorKind::Value, "the number ", value,
       " is not among the integers that can be counted with here, up to ", most);
}

void does_not_fit(int64_t value, int64_t most) {
  fail(ErrorKind::Value, "a size or count of ", value,
       " is beyond what can be counted with here, which is at most ", most);
}

void does_not_fit(uint64_t value, int64_t most) {
  fail(ErrorKind::Value, "a size or count of ", value,
       " is beyond what can be counted with here, which is at most ", most);
}

}  // namespace gradcell

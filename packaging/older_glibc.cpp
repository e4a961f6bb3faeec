// What a newer libstdc++ wants of the C library, for wheels that have to run with an older one: the
// compiler's libstdc++.a is linked in, and was built where these exist. Built only into such
// wheels.
#include <sys/random.h>

#include <cstdlib>

extern "C" {

// glibc 2.32: true while a process has one thread, which lets reference counts skip atomics. Never
// true is always right.
__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;

// glibc 2.36; getentropy is of 2.25.
__attribute__((visibility("hidden"))) unsigned arc4random() {
  unsigned value = 0;
  if (getentropy(&value, sizeof value) != 0) std::abort();
  return value;
}
}

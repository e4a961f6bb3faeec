// Threads that sleep until a number changes, by the system's own means: a C++ library that has none
// for its std::atomic::wait may miss a change (GCC 12's on Windows).
#pragma once

#include <atomic>
#include <cstdint>

namespace gradcell::system {

using Number = std::atomic<uint32_t>;

/// Sleeps while the number is `seen`, until it is woken. It may wake for no reason.
void sleep_while(const Number& number, uint32_t seen);
/// Wakes one of those who sleep there, or all of them, after the number has changed.
void wake_one(Number& number);
void wake_all(Number& number);

}  // namespace gradcell::system

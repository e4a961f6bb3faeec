// What the core needs of the operating system: one file for POSIX (Linux, macOS) and one for
// Windows. No other file includes a system's header; a test sees to it.
#pragma once

#include <cstddef>
#include <string>

#ifdef __GLIBCXX__
#include <cxxabi.h>
#endif

namespace gradcell::system {

// Memory ------------------------------------------------------------------------------------------

/// A block for release(), at a multiple of `alignment`, which divides `bytes`; or null.
void* aligned(size_t alignment, size_t bytes);
void release(void* block);
/// Advice, which may be refused, to take pages of 2 MiB for a block at a multiple of that.
void take_large_pages(void* block, size_t bytes);

// Shared libraries --------------------------------------------------------------------------------

/// A library that stays open as long as the process, or null. A path without a folder is looked for
/// where the system's own libraries are.
void* open_library(const std::string& file);
/// Why this thread's last open_library() gave null; empty if the system does not say.
std::string why_not_opened();
/// The address of a function or null.
void* find_symbol(void* library, const char* name);

// Processors --------------------------------------------------------------------------------------

/// How many of them this process may use, at least 1.
int usable_processors();
/// Bytes of the second-level cache of one, or 0 where the system does not say.
size_t second_level_cache();
/// Asks for the state of x86's matrix units, which systems give to those who ask alone.
bool may_use_matrix_units();

// Processes and threads ---------------------------------------------------------------------------

int process_id();
/// Whether a process of this machine lives.
bool process_lives(int id);
using Hook = void (*)();
/// Calls a hook in each process that is forked from this one from now on. Nothing forks on Windows.
void in_forked_children(Hook);
/// Seconds that all threads of this process have computed.
double seconds_computed();
/// This thread does nothing more.
[[noreturn]] void wait_forever();

/// What comes through the frames of a thread that is ended from inside, where ending it unwinds
/// them. (Other libraries just end it.)
#ifdef __GLIBCXX__
using ThreadEnd = abi::__forced_unwind;
#else
struct ThreadEnd {};
#endif

/// While it lives, new threads are made that leave all signals to the others.
class WithoutSignals {
 public:
  WithoutSignals();
  ~WithoutSignals();
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;

 private:
  alignas(8) unsigned char before_[128];
};

// Files -------------------------------------------------------------------------------------------

/// The folder for what a user's programs may compute again, or empty where none is named.
std::string cache_folder();

}  // namespace gradcell::system

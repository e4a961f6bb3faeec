// Windows 10 and later.
#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#define _WIN32_WINNT 0x0A00
#include <malloc.h>
#include <windows.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/narrow.h"
#include "base/system/sleep.h"
#include "base/system/system.h"

namespace gradcell::system {

#ifdef __GLIBCXX__
namespace {

/// MinGW's GCC keeps a thread's variables in memory that the thread gives back as it ends, and has
/// their destructors run as it ends too: in the order in which the two were first asked for. So the
/// destructors are asked for before anything else is.
[[gnu::constructor(101)]] void destroy_before_memory_is_given_back() {
  abi::__cxa_thread_atexit([](void*) {}, nullptr, nullptr);
}

}  // namespace
#endif

void* aligned(size_t alignment, size_t bytes) { return _aligned_malloc(bytes, alignment); }

void release(void* block) { _aligned_free(block); }

void take_large_pages(void*, size_t) {}  // they are for programs with a right of their own

void* open_library(const std::string& file) {
  auto wide = [&](UINT from, DWORD flags) {
    const int bytes = narrow<int>(file.size());
    const int length = MultiByteToWideChar(from, flags, file.data(), bytes, nullptr, 0);
    std::wstring text(static_cast<size_t>(length), L' ');
    MultiByteToWideChar(from, flags, file.data(), bytes, text.data(), length);
    return text;
  };
  std::wstring text = wide(CP_UTF8, MB_ERR_INVALID_CHARS);  // as Python names files
  if (text.empty()) text = wide(CP_ACP, 0);                 // as the environment does
  const std::filesystem::path path(text);
  // What it needs is looked for beside it too. (The path of a program's search has no say.)
  const DWORD beside = path.is_absolute() ? LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR : 0;
  return LoadLibraryExW(path.c_str(), nullptr, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS | beside);
}

std::string why_not_opened() {
  const DWORD error = GetLastError();
  char text[512];
  DWORD length = FormatMessageA(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, nullptr,
                                error, 0, text, sizeof text, nullptr);
  while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\r')) --length;
  return length > 0 ? std::string(text, length) : "error " + std::to_string(error);
}

void* find_symbol(void* library, const char* name) {
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(library), name));
}

int usable_processors() { return std::max(1, narrow<int>(std::thread::hardware_concurrency())); }

size_t second_level_cache() {
  DWORD bytes = 0;
  GetLogicalProcessorInformation(nullptr, &bytes);
  using Row = SYSTEM_LOGICAL_PROCESSOR_INFORMATION;
  std::vector<Row> rows(bytes / sizeof(Row));
  if (rows.empty() || !GetLogicalProcessorInformation(rows.data(), &bytes)) return 0;
  for (const Row& row : rows)
    if (row.Relationship == RelationCache && row.Cache.Level == 2) return row.Cache.Size;
  return 0;
}

bool may_use_matrix_units() { return false; }

int process_id() { return low_bits<int>(GetCurrentProcessId()); }

bool process_lives(int id) {
  const HANDLE process = OpenProcess(SYNCHRONIZE, FALSE, static_cast<DWORD>(id));
  if (!process) return GetLastError() != ERROR_INVALID_PARAMETER;
  const bool lives = WaitForSingleObject(process, 0) == WAIT_TIMEOUT;
  CloseHandle(process);
  return lives;
}

void in_forked_children(Hook) {}

double seconds_computed() {
  FILETIME begin, end, kernel, user;
  if (!GetProcessTimes(GetCurrentProcess(), &begin, &end, &kernel, &user)) return 0;
  auto seconds = [](const FILETIME& t) {
    return 1e-7 * (4294967296.0 * t.dwHighDateTime + t.dwLowDateTime);
  };
  return seconds(kernel) + seconds(user);
}

void wait_forever() {
  for (;;) Sleep(INFINITE);
}

void sleep_while(const Number& number, uint32_t seen) {
  auto* address = const_cast<Number*>(&number);  // it is only read
  WaitOnAddress(address, &seen, sizeof seen, INFINITE);
}
void wake_one(Number& number) { WakeByAddressSingle(&number); }
void wake_all(Number& number) { WakeByAddressAll(&number); }

WithoutSignals::WithoutSignals() = default;  // there are none that a thread could get
WithoutSignals::~WithoutSignals() = default;

std::string cache_folder() {
  const char* named = std::getenv("LOCALAPPDATA");
  return named ? named : "";
}

}  // namespace gradcell::system
#endif

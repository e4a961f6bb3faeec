#include "cuda/run/cache_files.h"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/system/system.h"

namespace gradcell::cuda {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = "gradcell-cache-1 ";

}  // namespace

fs::path cache_directory() {
  const char* named = std::getenv("GRADCELL_CACHE_DIR");
  fs::path dir = named ? named : "";
  if (dir.empty()) dir = system::cache_folder();
  if (dir.empty()) return dir;
  if (!named || !*named) dir /= "gradcell";
  dir /= "cuda";
  std::error_code error;
  fs::create_directories(dir, error);
  return fs::is_directory(dir, error) ? dir : fs::path();
}

/// Two FNV-1a hashes from different starts, mixed at the end.
std::string digest(const std::string& text) {
  uint64_t a = 0xCBF29CE484222325ull, b = 0x9AE16A3B2F90404Full;
  for (unsigned char c : text) {
    a = (a ^ c) * 0x100000001B3ull;
    b = ((b ^ c) + (b << 7)) * 0x9E3779B97F4A7C15ull;
    b ^= b >> 29;
  }
  a ^= b >> 31;
  char hex[33];
  std::snprintf(hex, sizeof hex, "%016llx%016llx", static_cast<unsigned long long>(a),
                static_cast<unsigned long long>(b));
  return hex;
}

std::string read_cached(const std::string& file) {
  const fs::path dir = cache_directory();
  if (dir.empty()) return {};
  std::ifstream in(dir / file, std::ios::binary);
  if (!in) return {};
  std::ostringstream text;
  text << in.rdbuf();
  const std::string all = std::move(text).str();
  size_t header = kMark.size() + 33;
  if (all.size() <= header || all.compare(0, kMark.size(), kMark) != 0) return {};
  std::string contents = all.substr(header);
  return all.compare(kMark.size(), 32, digest(contents)) == 0 ? contents : std::string();
}

void write_cached(const std::string& file, const std::string& contents) {
  const fs::path dir = cache_directory();
  if (dir.empty()) return;
  static std::atomic<unsigned> counter{0};
  fs::path temporary = dir / file;
  temporary += "." + std::to_string(system::process_id()) + "." + std::to_string(counter++);
  std::error_code ignored;
  {
    std::ofstream out(temporary, std::ios::binary);
    out << kMark << digest(contents) << '\n' << contents;
    out.close();
    if (!out) {
      fs::remove(temporary, ignored);
      return;
    }
  }
  fs::rename(temporary, dir / file, ignored);
  if (ignored) fs::remove(temporary, ignored);
}

}  // namespace gradcell::cuda

// What one process leaves on disk for the next: compiled kernels, and the algorithms of products.
//
// Holds: other processes see a file whole or not at all, since it is written under another name and
// renamed; a file that was cut or changed is as good as none.
#pragma once

#include <filesystem>
#include <string>

namespace gradcell::cuda {

/// GRADCELL_CACHE_DIR, or the user's cache directory; made if need be. Empty: there is none.
std::filesystem::path cache_directory();

/// 128 bits as 32 hexadecimal digits: a file's name by what it is for.
std::string digest(const std::string& text);

/// A file's contents; empty where there is none that can be trusted.
std::string read_cached(const std::string& file);
/// Does nothing on a disk that is full or cannot be written.
void write_cached(const std::string& file, const std::string& contents);

}  // namespace gradcell::cuda

// The cyclic redundancy check of RFC 3720, appendix B.4 (CRC-32C), that records in files carry.
#pragma once

#include <cstdint>
#include <span>

namespace gradcell {

uint32_t crc32c(std::span<const uint8_t> data);

}  // namespace gradcell

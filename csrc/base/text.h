// Text from pieces: str("axis ", 3, " is out of range").
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace gradcell {

/// What `str` and `require` are given to write out as "[2, 3]".
struct Listed {
  std::span<const int64_t> values;
};
inline Listed listed(std::span<const int64_t> values) { return {values}; }

/// One piece, which refers to what it was made of. All kinds have one type, so that each use of
/// `str` is a call of one function, and little to compile.
class TextPart {
 public:
  TextPart(std::string_view s) : kind_(Kind::Text), text_(s) {}
  TextPart(const std::string& s) : TextPart(std::string_view(s)) {}
  TextPart(const char* s) : TextPart(std::string_view(s)) {}
  TextPart(char c) : kind_(Kind::Character), character_(c) {}
  TextPart(double v) : kind_(Kind::Real), real_(v) {}
  TextPart(float v) : TextPart(static_cast<double>(v)) {}
  TextPart(Listed v) : kind_(Kind::List), list_(v) {}
  template <std::signed_integral T>
  TextPart(T v) : kind_(Kind::Signed), signed_(v) {}
  template <std::unsigned_integral T>
  TextPart(T v) : kind_(Kind::Unsigned), unsigned_(v) {}

  void append_to(std::string& out) const;

 private:
  enum class Kind : uint8_t { Text, Character, Signed, Unsigned, Real, List };
  Kind kind_;
  union {
    std::string_view text_;
    char character_;
    int64_t signed_;
    uint64_t unsigned_;
    double real_;  ///< with six digits, as printf's %g
    Listed list_;
  };
};

std::string joined(std::initializer_list<TextPart> pieces);

template <class... Args>
std::string str(const Args&... args) {
  return joined({TextPart(args)...});
}

}  // namespace gradcell

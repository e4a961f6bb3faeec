#include "base/text.h"

#include <cstdio>

namespace gradcell {

void TextPart::append_to(std::string& out) const {
  switch (kind_) {
    case Kind::Text:
      out += text_;
      break;
    case Kind::Character:
      out += character_;
      break;
    case Kind::Signed:
      out += std::to_string(signed_);
      break;
    case Kind::Unsigned:
      out += std::to_string(unsigned_);
      break;
    case Kind::Real: {
      char digits[32];
      out.append(digits, static_cast<size_t>(std::snprintf(digits, sizeof digits, "%g", real_)));
      break;
    }
    case Kind::List:
      out += '[';
      for (size_t i = 0; i < list_.values.size(); ++i) {
        if (i) out += ", ";
        out += std::to_string(list_.values[i]);
      }
      out += ']';
      break;
  }
}

std::string joined(std::initializer_list<TextPart> pieces) {
  std::string out;
  for (const TextPart& p : pieces) p.append_to(out);
  return out;
}

}  // namespace gradcell

// Where the user's code is, for messages.
#pragma once

#include <string>
#include <string_view>

namespace gradcell::bind {

/// The text of an error that is on its way from a function of this name, with the name in it, if
/// the user's own code has called the function and the text ends with its place.
std::string named_error(std::string text, std::string_view function);

}  // namespace gradcell::bind

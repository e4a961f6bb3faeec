# What gradcell runs on, and which compilers build it: anything else ends here, with one sentence.
#
# GRADCELL_CHECK is "platform" before there is a compiler, and "compiler" after that.
if(GRADCELL_CHECK STREQUAL "platform")
  set(processor ${CMAKE_SYSTEM_PROCESSOR})
  if(CMAKE_OSX_ARCHITECTURES)  # which may be another than that of the Mac at hand
    set(processor ${CMAKE_OSX_ARCHITECTURES})
  endif()
  if(NOT "${CMAKE_SYSTEM_NAME} ${processor}" MATCHES
      "^(Linux (x86_64|AMD64|aarch64|arm64)|Darwin (x86_64|arm64|aarch64)|Windows (x86_64|AMD64))$")
    message(FATAL_ERROR "gradcell runs on Linux and macOS with x86-64 or 64-bit Arm processors and on Windows with "
      "x86-64 ones, and not on ${CMAKE_SYSTEM_NAME} with ${processor}: use one of those.")
  endif()
  return()
endif()

set(GRADCELL_INSTALL "apt install g++, dnf install gcc-c++, on macOS xcode-select --install, \
on Windows MSYS2's pacman -S mingw-w64-ucrt-x86_64-gcc")
if(NOT CMAKE_CXX_COMPILER)
  message(FATAL_ERROR "gradcell is compiled, and there is no C++ compiler: ${GRADCELL_INSTALL}.")
endif()
# (x86-64's levels are asked for by name, which came last.)
set(GRADCELL_OLDEST_GNU 12)
set(GRADCELL_OLDEST_Clang 18)
set(GRADCELL_OLDEST_AppleClang 17)
set(oldest ${GRADCELL_OLDEST_${CMAKE_CXX_COMPILER_ID}})
if(NOT oldest)
  message(FATAL_ERROR "gradcell needs GCC or Clang, whose vector types its kernels are written in, and not "
    "${CMAKE_CXX_COMPILER_ID} (${CMAKE_CXX_COMPILER}): ${GRADCELL_INSTALL}, and set CXX to its name.")
endif()
if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS oldest)
  message(FATAL_ERROR "gradcell needs ${CMAKE_CXX_COMPILER_ID} ${oldest} or newer, and ${CMAKE_CXX_COMPILER} is "
    "${CMAKE_CXX_COMPILER_VERSION}: install a newer one (apt install g++-${GRADCELL_OLDEST_GNU}, "
    "dnf install gcc-toolset-${GRADCELL_OLDEST_GNU}, on macOS a newer Xcode), and set CXX to its name.")
endif()
if(CMAKE_CXX_COMPILER_FRONTEND_VARIANT STREQUAL "MSVC")
  message(FATAL_ERROR "gradcell's options are those of GCC, and clang-cl takes MSVC's: set CXX to clang++.")
endif()

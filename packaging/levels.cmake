# The levels of GRADCELL_ISA_LEVELS that GRADCELL_LEVELS asks for, and built_levels.h, which names them to the core.
#
# The kernels of one level are a fifth of a build's work, and a process runs those of one level alone. "host" is the
# best level of the machine at hand. What is given to others has all levels.
if(GRADCELL_LEVELS STREQUAL "host" AND NOT CMAKE_CROSSCOMPILING AND NOT GRADCELL_ISA_LEVELS STREQUAL "base")
  file(WRITE ${CMAKE_BINARY_DIR}/host_levels.cpp [=[
#include <cstdio>

#include "cpu/kernels/isa_level.h"

int main() {
  __builtin_cpu_init();
#define GRADCELL_X(ns, Level, feature) \
  if (__builtin_cpu_supports(feature)) std::puts(#ns ";");
  GRADCELL_KNOWN_LEVELS(GRADCELL_X)
}
]=])
  try_run(ran compiled ${CMAKE_BINARY_DIR}/host_levels ${CMAKE_BINARY_DIR}/host_levels.cpp
    CMAKE_FLAGS -DINCLUDE_DIRECTORIES=${PROJECT_SOURCE_DIR}/csrc -DCMAKE_CXX_STANDARD=20
    COMPILE_OUTPUT_VARIABLE output RUN_OUTPUT_VARIABLE found)
  if(NOT compiled OR NOT ran EQUAL 0)
    message(FATAL_ERROR "What this machine runs could not be found out; -DGRADCELL_LEVELS=all asks nothing:\n${output}")
  endif()
  string(REPLACE "\n" "" found "${found}")
  list(REMOVE_ITEM found "")
  list(POP_BACK found asked)  # the lowest comes first
elseif(GRADCELL_LEVELS STREQUAL "host" OR GRADCELL_LEVELS STREQUAL "all")
  set(asked ${GRADCELL_ISA_LEVELS})
else()
  set(asked ${GRADCELL_LEVELS})
endif()

set(levels)
set(rows)
foreach(level IN LISTS GRADCELL_ISA_LEVELS)
  if(level IN_LIST asked)
    list(APPEND levels ${level})
    string(APPEND rows " GRADCELL_LEVEL_${level}(X)")
  endif()
endforeach()
if(levels)
  list(REMOVE_ITEM asked ${levels} "")
endif()
if(asked OR NOT levels)
  message(FATAL_ERROR "GRADCELL_LEVELS=${GRADCELL_LEVELS}: host, all, or some of ${GRADCELL_ISA_LEVELS}")
endif()
set(GRADCELL_ISA_LEVELS ${levels})
message(STATUS "Kernels for ${levels}")
set(text "// Written by packaging/levels.cmake.\n#pragma once\n#define GRADCELL_BUILT_LEVELS(X)${rows}\n")
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/built/built_levels.h CONTENT "${text}")

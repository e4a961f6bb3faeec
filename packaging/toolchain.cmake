# GCC for another architecture or an older C library: GRADCELL_ARCH (x86_64, aarch64) and
# GRADCELL_SYSROOT (a folder with that C library's headers and files) come from the environment.
set(arch $ENV{GRADCELL_ARCH})
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${arch})
set(CMAKE_C_COMPILER ${arch}-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER ${arch}-linux-gnu-g++)
set(CMAKE_SYSROOT $ENV{GRADCELL_SYSROOT})
# A distribution's GCC looks into its own folders of libraries before the sysroot's.
set(libraries ${CMAKE_SYSROOT}/usr/lib/${arch}-linux-gnu)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-B${libraries} -L${CMAKE_SYSROOT}/lib/${arch}-linux-gnu -L${libraries}")
set(CMAKE_MODULE_LINKER_FLAGS_INIT "${CMAKE_EXE_LINKER_FLAGS_INIT}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE NEVER)

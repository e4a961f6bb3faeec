// What Python's headers have to know of 64-bit Windows, where another system's Python lends them to
// compile the extension: docs/wheels.md says how. On Windows itself Python brings its own.
#pragma once

#define MS_WINDOWS
#define MS_WIN64
#define NT_THREADS
#define HAVE_DECLSPEC_DLL
#define Py_ENABLE_SHARED
#define WITH_DOC_STRINGS 1
#define HAVE_STDDEF_H 1
#define HAVE_SYS_STAT_H 1
#define HAVE_WCHAR_H 1

#define SIZEOF_INT 4
#define SIZEOF_LONG 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_PID_T 4
#define SIZEOF_SIZE_T 8
#define SIZEOF_VOID_P 8
#define SIZEOF_WCHAR_T 2

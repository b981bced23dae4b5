# SPDX-License-Identifier: MIT
# What the memtrace command is linked with (the runtime needs libc only): memtrace_tool_libraries.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(MEMTRACE_DW IMPORTED_TARGET GLOBAL libdw libelf)
pkg_check_modules(MEMTRACE_EDIT IMPORTED_TARGET GLOBAL libedit)
pkg_check_modules(MEMTRACE_LZMA IMPORTED_TARGET GLOBAL liblzma)
if(MEMTRACE_WEB)
    pkg_check_modules(MEMTRACE_MICROHTTPD IMPORTED_TARGET GLOBAL libmicrohttpd>=0.9.75)
endif()
if(MEMTRACE_STREAM)
    pkg_check_modules(MEMTRACE_OPENSSL IMPORTED_TARGET GLOBAL libssl>=3.0 libcrypto>=3.0)
endif()
if(MEMTRACE_TOP)
    pkg_check_modules(MEMTRACE_NCURSESW IMPORTED_TARGET GLOBAL ncursesw)
endif()
pkg_check_modules(MEMTRACE_NETTLE IMPORTED_TARGET GLOBAL nettle)
pkg_check_modules(MEMTRACE_PROTOBUF_C IMPORTED_TARGET GLOBAL libprotobuf-c)
pkg_check_modules(MEMTRACE_SQLITE IMPORTED_TARGET GLOBAL sqlite3>=3.38)
pkg_check_modules(MEMTRACE_YAJL IMPORTED_TARGET GLOBAL yajl)
pkg_check_modules(MEMTRACE_ZLIB IMPORTED_TARGET GLOBAL zlib)
pkg_check_modules(MEMTRACE_ZSTD IMPORTED_TARGET GLOBAL libzstd)
find_library(MEMTRACE_IBERTY iberty)
find_program(MEMTRACE_PROTOC_C protoc-c)
find_path(MEMTRACE_XXHASH xxhash.h) # used as a header alone

set(missing "")
if(NOT MEMTRACE_DW_FOUND)
    list(APPEND missing libdw-dev)
endif()
if(NOT MEMTRACE_EDIT_FOUND)
    list(APPEND missing libedit-dev)
endif()
if(NOT MEMTRACE_LZMA_FOUND)
    list(APPEND missing liblzma-dev)
endif()
if(MEMTRACE_WEB AND NOT MEMTRACE_MICROHTTPD_FOUND)
    list(APPEND missing libmicrohttpd-dev)
endif()
if(MEMTRACE_STREAM AND NOT MEMTRACE_OPENSSL_FOUND)
    list(APPEND missing libssl-dev)
endif()
if(MEMTRACE_TOP AND NOT MEMTRACE_NCURSESW_FOUND)
    list(APPEND missing libncurses-dev)
endif()
if(NOT MEMTRACE_NETTLE_FOUND)
    list(APPEND missing nettle-dev)
endif()
if(NOT MEMTRACE_PROTOBUF_C_FOUND)
    list(APPEND missing libprotobuf-c-dev)
endif()
if(NOT MEMTRACE_PROTOC_C)
    list(APPEND missing protobuf-c-compiler)
endif()
if(NOT MEMTRACE_SQLITE_FOUND)
    list(APPEND missing libsqlite3-dev)
endif()
if(NOT MEMTRACE_YAJL_FOUND)
    list(APPEND missing libyajl-dev)
endif()
if(NOT MEMTRACE_ZLIB_FOUND)
    list(APPEND missing zlib1g-dev)
endif()
if(NOT MEMTRACE_ZSTD_FOUND)
    list(APPEND missing libzstd-dev)
endif()
if(NOT MEMTRACE_IBERTY)
    list(APPEND missing libiberty-dev)
endif()
if(NOT MEMTRACE_XXHASH)
    list(APPEND missing libxxhash-dev)
endif()
if(missing)
    list(JOIN missing " " missing)
    message(FATAL_ERROR "The memtrace command needs: apt-get install ${missing} (scripts/setup "
                        "does it); -DMEMTRACE_TOOLS=OFF builds the library alone, -DMEMTRACE_WEB=OFF "
                        "leaves out `memtrace serve` and what it alone needs (libmicrohttpd-dev), "
                        "-DMEMTRACE_STREAM=OFF `memtrace send` and `gather` (libssl-dev), "
                        "-DMEMTRACE_TOP=OFF `memtrace top` (libncurses-dev).")
endif()

add_library(memtrace_tool_libraries INTERFACE)
target_link_libraries(
    memtrace_tool_libraries
    INTERFACE PkgConfig::MEMTRACE_DW
              PkgConfig::MEMTRACE_EDIT
              PkgConfig::MEMTRACE_LZMA
              PkgConfig::MEMTRACE_NETTLE
              PkgConfig::MEMTRACE_PROTOBUF_C
              PkgConfig::MEMTRACE_SQLITE
              PkgConfig::MEMTRACE_YAJL
              PkgConfig::MEMTRACE_ZLIB
              PkgConfig::MEMTRACE_ZSTD
              ${MEMTRACE_IBERTY}
              Threads::Threads
              m)

# SPDX-License-Identifier: MIT
# Settings and helpers of MemTrace's own build; included by the root CMakeLists.txt only.
include("${CMAKE_CURRENT_LIST_DIR}/MemTraceMachine.cmake")
_memtrace_machine_of(MEMTRACE_MACHINE "${CMAKE_SYSTEM_PROCESSOR}")

if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
    message(FATAL_ERROR "MemTrace needs Linux, this is ${CMAKE_SYSTEM_NAME}.")
endif()

# CMake 3.20 does not set this yet.
if(NOT DEFINED PROJECT_IS_TOP_LEVEL)
    set(PROJECT_IS_TOP_LEVEL OFF)
    if(CMAKE_SOURCE_DIR STREQUAL PROJECT_SOURCE_DIR)
        set(PROJECT_IS_TOP_LEVEL ON)
    endif()
endif()

# The runtime for another machine lies beside the one for this machine, in the same prefix, if both have a place of
# their own; CMake and linkers look there in a sysroot, too.
if(PROJECT_IS_TOP_LEVEL AND CMAKE_CROSSCOMPILING AND CMAKE_LIBRARY_ARCHITECTURE AND NOT DEFINED CMAKE_INSTALL_LIBDIR)
    set(CMAKE_INSTALL_LIBDIR "lib/${CMAKE_LIBRARY_ARCHITECTURE}" CACHE PATH "Object code libraries")
endif()
include(GNUInstallDirs)

get_property(MEMTRACE_MULTI_CONFIG GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT MEMTRACE_MULTI_CONFIG)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# Directory scope: a project that includes MemTrace keeps its own settings.
set(CMAKE_C_FLAGS_RELEASE "-O2 -g")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g")
if(MEMTRACE_SANITIZE) # with less to optimize that is built in two thirds of the time
    set(CMAKE_C_FLAGS_RELEASE "-O1 -g")
    set(CMAKE_CXX_FLAGS_RELEASE "-O1 -g")
endif()
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(MEMTRACE_LIB_OUTPUT "${PROJECT_BINARY_DIR}/lib")
set(MEMTRACE_BIN_OUTPUT "${PROJECT_BINARY_DIR}/bin")
set(MEMTRACE_INCLUDES "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include"
                      "${PROJECT_BINARY_DIR}/include")
set(MEMTRACE_WARNINGS -Wall -Wextra -Wno-missing-field-initializers -Wshadow $<$<C_COMPILER_ID:Clang>:-Wno-string-concatenation>)

# A build that tells which code tests reach, made by scripts/coverage: tests/coverage/reach.c is called at each block;
# tools count lines and branches by gcov, too, whose counters the runtime could not write.
function(memtrace_coverage_options target)
    if(NOT MEMTRACE_COVERAGE)
        return()
    endif()
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:C>:-fsanitize-coverage=trace-pc> ${ARGN})
    get_target_property(type ${target} TYPE)
    if(NOT type STREQUAL "STATIC_LIBRARY")
        target_sources(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests/coverage/reach.c")
        target_link_options(${target} PRIVATE -Wl,--build-id=sha1 ${ARGN})
        target_compile_definitions(${target} PRIVATE "MEMTRACE_REACH=\"${PROJECT_BINARY_DIR}/reach\"")
    endif()
endfunction()

# Flags of everything that runs outside the user's program: tools, their libraries, unit tests.
function(memtrace_tool_options target)
    target_include_directories(${target} PRIVATE ${MEMTRACE_INCLUDES})
    target_compile_options(${target} PRIVATE ${MEMTRACE_WARNINGS})
    target_compile_definitions(${target} PRIVATE _GNU_SOURCE=)
    memtrace_coverage_options(${target} $<$<COMPILE_LANGUAGE:C>:-O1> --coverage -fprofile-update=atomic)
    if(MEMTRACE_AGENT) # whatever no command of it calls stays out
        target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections)
        target_link_options(${target} PRIVATE -Wl,--gc-sections,--as-needed)
    endif()
    foreach(sanitizer IN LISTS MEMTRACE_SANITIZE)
        target_compile_options(
            ${target} PRIVATE -fsanitize=${sanitizer} -fno-sanitize-recover=all
                              -fno-omit-frame-pointer)
        target_link_options(${target} PRIVATE -fsanitize=${sanitizer})
    endforeach()
endfunction()

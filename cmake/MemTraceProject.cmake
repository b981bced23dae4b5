# SPDX-License-Identifier: MIT
# Instruments a whole project without an edit of it:
#
#   cmake -S . -B build -DCMAKE_PROJECT_TOP_LEVEL_INCLUDES="$(memtrace flags --cmake)"
#
# -DMEMTRACE_PROJECT_OPTIONS="REPORT_EVERY;30s" gives options to memtrace_instrument_all(). CMake
# before 3.24 has no CMAKE_PROJECT_TOP_LEVEL_INCLUDES, but CMAKE_PROJECT_INCLUDE, which includes this
# file at each project(). Installed beside MemTraceConfig.cmake.

# At the end of the topmost CMakeLists.txt all is known: targets, languages, and whether the project
# uses MemTrace by itself.
function(_memtrace_project config)
    include("${config}")
    get_property(called GLOBAL PROPERTY MEMTRACE_ALL_CALLED)
    if(NOT called)
        memtrace_instrument_all(${MEMTRACE_PROJECT_OPTIONS})
    endif()
endfunction()

get_property(_memtrace_included GLOBAL PROPERTY MEMTRACE_PROJECT_INCLUDED)
if(NOT _memtrace_included)
    set_property(GLOBAL PROPERTY MEMTRACE_PROJECT_INCLUDED TRUE)
    cmake_language(EVAL CODE "cmake_language(
        DEFER DIRECTORY [==[${CMAKE_SOURCE_DIR}]==]
        CALL _memtrace_project [==[${CMAKE_CURRENT_LIST_DIR}/MemTraceConfig.cmake]==])")
endif()

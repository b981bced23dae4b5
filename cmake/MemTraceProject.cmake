# SPDX-License-Identifier: MIT
# Instruments a whole project without an edit of it:
#
#   cmake -S . -B build -DCMAKE_PROJECT_TOP_LEVEL_INCLUDES="$(memtrace flags --cmake)"
#
# -DMEMTRACE_PROJECT_OPTIONS="REPORT_EVERY;30s" gives options to memtrace_instrument_all(). CMake
# before 3.24 has no CMAKE_PROJECT_TOP_LEVEL_INCLUDES, but CMAKE_PROJECT_INCLUDE, which includes this
# file at each project(). Installed beside MemTraceConfig.cmake.

# At the end of the topmost CMakeLists.txt all is known: targets, languages, and whether the project
# uses MemTrace by itself. The MemTrace beside this file is taken, unless the project is for another machine.
function(_memtrace_project folder)
    if(NOT TARGET MemTrace::runtime)
        _memtrace_is_suitable(suitable "${folder}")
        if(suitable)
            include("${folder}/MemTraceConfig.cmake")
        else()
            _memtrace_find_other("${folder}")
        endif()
    endif()
    get_property(called GLOBAL PROPERTY MEMTRACE_ALL_CALLED)
    if(NOT called)
        memtrace_instrument_all(${MEMTRACE_PROJECT_OPTIONS})
    endif()
endfunction()

# Whether the package in `folder` is for the project's machine.
function(_memtrace_is_suitable result folder)
    set(PACKAGE_VERSION_UNSUITABLE FALSE)
    include("${folder}/MemTraceConfigVersion.cmake")
    set(${result} TRUE PARENT_SCOPE)
    if(PACKAGE_VERSION_UNSUITABLE)
        set(${result} FALSE PARENT_SCOPE)
    endif()
endfunction()

# Where the project's packages are (a sysroot), or else beside the package in `folder`. The topmost folder need not have
# a language, and then find_package() does not know lib/aarch64-linux-gnu.
function(_memtrace_find_other folder)
    find_package(MemTrace CONFIG QUIET)
    if(MemTrace_FOUND)
        return()
    endif()
    get_filename_component(above "${folder}/../../.." ABSOLUTE)
    set(patterns "${above}/*/cmake/MemTrace" "${above}/lib/*/cmake/MemTrace")
    foreach(prefix IN LISTS CMAKE_PREFIX_PATH)
        list(APPEND patterns "${prefix}/lib*/cmake/MemTrace" "${prefix}/lib/*/cmake/MemTrace")
    endforeach()
    file(GLOB others ${patterns})
    foreach(other IN LISTS others)
        _memtrace_is_suitable(suitable "${other}")
        if(suitable)
            include("${other}/MemTraceConfig.cmake")
            return()
        endif()
    endforeach()
    include("${folder}/MemTraceMachine.cmake")
    _memtrace_machine_of_project(machine)
    message(FATAL_ERROR "MemTrace: no runtime for ${machine}, neither where packages are looked for nor in ${above}: "
                        "build MemTrace with this toolchain file and install it there (docs/cmake.md).")
endfunction()

get_property(_memtrace_included GLOBAL PROPERTY MEMTRACE_PROJECT_INCLUDED)
if(NOT _memtrace_included)
    set_property(GLOBAL PROPERTY MEMTRACE_PROJECT_INCLUDED TRUE)
    cmake_language(EVAL CODE "cmake_language(
        DEFER DIRECTORY [==[${CMAKE_SOURCE_DIR}]==]
        CALL _memtrace_project [==[${CMAKE_CURRENT_LIST_DIR}]==])")
endif()

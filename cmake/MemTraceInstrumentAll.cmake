# SPDX-License-Identifier: MIT
# memtrace_instrument_all(): memtrace_instrument() for every target of the project that can be
# instrumented, whatever folder it is in. Included by MemTraceInstrument.cmake.
#
#   memtrace_instrument_all([options of memtrace_instrument()])
#
# It may be called anywhere, also before the targets are there: it acts when the topmost
# CMakeLists.txt is done. Targets that were given to memtrace_instrument() keep what they have.

function(memtrace_instrument_all)
    _memtrace_parse_arguments("memtrace_instrument_all()" 0)
    get_property(called GLOBAL PROPERTY MEMTRACE_ALL_CALLED)
    if(called)
        message(FATAL_ERROR "memtrace_instrument_all(): called twice.")
    endif()
    set_property(GLOBAL PROPERTY MEMTRACE_ALL_CALLED TRUE)
    set_property(GLOBAL PROPERTY MEMTRACE_ALL_ARGUMENTS "${ARGN}")
    cmake_language(EVAL CODE "cmake_language(DEFER DIRECTORY [==[${CMAKE_SOURCE_DIR}]==]
                                             CALL _memtrace_instrument_project)")
endfunction()

function(_memtrace_instrument_project)
    _memtrace_instrument_directory("${CMAKE_SOURCE_DIR}")
    get_property(modes GLOBAL PROPERTY MEMTRACE_ALL_MODES)
    list(REMOVE_DUPLICATES modes)
    foreach(key IN LISTS modes)
        get_property(what GLOBAL PROPERTY MEMTRACE_ALL_MODE_${key})
        get_property(targets GLOBAL PROPERTY MEMTRACE_ALL_TARGETS_${key})
        list(LENGTH targets count)
        list(SUBLIST targets 0 10 shown)
        list(JOIN shown ", " shown)
        if(count GREATER 10)
            string(APPEND shown ", ...")
        endif()
        set(noun targets)
        if(count EQUAL 1)
            set(noun target)
        endif()
        message(STATUS "MemTrace: ${what}: ${count} ${noun}: ${shown}")
    endforeach()
    if(NOT modes)
        message(STATUS "MemTrace: no target to instrument")
    endif()
endfunction()

# The targets of a folder and of those below it. MemTrace itself may be one of them.
function(_memtrace_instrument_directory directory)
    if(directory STREQUAL "${MemTrace_SOURCE_DIR}")
        return()
    endif()
    # What memtrace_instrument() asks of the compilers: a subfolder may have enabled more languages.
    foreach(language IN ITEMS C CXX Fortran)
        foreach(fact IN ITEMS COMPILER COMPILER_ID COMPILER_VERSION COMPILER_TARGET FLAGS
                              IMPLICIT_LINK_DIRECTORIES)
            get_directory_property(value DIRECTORY "${directory}"
                                                   DEFINITION CMAKE_${language}_${fact})
            set(CMAKE_${language}_${fact} "${value}")
        endforeach()
    endforeach()

    get_property(options GLOBAL PROPERTY MEMTRACE_ALL_ARGUMENTS)
    get_property(targets DIRECTORY "${directory}" PROPERTY BUILDSYSTEM_TARGETS)
    foreach(target IN LISTS targets)
        get_target_property(type ${target} TYPE)
        get_property(done TARGET ${target} PROPERTY MEMTRACE_INSTRUMENTED)
        if(done OR NOT type MATCHES "^(EXECUTABLE|(STATIC|SHARED|MODULE|OBJECT)_LIBRARY)$")
            continue()
        endif()
        _memtrace_instrument(${target} ${options})
        string(MD5 key "${mode} ${why}")
        set_property(GLOBAL PROPERTY MEMTRACE_ALL_MODE_${key} "mode ${mode} (${why})")
        set_property(GLOBAL APPEND PROPERTY MEMTRACE_ALL_MODES ${key})
        set_property(GLOBAL APPEND PROPERTY MEMTRACE_ALL_TARGETS_${key} ${target})
    endforeach()

    get_property(below DIRECTORY "${directory}" PROPERTY SUBDIRECTORIES)
    foreach(subdirectory IN LISTS below)
        _memtrace_instrument_directory("${subdirectory}")
    endforeach()
endfunction()

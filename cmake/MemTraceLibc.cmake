# SPDX-License-Identifier: MIT
# Which of MemTrace's runtimes a target is linked with: by the C library of the project's compiler, and by
# whether the target is linked statically. Included by MemTraceInstrument.cmake.

# The targets to link with, by the C library of the project's compiler. Sets in the caller: runtime,
# static_runtime. Which of the two a target takes is told when the topmost CMakeLists.txt is done.
function(_memtrace_runtimes)
    get_property(own GLOBAL PROPERTY MEMTRACE_LIBC)
    get_property(libc GLOBAL PROPERTY MEMTRACE_LIBC_OF_PROJECT)
    if(NOT libc)
        _memtrace_find_libc(libc)
        set_property(GLOBAL PROPERTY MEMTRACE_LIBC_OF_PROJECT "${libc}")
        cmake_language(EVAL CODE "cmake_language(DEFER DIRECTORY [==[${CMAKE_SOURCE_DIR}]==]
                                                 CALL _memtrace_note_static [==[${CMAKE_SOURCE_DIR}]==])")
    endif()
    set(suffix "")
    if(NOT libc STREQUAL own)
        set(suffix _${libc})
    endif()
    if(NOT TARGET MemTrace::runtime${suffix})
        message(FATAL_ERROR "MemTrace was built for programs with ${own}, and this project's compiler links with "
                            "${libc}: build MemTrace where musl-gcc is installed, with gcc.")
    endif()
    set(runtime MemTrace::runtime${suffix} PARENT_SCOPE)
    set(static_runtime MemTrace::runtime_static${suffix} PARENT_SCOPE)
endfunction()

# By the headers that the compiler finds.
function(_memtrace_find_libc result)
    get_property(own GLOBAL PROPERTY MEMTRACE_LIBC)
    set(found "${own}")
    set(language c)
    set(compiler "${CMAKE_C_COMPILER}")
    separate_arguments(flags UNIX_COMMAND "${CMAKE_C_FLAGS}")
    if(NOT compiler)
        set(language c++)
        set(compiler "${CMAKE_CXX_COMPILER}")
        separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS}")
    endif()
    if(compiler)
        set(source "${CMAKE_BINARY_DIR}/CMakeFiles/memtrace_libc")
        file(WRITE "${source}" "#include <features.h>\n#ifdef __GLIBC__\nmemtrace=glibc\n#else\nmemtrace=musl\n#endif\n")
        execute_process(COMMAND "${compiler}" ${flags} -E -P -x ${language} "${source}" OUTPUT_VARIABLE output
                        ERROR_QUIET)
        if(output MATCHES "memtrace *= *(glibc|musl)")
            set(found "${CMAKE_MATCH_1}")
        endif()
    endif()
    set(${result} "${found}" PARENT_SCOPE)
endfunction()

# Notes of each executable of a folder and of those below it whether it is linked statically: a shared
# library cannot be part of it.
function(_memtrace_note_static directory)
    get_property(targets DIRECTORY "${directory}" PROPERTY BUILDSYSTEM_TARGETS)
    foreach(target IN LISTS targets)
        _memtrace_is_static(static ${target} "${directory}")
        if(static)
            # With an instrumented archive CMake sees a shared library among what is linked, whose folder it would
            # make a run path of: glibc's static PIEs do not start with one.
            set_target_properties(${target} PROPERTIES MEMTRACE_STATIC TRUE SKIP_BUILD_RPATH TRUE)
        endif()
    endforeach()
    get_property(below DIRECTORY "${directory}" PROPERTY SUBDIRECTORIES)
    foreach(subdirectory IN LISTS below)
        _memtrace_note_static("${subdirectory}")
    endforeach()
endfunction()

function(_memtrace_is_static result target directory)
    get_target_property(type ${target} TYPE)
    set(flags "")
    if(type STREQUAL "EXECUTABLE")
        get_directory_property(flags DIRECTORY "${directory}" DEFINITION CMAKE_EXE_LINKER_FLAGS)
        foreach(property IN ITEMS LINK_OPTIONS LINK_FLAGS LINK_LIBRARIES)
            get_property(value TARGET ${target} PROPERTY ${property})
            string(APPEND flags " ${value}")
        endforeach()
    endif()
    set(${result} FALSE PARENT_SCOPE)
    if(" ${flags} " MATCHES "[ ;]-static(-pie)?[ ;]")
        set(${result} TRUE PARENT_SCOPE)
    endif()
endfunction()

# SPDX-License-Identifier: MIT
# ALLOCATORS of memtrace_instrument(): functions of the target that allocate report by themselves
# (docs/allocators.md). The compilers' plugins read the specifications, as the command does; here
# they are only handed on. Included by MemTraceInstrument.cmake.

# What @FILE holds in place of it, so that the target is built anew when the file changes.
function(_memtrace_expand_allocators result directory)
    set(specifications "")
    foreach(item IN LISTS ARGN)
        if(NOT item MATCHES "^@")
            list(APPEND specifications "${item}")
            continue()
        endif()
        string(SUBSTRING "${item}" 1 -1 name)
        get_filename_component(file "${name}" ABSOLUTE BASE_DIR "${directory}")
        if(NOT EXISTS "${file}")
            message(FATAL_ERROR "ALLOCATORS @${name}: there is no ${file}.")
        endif()
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
        file(STRINGS "${file}" lines)
        foreach(line IN LISTS lines)
            string(REGEX REPLACE "(^|[ \t])#.*$" "" line "${line}")
            string(STRIP "${line}" line)
            if(line)
                list(APPEND specifications "${line}")
            endif()
        endforeach()
    endforeach()
    set(${result} "${specifications}" PARENT_SCOPE)
endfunction()

# The options for the plugin in `file`, one for each specification.
function(_memtrace_allocator_options result language file)
    set(options "")
    foreach(specification IN LISTS ARGN)
        if(CMAKE_${language}_COMPILER_ID STREQUAL "Clang")
            list(APPEND options "-fplugin=${file}" "SHELL:-mllvm \"-memtrace-allocators=${specification}\"")
        else()
            list(APPEND options "-fplugin-arg-memtrace-allocators=${specification}")
        endif()
    endforeach()
    set(${result} "${options}" PARENT_SCOPE)
endfunction()

# Says what is wrong with the specifications while the project is configured: the plugin reads them. Not where it is
# built along with the project: then the compiler says it.
function(_memtrace_check_allocators target language file)
    separate_arguments(command UNIX_COMMAND "${CMAKE_${language}_FLAGS}")
    list(PREPEND command "${CMAKE_${language}_COMPILER}")
    if(CMAKE_${language}_COMPILER_TARGET)
        list(APPEND command "--target=${CMAKE_${language}_COMPILER_TARGET}")
    endif()
    _memtrace_plugin_options(options ${language} "${file}")
    _memtrace_allocator_options(more ${language} "${file}" ${ARGN})
    string(REPLACE "SHELL:-mllvm \"" "-mllvm;" more "${more}")
    string(REPLACE "\"" "" more "${more}")
    set(C c)
    set(CXX c++)
    set(Fortran f95)
    execute_process(
        COMMAND ${command} ${options} ${more} -x ${${language}} -S /dev/null -o /dev/null
        RESULT_VARIABLE status
        OUTPUT_VARIABLE output
        ERROR_VARIABLE output)
    if(NOT status EQUAL 0)
        string(REGEX MATCH "allocators: [^\n]*" output "${output}")
        message(FATAL_ERROR "memtrace_instrument(${target} ALLOCATORS): ${output}")
    endif()
endfunction()

# Gives the specifications to the plugins of the target. They put the reports in before anything is linked.
function(_memtrace_allocators target languages)
    get_target_property(directory ${target} SOURCE_DIR)
    _memtrace_expand_allocators(specifications "${directory}" ${ARGN})
    if(NOT specifications)
        return()
    endif()
    foreach(language IN LISTS languages)
        _memtrace_find_plugin(${language})
        if(NOT plugin_target)
            _memtrace_check_allocators(${target} ${language} "${plugin_file}" ${specifications})
        endif()
        string(REPLACE ">" "$<ANGLE-R>" escaped "${specifications}") # of C++: would end the expression
        _memtrace_allocator_options(options ${language} "${plugin_file}" ${escaped})
        _memtrace_compile_options(${target} ${language} ${options})
    endforeach()
    set_property(TARGET ${target} PROPERTY MEMTRACE_ALLOCATORS "${specifications}")
endfunction()

# Says when the target is linked which specifications mean none of its functions: the plugins have written into it what
# they found. Objects alone are not linked, and commands behind a target stand in its own folder.
function(_memtrace_tell_unfound target)
    get_target_property(specifications ${target} MEMTRACE_ALLOCATORS)
    get_target_property(type ${target} TYPE)
    get_target_property(directory ${target} SOURCE_DIR)
    if(NOT specifications OR type STREQUAL "OBJECT_LIBRARY" OR NOT TARGET MemTrace::memtrace OR CMAKE_CROSSCOMPILING
       OR NOT directory STREQUAL CMAKE_CURRENT_SOURCE_DIR)
        return()
    endif()
    get_target_property(imported MemTrace::memtrace IMPORTED)
    if(imported) # else it would have to be built first
        add_custom_command(
            TARGET ${target} POST_BUILD
            COMMAND sh -c "\"$0\" flags --list-allocators \"$1\" 2>&1 >/dev/null | grep 'no function in' >&2 || :"
                    "$<TARGET_FILE:MemTrace::memtrace>" "$<TARGET_FILE:${target}>"
            VERBATIM)
    endif()
endfunction()

# Only the plugins know of allocators: who asked for another mode is stopped, and who has no plugin is told.
function(_memtrace_lack_allocators target mode asked)
    set(text "memtrace_instrument(${target}): ALLOCATORS needs MODE pass, this is ${mode}: name the functions when the "
             "program is run, by memtrace run --alloc or MEMTRACE_ALLOC.")
    string(CONCAT text ${text})
    if(asked MATCHES "^(|auto)$")
        message(WARNING "${text}")
    else()
        message(FATAL_ERROR "${text}")
    endif()
endfunction()

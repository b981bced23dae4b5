# SPDX-License-Identifier: MIT
# memtrace_instrument(): builds a target so that it profiles its own memory. docs/cmake.md explains
# it. Comes with the installed package and with add_subdirectory/FetchContent alike.
#
#   memtrace_instrument(target
#       [MODE auto|pass|hooks|frame-pointer]  how call paths are found; auto is the default
#       [REPORT_EVERY 30s]                    built-in MEMTRACE_EVERY; the environment wins
#       [TOP 10]                              built-in MEMTRACE_TOP; the environment wins
#       [SAMPLE 512K]                         built-in MEMTRACE_SAMPLE; the environment wins
#       [EXCLUDE_FUNCTIONS name...]           pass, hooks: functions to leave out
#       [EXCLUDE_FILES path-part...]          pass, hooks: source files to leave out
#       [NO_ALLOC_FUNCTIONS name...]          pass: functions that never allocate
#       [ALLOCATORS specification...])        pass: functions that allocate, see docs/allocators.md
#
# MemTraceInstrumentAll.cmake does it to all targets of a project.

# Functions keep the policies of the place where they are defined, so those of the project, which may
# be old, are not theirs.
cmake_policy(PUSH)
cmake_policy(VERSION 3.20)

include("${CMAKE_CURRENT_LIST_DIR}/MemTraceLibc.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/MemTracePass.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/MemTraceAllocators.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/MemTraceInstrumentAll.cmake")

function(memtrace_instrument target)
    _memtrace_check_target("${target}")
    _memtrace_instrument("${target}" ${ARGN})
    _memtrace_tell_unfound("${target}")
    message(STATUS "MemTrace: ${target}: mode ${mode} (${why})")
endfunction()

# Sets arg_KEYWORD from the arguments of the calling function behind the first `count`.
macro(_memtrace_parse_arguments caller count)
    cmake_parse_arguments(
        PARSE_ARGV ${count} arg "" "MODE;REPORT_EVERY;TOP;SAMPLE"
        "EXCLUDE_FUNCTIONS;EXCLUDE_FILES;NO_ALLOC_FUNCTIONS;ALLOCATORS")
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "${caller}: what is \"${arg_UNPARSED_ARGUMENTS}\"?")
    endif()
    foreach(keyword IN LISTS arg_KEYWORDS_MISSING_VALUES)
        message(FATAL_ERROR "${caller}: ${keyword} needs a value.")
    endforeach()
endmacro()

# What memtrace_instrument() does, for a target that was checked. Sets in the caller: mode, why.
function(_memtrace_instrument target)
    _memtrace_parse_arguments("memtrace_instrument(${target})" 1)
    _memtrace_decide("${target}" "${arg_MODE}")
    if(mode STREQUAL "pass")
        _memtrace_pass(
            ${target} "${pass_languages}" no-alloc ${arg_NO_ALLOC_FUNCTIONS} exclude-functions
            ${arg_EXCLUDE_FUNCTIONS} exclude-files ${arg_EXCLUDE_FILES})
        _memtrace_allocators(${target} "${pass_languages}" "${arg_ALLOCATORS}")
    elseif(mode STREQUAL "hooks")
        _memtrace_hooks(${target} "${arg_EXCLUDE_FUNCTIONS}" "${arg_EXCLUDE_FILES}")
    elseif(mode STREQUAL "frame-pointer")
        _memtrace_compile_options(${target} "C;CXX;Fortran" -fno-omit-frame-pointer)
        _memtrace_is_lean(lean)
        if(NOT lean)
            _memtrace_compile_options(${target} "C;CXX;Fortran" -mno-omit-leaf-frame-pointer)
        endif()
        if(arg_EXCLUDE_FUNCTIONS OR arg_EXCLUDE_FILES)
            string(APPEND why "; EXCLUDE_* does nothing in this mode")
        endif()
    endif()

    if(arg_ALLOCATORS AND NOT mode STREQUAL "pass")
        _memtrace_lack_allocators(${target} "${mode}" "${arg_MODE}")
    endif()

    _memtrace_is_lean(lean)
    if(lean)
        _memtrace_compile_options(${target} "C;CXX;Fortran" -fasynchronous-unwind-tables)
    endif()

    _memtrace_link(${target})
    _memtrace_defaults(${target} "${arg_REPORT_EVERY}" "${arg_TOP}" "${arg_SAMPLE}")
    set_property(TARGET ${target} PROPERTY MEMTRACE_INSTRUMENTED TRUE)
    set(mode "${mode}" PARENT_SCOPE)
    set(why "${why}" PARENT_SCOPE)
endfunction()

# Whether compilers for the project's machine write unwind tables for exceptions alone, unless they are asked for more,
# and have no option by which functions that call nothing keep a frame pointer.
function(_memtrace_is_lean result)
    _memtrace_machine_of_project(machine)
    set(${result} FALSE PARENT_SCOPE)
    if(machine MATCHES "^(arm|mips|riscv)")
        set(${result} TRUE PARENT_SCOPE)
    endif()
endfunction()

# Sets in the caller: mode, why, and for pass pass_languages.
function(_memtrace_decide target asked)
    # What auto takes where it can be had: the cheapest, see docs/performance.md.
    set(preferred pass)
    set(mode "${asked}")
    set(why "as asked")
    if(NOT mode MATCHES "^(|auto|pass|hooks|frame-pointer)$")
        message(FATAL_ERROR "memtrace_instrument(${target}): MODE is auto, pass, hooks or "
                            "frame-pointer, not \"${mode}\".")
    endif()
    if(mode MATCHES "^(|auto)$")
        set(mode ${preferred})
        set(why "auto")
    endif()
    if(mode STREQUAL "pass")
        _memtrace_plan_pass()
        if(pass_languages)
            string(APPEND why ": ${pass_reason}")
        elseif(asked STREQUAL "pass")
            message(FATAL_ERROR "memtrace_instrument(${target} MODE pass): ${pass_reason}")
        else()
            set(mode frame-pointer)
            string(APPEND why ": ${pass_reason}")
        endif()
    endif()
    _memtrace_machine_of_project(machine)
    if(mode STREQUAL "frame-pointer" AND machine MATCHES "^mips")
        if(asked STREQUAL "frame-pointer")
            message(FATAL_ERROR "memtrace_instrument(${target} MODE frame-pointer): on MIPS frame pointers make no chain; "
                                "leave MODE out for unwind tables.")
        endif()
        set(mode unwind-tables)
    endif()
    set(mode "${mode}" PARENT_SCOPE)
    set(why "${why}" PARENT_SCOPE)
    set(pass_languages "${pass_languages}" PARENT_SCOPE)
endfunction()

function(_memtrace_check_target target)
    if(NOT TARGET "${target}")
        message(FATAL_ERROR "memtrace_instrument(${target}): there is no such target (yet).")
    endif()
    get_target_property(aliased ${target} ALIASED_TARGET)
    if(aliased)
        message(FATAL_ERROR "memtrace_instrument(${target}): ${target} is an ALIAS of ${aliased}: "
                            "name ${aliased} instead.")
    endif()
    get_target_property(imported ${target} IMPORTED)
    if(imported)
        message(FATAL_ERROR "memtrace_instrument(${target}): ${target} is IMPORTED: it was built "
                            "elsewhere, and only what this project builds can be instrumented.")
    endif()
    get_target_property(type ${target} TYPE)
    if(NOT type MATCHES "^(EXECUTABLE|(STATIC|SHARED|MODULE|OBJECT)_LIBRARY)$")
        message(FATAL_ERROR "memtrace_instrument(${target}): ${target} is of type ${type}: only "
                            "executables and static, shared, module and object libraries can be "
                            "instrumented.")
    endif()
    get_property(done TARGET ${target} PROPERTY MEMTRACE_INSTRUMENTED)
    if(done)
        message(FATAL_ERROR "memtrace_instrument(${target}): called twice.")
    endif()
endfunction()

# Options for the target's files in these languages (assembler and the like know none of them, of
# Fortran compilers only GCC's does).
function(_memtrace_compile_options target languages)
    if(NOT CMAKE_Fortran_COMPILER_ID STREQUAL "GNU")
        list(REMOVE_ITEM languages Fortran)
    endif()
    list(JOIN languages "," languages)
    foreach(option IN LISTS ARGN)
        target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:${languages}>:${option}>")
    endforeach()
endfunction()

# GCC leaves functions and files out by itself. Clang has no such option: there the hooks are
# switched on file by file, and single functions need an attribute in the source.
function(_memtrace_hooks target functions files)
    _memtrace_compile_options(${target} "C;CXX;Fortran" -fno-omit-frame-pointer)
    string(REPLACE "," "\\," functions_list "${functions}")
    string(REPLACE "," "\\," files_list "${files}")
    list(JOIN functions_list "," functions_list)
    list(JOIN files_list "," files_list)
    set(by_source "")
    set(told FALSE)
    get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
    foreach(language IN ITEMS C CXX Fortran)
        if(NOT language IN_LIST languages)
            continue()
        endif()
        if(CMAKE_${language}_COMPILER_ID STREQUAL "GNU")
            set(options -finstrument-functions)
            if(functions)
                list(APPEND options "-finstrument-functions-exclude-function-list=${functions_list}")
            endif()
            if(files)
                list(APPEND options "-finstrument-functions-exclude-file-list=${files_list}")
            endif()
        elseif(NOT language STREQUAL "Fortran")
            if(functions AND NOT told)
                message(STATUS "MemTrace: ${target}: EXCLUDE_FUNCTIONS needs GCC; for "
                               "${CMAKE_${language}_COMPILER_ID} mark the functions "
                               "__attribute__((no_instrument_function)).")
                set(told TRUE)
            endif()
            set(options -finstrument-functions)
            if(files)
                set(options "")
                list(APPEND by_source ${language})
            endif()
        endif()
        _memtrace_compile_options(${target} ${language} ${options})
    endforeach()

    if(by_source)
        set_target_properties(
            ${target} PROPERTIES MEMTRACE_EXCLUDE_FILES "${files}" MEMTRACE_BY_SOURCE "${by_source}")
        get_target_property(directory ${target} SOURCE_DIR)
        if(directory STREQUAL CMAKE_CURRENT_SOURCE_DIR)
            # At the end of the folder: target_sources() may still come.
            cmake_language(EVAL CODE "cmake_language(DEFER CALL _memtrace_hooks_by_source ${target})")
        else()
            _memtrace_hooks_by_source(${target})
        endif()
    endif()
endfunction()

# Clang with EXCLUDE_FILES. Properties of sources belong to all targets of the folder, so the option
# asks the target.
function(_memtrace_hooks_by_source target)
    get_target_property(files ${target} MEMTRACE_EXCLUDE_FILES)
    get_target_property(languages ${target} MEMTRACE_BY_SOURCE)
    get_target_property(sources ${target} SOURCES)
    get_target_property(directory ${target} SOURCE_DIR)
    foreach(source IN LISTS sources)
        if(source MATCHES "[$]<")
            message(STATUS "MemTrace: ${target}: ${source} gets no hooks: EXCLUDE_FILES with Clang "
                           "needs plain file names.")
            continue()
        endif()
        get_property(language SOURCE "${source}" TARGET_DIRECTORY ${target} PROPERTY LANGUAGE)
        if(NOT language AND source MATCHES "\\.c$")
            set(language C)
        elseif(NOT language AND source MATCHES "\\.(C|cc|cp|cpp|cxx|c\\+\\+|CPP|mpp|ixx|cppm)$")
            set(language CXX)
        endif()
        if(NOT language IN_LIST languages)
            continue()
        endif()
        get_filename_component(path "${source}" ABSOLUTE BASE_DIR "${directory}")
        set(excluded FALSE)
        foreach(part IN LISTS files)
            string(FIND "${path}" "${part}" place)
            if(NOT place EQUAL -1)
                set(excluded TRUE)
            endif()
        endforeach()
        get_property(present SOURCE "${source}" TARGET_DIRECTORY ${target}
                     PROPERTY MEMTRACE_HOOKED_BY)
        if(NOT excluded AND NOT target IN_LIST present)
            set_property(
                SOURCE "${source}" TARGET_DIRECTORY ${target} APPEND
                PROPERTY COMPILE_OPTIONS
                         "$<$<STREQUAL:$<TARGET_PROPERTY:NAME>,${target}>:-finstrument-functions>")
            set_property(SOURCE "${source}" TARGET_DIRECTORY ${target} APPEND
                         PROPERTY MEMTRACE_HOOKED_BY ${target})
        endif()
    endforeach()
endfunction()

# Whether who links the target needs its link options, too.
function(_memtrace_is_linked result target)
    get_target_property(type ${target} TYPE)
    set(linked FALSE)
    if(type MATCHES "^(STATIC|SHARED|OBJECT)_LIBRARY$")
        set(linked TRUE)
    endif()
    set(${result} ${linked} PARENT_SCOPE)
endfunction()

# A link option of the target, and of those who link it. A package that the project exports must
# work for users who have no MemTrace: there the target `needed` does not exist, nor does the option.
function(_memtrace_link_option target needed option)
    target_link_options(${target} PRIVATE "${option}")
    _memtrace_is_linked(linked ${target})
    if(linked)
        target_link_options(${target} INTERFACE "$<$<TARGET_EXISTS:${needed}>:${option}>")
    endif()
endfunction()

# The runtime stays needed though nothing refers to it, and comes before every other library (the
# first malloc found wins). Whoever links an instrumented library is linked with it, too: an
# executable that does not need the runtime itself would find libc's malloc first.
function(_memtrace_link target)
    # target_link_libraries() has two signatures, and all calls for a target must use the same one,
    # which the project chooses. So we append to the properties.
    _memtrace_runtimes()
    set(static "$<BOOL:$<TARGET_PROPERTY:MEMTRACE_STATIC>>")
    set_property(TARGET ${target} APPEND PROPERTY LINK_LIBRARIES "$<IF:${static},${static_runtime},${runtime}>")
    _memtrace_is_linked(linked ${target})
    if(linked)
        set(either "$<IF:${static},${static_runtime},${runtime}>")
        set_property(TARGET ${target} APPEND PROPERTY INTERFACE_LINK_LIBRARIES
                                                      "$<$<TARGET_EXISTS:${runtime}>:${either}>")
    endif()
    set(keep "--eh-frame-hdr,--push-state,--no-as-needed,$<TARGET_FILE:${runtime}>,--pop-state")
    _memtrace_link_option(${target} ${runtime} "$<$<NOT:${static}>:LINKER:${keep}>")

    # The result runs as it is, installed as well.
    _memtrace_run_path(folder)
    if(folder)
        _memtrace_link_option(${target} ${runtime} "$<$<NOT:${static}>:LINKER:-rpath,${folder}>")
    endif()
endfunction()

# The runtime's folder for the run path of a program: nothing where the loader looks by itself. What lies in the root of
# another machine's files has its path without that root there.
function(_memtrace_run_path result)
    set(folder "$<TARGET_FILE_DIR:MemTrace::runtime>")
    get_property(directory GLOBAL PROPERTY MEMTRACE_LIBRARY_DIR)
    if(directory)
        set(known ${CMAKE_C_IMPLICIT_LINK_DIRECTORIES} ${CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES})
        foreach(root IN LISTS CMAKE_SYSROOT CMAKE_STAGING_PREFIX CMAKE_FIND_ROOT_PATH)
            string(REGEX REPLACE "/+$" "" root "${root}")
            string(FIND "${directory}/" "${root}/" place)
            if(root AND place EQUAL 0)
                string(LENGTH "${root}" length)
                string(SUBSTRING "${directory}" ${length} -1 directory)
                set(folder "${directory}")
                list(APPEND known /lib /usr/lib /lib64 /usr/lib64 "/lib/${CMAKE_LIBRARY_ARCHITECTURE}"
                     "/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}")
                break()
            endif()
        endforeach()
        if(directory IN_LIST known)
            set(folder "")
        endif()
    endif()
    set(${result} "${folder}" PARENT_SCOPE)
endfunction()

# Settings built into the program: NUL-separated, as in the environment, found by the runtime as the
# symbol memtrace_defaults. Weak, since an executable may get several from static libraries.
function(_memtrace_defaults target every top sample)
    set(settings "")
    if(NOT every STREQUAL "")
        if(NOT every MATCHES "^[0-9]+(ms|s|m|h)?$")
            message(FATAL_ERROR "memtrace_instrument(${target}): REPORT_EVERY is a number with ms, "
                                "s, m or h, not \"${every}\".")
        endif()
        string(APPEND settings "    \"MEMTRACE_EVERY=${every}\\0\"\n")
    endif()
    if(NOT top STREQUAL "")
        if(NOT top MATCHES "^[0-9]+$")
            message(FATAL_ERROR "memtrace_instrument(${target}): TOP is a number, not \"${top}\".")
        endif()
        string(APPEND settings "    \"MEMTRACE_TOP=${top}\\0\"\n")
    endif()
    if(NOT sample STREQUAL "")
        if(NOT sample MATCHES "^[0-9]+([KMG](iB)?)?$")
            message(FATAL_ERROR "memtrace_instrument(${target}): SAMPLE is a size, a number with K, "
                                "M or G, not \"${sample}\".")
        endif()
        string(APPEND settings "    \"MEMTRACE_SAMPLE=${sample}\\0\"\n")
    endif()
    if(settings STREQUAL "")
        return()
    endif()

    # In the language that the target's folder has: not each needs to have both.
    get_target_property(directory ${target} SOURCE_DIR)
    get_directory_property(c DIRECTORY "${directory}" DEFINITION CMAKE_C_COMPILER_ID)
    get_directory_property(cxx DIRECTORY "${directory}" DEFINITION CMAKE_CXX_COMPILER_ID)
    set(extension c)
    if(NOT c)
        set(extension cpp)
        if(NOT cxx)
            message(FATAL_ERROR "memtrace_instrument(${target}): REPORT_EVERY, TOP and SAMPLE need C or C++ "
                                "among the languages of project().")
        endif()
    endif()
    set(file "${CMAKE_CURRENT_BINARY_DIR}/memtrace_defaults/${target}.${extension}")
    set(text "/* Written by memtrace_instrument(${target}): settings the environment can override. */
#ifdef __cplusplus
extern \"C\"
#endif
__attribute__((weak, visibility(\"default\"), used))
const char memtrace_defaults[] =
${settings}    \"\";
")
    if(extension STREQUAL "cpp")
        # A const object of C++ is local unless it was declared before.
        string(REPLACE "extern \"C\"" "extern \"C\" const char memtrace_defaults[];\nextern \"C\""
                       text "${text}")
    endif()
    file(CONFIGURE OUTPUT "${file}" CONTENT "${text}" @ONLY)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
        # In the archive nothing would pull it in.
        target_sources(${target} INTERFACE "$<BUILD_INTERFACE:${file}>")
    else()
        target_sources(${target} PRIVATE "${file}")
    endif()
endfunction()

cmake_policy(POP)

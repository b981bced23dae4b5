# SPDX-License-Identifier: MIT
# MODE pass of memtrace_instrument(): finds the plugins for the project's compilers and gives them to
# a target. Included by MemTraceInstrument.cmake.
#
# A plugin serves one major version of one compiler. It lies in FOLDER/gcc-12/memtrace.so, FOLDER
# being the global property MEMTRACE_PLUGIN_DIR; where MemTrace is built along with the project it is
# the target that the global property MEMTRACE_PLUGIN_gcc-12 names. What a cross compiler loads runs
# here: it comes with the MemTrace of this machine, as aarch64-linux-gnu-gcc-12/memtrace.so.

include("${CMAKE_CURRENT_LIST_DIR}/MemTraceMachine.cmake")

# Sets `result` to "aarch64-linux-gnu-" if the project's GCC makes code for another machine than the one that it runs
# on, else to nothing.
function(_memtrace_cross_prefix result language)
    set(compiler "${CMAKE_${language}_COMPILER}")
    string(MD5 key "${compiler}")
    get_property(known GLOBAL PROPERTY MEMTRACE_TRIPLET_${key} SET)
    if(NOT known)
        execute_process(COMMAND "${compiler}" -dumpmachine OUTPUT_VARIABLE triplet
                        OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
        set_property(GLOBAL PROPERTY MEMTRACE_TRIPLET_${key} "${triplet}")
    endif()
    get_property(triplet GLOBAL PROPERTY MEMTRACE_TRIPLET_${key})
    _memtrace_machine_of(machine "${triplet}")
    _memtrace_machine_of(here "${CMAKE_HOST_SYSTEM_PROCESSOR}")
    set(${result} "" PARENT_SCOPE)
    if(machine AND NOT machine STREQUAL here)
        set(${result} "${triplet}-" PARENT_SCOPE)
    endif()
endfunction()

# Where the MemTrace of the machine that builds may lie: MEMTRACE_HOST_PATH, or else the prefixes where CMake looks for
# packages, that of the runtime, and the one whose command is in PATH.
function(_memtrace_host_prefixes result)
    set(prefixes "${MEMTRACE_HOST_PATH}")
    if(NOT prefixes)
        get_property(own GLOBAL PROPERTY MEMTRACE_PREFIX)
        set(environment "$ENV{CMAKE_PREFIX_PATH}")
        string(REPLACE ":" ";" environment "${environment}")
        set(prefixes ${own} ${CMAKE_PREFIX_PATH} ${environment})
        find_program(MEMTRACE_HOST_COMMAND memtrace NO_CMAKE_FIND_ROOT_PATH)
        mark_as_advanced(MEMTRACE_HOST_COMMAND)
        if(MEMTRACE_HOST_COMMAND)
            get_filename_component(command "${MEMTRACE_HOST_COMMAND}" REALPATH)
            get_filename_component(prefix "${command}" DIRECTORY)
            get_filename_component(prefix "${prefix}" DIRECTORY)
            list(APPEND prefixes "${prefix}")
        endif()
    endif()
    set(${result} "${prefixes}" PARENT_SCOPE)
endfunction()

# The plugin NAME/memtrace.so of the MemTrace of the machine that builds: sets `result`, or why there is none in
# `lacking`. It writes what the runtime reads, so both are of the same version.
function(_memtrace_find_host_plugin result lacking name)
    get_property(version GLOBAL PROPERTY MEMTRACE_VERSION)
    _memtrace_host_prefixes(prefixes)
    set(${result} "" PARENT_SCOPE)
    set(why "")
    foreach(prefix IN LISTS prefixes)
        file(GLOB found "${prefix}/lib*/memtrace/${name}/memtrace.so" "${prefix}/lib/*/memtrace/${name}/memtrace.so")
        foreach(file IN LISTS found)
            string(REGEX REPLACE "/memtrace/${name}/memtrace.so$" "" folder "${file}")
            set(PACKAGE_VERSION "")
            include("${folder}/cmake/MemTrace/MemTraceVersion.cmake" OPTIONAL)
            if(PACKAGE_VERSION MATCHES "^([0-9.]+)" AND CMAKE_MATCH_1 VERSION_EQUAL version)
                set(${result} "${file}" PARENT_SCOPE)
                return()
            endif()
            set(why "${file} is of MemTrace ${PACKAGE_VERSION}, the runtime of ${version}")
        endforeach()
    endforeach()
    if(NOT why)
        list(JOIN prefixes ", " prefixes)
        string(CONCAT why "no plugin ${name} for the machine that builds in ${prefixes}: install MemTrace there "
                          "and set MEMTRACE_HOST_PATH to its prefix")
    endif()
    set(${lacking} "${why}" PARENT_SCOPE)
endfunction()

# The plugin for the project's compiler of a language. Sets in the caller:
#   plugin_file      the plugin
#   plugin_target    the target that makes it; empty: it was installed
#   plugin_compiler  "GCC 12"
#   plugin_lacking   why there is none; empty: there is one
function(_memtrace_find_plugin language)
    string(REGEX MATCH "^[0-9]+" major "${CMAKE_${language}_COMPILER_VERSION}")
    get_property(folder GLOBAL PROPERTY MEMTRACE_PLUGIN_DIR)
    set(name "${CMAKE_${language}_COMPILER_ID}")
    set(kind clang)
    set(package llvm-${major}-dev)
    if(name STREQUAL "GNU")
        set(name GCC)
        set(kind gcc)
        set(package gcc-${major}-plugin-dev)
        _memtrace_cross_prefix(cross ${language})
        if(cross)
            string(REGEX REPLACE "-$" "" triplet "${cross}")
            set(kind ${cross}gcc)
            set(package ${package}-${triplet})
        endif()
    endif()
    set(file "${folder}/${kind}-${major}/memtrace.so")
    get_property(target GLOBAL PROPERTY MEMTRACE_PLUGIN_${kind}-${major})
    set(lacking "")
    if(NOT name MATCHES "^(GCC|Clang)$")
        set(lacking "${name} has no plugins, GCC and Clang do")
    elseif(target)
        set(file "$<TARGET_FILE:${target}>")
    elseif(EXISTS "${file}")
        _memtrace_try_plugin(lacking ${language} "${file}")
    elseif(name STREQUAL "Clang" AND major LESS 14)
        set(lacking "Clang ${major} is too old for a plugin, Clang 14 and newer have one")
    elseif(CMAKE_CROSSCOMPILING)
        _memtrace_find_host_plugin(file lacking ${kind}-${major})
        if(file)
            _memtrace_try_plugin(lacking ${language} "${file}")
        endif()
    else()
        string(CONCAT lacking "no plugin for ${name} ${major} in ${folder}: install ${package} and "
                              "build MemTrace again")
    endif()
    set(plugin_file "${file}" PARENT_SCOPE)
    set(plugin_target "${target}" PARENT_SCOPE)
    set(plugin_compiler "${name} ${major}" PARENT_SCOPE)
    set(plugin_lacking "${lacking}" PARENT_SCOPE)
endfunction()

# Another build of the same version may refuse the plugin: compiles an empty program with it, once in
# a run of CMake. Sets `result` to the complaint, or to nothing.
function(_memtrace_try_plugin result language file)
    separate_arguments(command UNIX_COMMAND "${CMAKE_${language}_FLAGS}")
    list(PREPEND command "${CMAKE_${language}_COMPILER}")
    if(CMAKE_${language}_COMPILER_TARGET)
        list(APPEND command "--target=${CMAKE_${language}_COMPILER_TARGET}")
    endif()
    string(MD5 key "${command};${file}")
    get_property(known GLOBAL PROPERTY MEMTRACE_TRIED_${key} SET)
    if(NOT known)
        set(source "${CMAKE_BINARY_DIR}/CMakeFiles/memtrace_empty")
        file(WRITE "${source}.C" "int main(void) { return 0; }\n")
        file(WRITE "${source}.CXX" "int main() { return 0; }\n")
        file(WRITE "${source}.Fortran" "end\n")
        set(C -x c)
        set(CXX -x c++)
        set(Fortran -x f95)
        _memtrace_plugin_options(options ${language} "${file}")
        execute_process(
            COMMAND ${command} ${options} ${${language}} -S "${source}.${language}" -o /dev/null
            RESULT_VARIABLE status
            OUTPUT_VARIABLE output
            ERROR_VARIABLE output)
        if(status EQUAL 0)
            set(output "")
        else()
            string(REGEX MATCH "[^\n]*error[^\n]*" output "${output}")
            set(output "the compiler refuses ${file}: ${output}")
        endif()
        set_property(GLOBAL PROPERTY MEMTRACE_TRIED_${key} "${output}")
    endif()
    get_property(output GLOBAL PROPERTY MEMTRACE_TRIED_${key})
    set(${result} "${output}" PARENT_SCOPE)
endfunction()

# The options that load a plugin into the compiler of a language, and those for its settings (lists
# of names). Clang reads -mllvm before it loads a pass plugin, but after any other plugin.
function(_memtrace_plugin_options result language file)
    cmake_parse_arguments(PARSE_ARGV 3 arg "" "" "no-alloc;exclude-functions;exclude-files")
    set(options "-fplugin=${file}")
    if(CMAKE_${language}_COMPILER_ID STREQUAL "Clang")
        set(options "-fpass-plugin=${file}")
    endif()
    foreach(setting IN ITEMS no-alloc exclude-functions exclude-files)
        list(JOIN arg_${setting} "," names)
        string(REPLACE ">" "$<ANGLE-R>" names "${names}") # of C++: would end the expression
        if(NOT names)
            continue()
        elseif(CMAKE_${language}_COMPILER_ID STREQUAL "Clang")
            list(APPEND options "-fplugin=${file}" "SHELL:-mllvm \"-memtrace-${setting}=${names}\"")
        else()
            list(APPEND options "-fplugin-arg-memtrace-${setting}=${names}")
        endif()
    endforeach()
    set(${result} "${options}" PARENT_SCOPE)
endfunction()

# Whether the project's compilers have plugins. Sets in the caller:
#   pass_languages  those whose compiler has one; empty: pass is not possible
#   pass_reason     why: the plugins, or what is lacking
# Fortran without one does not keep C and C++ from having theirs.
function(_memtrace_plan_pass)
    get_property(folder GLOBAL PROPERTY MEMTRACE_PLUGIN_DIR)
    set(languages "")
    set(compilers "")
    set(reasons "")
    set(possible TRUE)
    foreach(language IN ITEMS C CXX Fortran)
        if(NOT CMAKE_${language}_COMPILER_ID)
            continue() # not enabled here; elsewhere in the build it may be
        endif()
        _memtrace_find_plugin(${language})
        if(plugin_lacking STREQUAL "")
            list(APPEND languages ${language})
            list(APPEND compilers "${plugin_compiler}")
            if(NOT plugin_target)
                string(REGEX REPLACE "/[^/]*/memtrace.so$" "" folder "${plugin_file}")
            endif()
        elseif(language STREQUAL "Fortran" AND languages)
            list(APPEND reasons "not for Fortran: ${plugin_lacking}")
        else()
            list(APPEND reasons "${plugin_lacking}")
            set(possible FALSE)
            break()
        endif()
    endforeach()
    if(possible)
        list(REMOVE_DUPLICATES compilers)
        list(JOIN compilers " and " compilers)
        list(PREPEND reasons "plugin for ${compilers} in ${folder}")
    else()
        set(languages "")
    endif()
    list(JOIN reasons ", " reasons)
    set(pass_languages "${languages}" PARENT_SCOPE)
    set(pass_reason "${reasons}" PARENT_SCOPE)
endfunction()

# Gives the plugins to the target. With LTO the code is made when linking, so GCC takes its plugin
# there as well: for a static library, where that is linked. Not where it was installed: other
# projects may use another GCC.
function(_memtrace_pass target languages)
    foreach(language IN LISTS languages)
        _memtrace_find_plugin(${language})
        set(needed MemTrace::runtime)
        if(plugin_target)
            set(needed ${plugin_target})
        endif()
        _memtrace_plugin_options(options ${language} "${plugin_file}" ${ARGN})
        _memtrace_compile_options(${target} ${language} ${options} -fasynchronous-unwind-tables)
        if(plugin_compiler MATCHES "GCC")
            foreach(option IN LISTS options)
                _memtrace_link_option(
                    ${target} ${needed}
                    "$<BUILD_INTERFACE:$<$<LINK_LANG_AND_ID:${language},GNU>:${option}>>")
            endforeach()
        endif()
        if(plugin_target)
            _memtrace_await_plugin(${target} ${plugin_target})
        endif()
    endforeach()
endfunction()

# Compiles nothing of the target before the plugin is there. A plain dependency on a library orders
# linking only (Ninja); one on a custom target orders compiling, too.
function(_memtrace_await_plugin target plugin)
    if(NOT TARGET ${plugin}_ready)
        add_custom_target(${plugin}_ready)
        add_dependencies(${plugin}_ready ${plugin})
    endif()
    add_dependencies(${target} ${plugin}_ready)
endfunction()

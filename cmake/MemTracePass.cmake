# SPDX-License-Identifier: MIT
# MODE pass of memtrace_instrument(): finds the plugins for the project's compilers and gives them to
# a target. Included by MemTraceInstrument.cmake.
#
# A plugin serves one major version of one compiler. It lies in FOLDER/gcc-12/memtrace.so, FOLDER
# being the global property MEMTRACE_PLUGIN_DIR; where MemTrace is built along with the project it is
# the target that the global property MEMTRACE_PLUGIN_gcc-12 names.

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

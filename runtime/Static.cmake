# SPDX-License-Identifier: MIT
# The runtime for other C libraries than the one that is built for first: musl beside glibc, where
# musl-gcc is installed; and for programs that are linked statically. Included by CMakeLists.txt.

# Of 32-bit ARM neither is there (C++'s names are others, and so are the tables by which stacks are unwound).
if(machine STREQUAL "arm")
    return()
endif()

# --- musl beside glibc: by the same gcc, told by musl's specs where musl's files lie ----------------
set(musl_options "")
set(kernel_headers "${PROJECT_BINARY_DIR}/musl-include")
# Those of the kernel are not among musl's.
function(memtrace_kernel_headers)
    file(MAKE_DIRECTORY "${kernel_headers}")
    foreach(folder IN ITEMS linux asm asm-generic)
        foreach(place IN ITEMS "/usr/${CMAKE_LIBRARY_ARCHITECTURE}/include" "/usr/include/${CMAKE_LIBRARY_ARCHITECTURE}"
                               "/usr/include/${CMAKE_SYSTEM_PROCESSOR}-linux-gnu" /usr/include)
            if(EXISTS "${place}/${folder}/" AND NOT EXISTS "${kernel_headers}/${folder}")
                file(CREATE_LINK "${place}/${folder}" "${kernel_headers}/${folder}" SYMBOLIC)
            endif()
        endforeach()
    endforeach()
endfunction()
if(libc STREQUAL "musl")
    include(CheckIncludeFile)
    check_include_file(linux/filter.h MEMTRACE_HAS_KERNEL_HEADERS)
    if(NOT MEMTRACE_HAS_KERNEL_HEADERS)
        memtrace_kernel_headers()
        target_compile_options(memtrace_runtime PRIVATE "SHELL:-idirafter ${kernel_headers}")
    endif()
endif()
set(wrapper_name musl-gcc)
if(CMAKE_CROSSCOMPILING)
    set(wrapper_name ${MEMTRACE_MACHINE}-linux-musl-gcc)
endif()
find_program(MEMTRACE_MUSL_GCC ${wrapper_name} DOC "musl's wrapper of gcc; OFF: no library for musl")
mark_as_advanced(MEMTRACE_MUSL_GCC)
if(MEMTRACE_MUSL_GCC AND libc STREQUAL "glibc" AND CMAKE_C_COMPILER_ID STREQUAL "GNU" AND PROJECT_IS_TOP_LEVEL)
    file(READ "${MEMTRACE_MUSL_GCC}" wrapper LIMIT 4096) # another program of this name begins otherwise
    if(wrapper MATCHES "^#!" AND wrapper MATCHES "-specs[ =]\"?([^\" \n]+)")
        memtrace_kernel_headers()
        set(musl_options "-specs=${CMAKE_MATCH_1}")
        # gcc's functions for atomics ask the processor by a function of glibc's.
        include(CheckCCompilerFlag)
        check_c_compiler_flag(-mno-outline-atomics MEMTRACE_OUTLINES_ATOMICS)
        if(MEMTRACE_OUTLINES_ATOMICS)
            list(APPEND musl_options -mno-outline-atomics)
        endif()
        message(STATUS "MemTrace: also for musl, by ${MEMTRACE_MUSL_GCC}")
    endif()
endif()

function(memtrace_by_musl target)
    target_compile_options(${target} PRIVATE ${musl_options} "SHELL:-idirafter ${kernel_headers}")
    target_link_options(${target} PRIVATE ${musl_options})
endfunction()

if(musl_options)
    memtrace_shared_runtime(memtrace_runtime_musl musl memtrace-musl runtime_musl)
    add_library(MemTrace::runtime_musl ALIAS memtrace_runtime_musl)
    memtrace_by_musl(memtrace_runtime_musl)
    set_property(GLOBAL APPEND PROPERTY MEMTRACE_VARIANTS memtrace_runtime_musl)
endif()

# --- static programs: one object file, and the options with which it is linked ----------------------
# Names of the C library are the linker's to lead (--wrap): here they get the names by which it leads
# them. Code gets a section of its own, by which the runtime knows itself; nothing else is visible.
set(static_output "${MEMTRACE_LIB_OUTPUT}/memtrace")

function(memtrace_static_runtime kind name)
    set(reals "")
    set(table "")
    set(renames "")
    set(options "-Wl,--eh-frame-hdr\n")
    set(cxx_options "")
    file(STRINGS libc/wrapped.txt lines REGEX "^[A-Za-z_]")
    foreach(line IN LISTS lines)
        string(REPLACE " " ";" words "${line}")
        list(GET words 0 symbol)
        list(GET words 1 library)
        if(NOT library MATCHES "^(both|${kind})$")
            continue()
        endif()
        if("behind" IN_LIST words)
            string(APPEND reals "extern char ${symbol}[];\n")
            string(APPEND table "    {\"${symbol}\", ${symbol}},\n")
            continue()
        endif()
        set(weak "")
        string(APPEND options "-Wl,--wrap=${symbol}\n")
        string(APPEND renames "${symbol} __wrap_${symbol}\n")
        if("ours" IN_LIST words)
            continue()
        elseif("c++" IN_LIST words)
            set(weak " __attribute__((weak))")
            # The program's own reference leads to us, and would not bring the function in.
            string(APPEND cxx_options "-Wl,-u,${symbol}\n")
        endif()
        string(APPEND reals "extern char __real_${symbol}[]${weak};\n")
        string(APPEND table "    {\"${symbol}\", __real_${symbol}},\n")
    endforeach()
    set(folder "${CMAKE_CURRENT_BINARY_DIR}/${name}")
    file(CONFIGURE OUTPUT "${folder}/functions.c" @ONLY CONTENT
         "/* Made by Static.cmake. */\n#include \"runtime/libc/static.h\"\n\n#include <stddef.h>\n\n@reals@
const struct static_function static_functions[] = {\n@table@    {NULL, NULL},\n};\n")
    file(CONFIGURE OUTPUT "${folder}/renames" @ONLY CONTENT "@renames@")
    file(CONFIGURE OUTPUT "${static_output}/${name}.options" @ONLY CONTENT "@options@")
    file(CONFIGURE OUTPUT "${static_output}/${name}-c++.options" @ONLY CONTENT "@options@@cxx_options@")

    memtrace_runtime_sources(files static_${kind})
    add_library(memtrace_${name} OBJECT ${files} "${folder}/functions.c")
    memtrace_runtime_options(memtrace_${name} static_${kind})
    if(NOT kind STREQUAL libc)
        memtrace_by_musl(memtrace_${name})
    endif()
    set(sections "")
    foreach(suffix IN ITEMS "" .unlikely .hot .startup)
        list(APPEND sections --rename-section .text${suffix}=memtrace_text)
    endforeach()
    set(object "${static_output}/${name}.o")
    add_custom_command(
        OUTPUT "${object}"
        COMMAND "${CMAKE_C_COMPILER}" -r -nostdlib -o "${folder}/all.o" $<TARGET_OBJECTS:memtrace_${name}>
        COMMAND "${CMAKE_OBJCOPY}" "--redefine-syms=${folder}/renames" ${sections} "${folder}/all.o" "${folder}/led.o"
        COMMAND "${CMAKE_OBJCOPY}" --wildcard "--keep-global-symbol=__wrap_*" "--keep-global-symbol=memtrace_*"
                "--keep-global-symbol=__cyg_profile_*" "${folder}/led.o" "${object}"
        DEPENDS memtrace_${name} $<TARGET_OBJECTS:memtrace_${name}> "${folder}/renames"
        COMMAND_EXPAND_LISTS VERBATIM COMMENT "Making ${name}.o for programs that are linked statically")
    set(all ALL)
    if(NOT PROJECT_IS_TOP_LEVEL)
        set(all "") # if a target of the project is linked so
    endif()
    add_custom_target(memtrace_${name}_object ${all} DEPENDS "${object}")

    # With what a target is linked statically. (In a package the folder is this file's, two above.)
    string(REPLACE "-" "_" interface "runtime_${name}")
    add_library(memtrace_${interface} INTERFACE)
    add_library(MemTrace::${interface} ALIAS memtrace_${interface})
    set_target_properties(memtrace_${interface} PROPERTIES EXPORT_NAME ${interface})
    add_dependencies(memtrace_${interface} memtrace_${name}_object)
    set(built "${static_output}/${name}")
    set(installed "$<INSTALL_PREFIX>/${CMAKE_INSTALL_LIBDIR}/memtrace/${name}")
    set(suffix "$<$<LINK_LANGUAGE:CXX>:-c++>.options")
    target_link_libraries(memtrace_${interface} INTERFACE memtrace_headers "$<BUILD_INTERFACE:${built}.o>"
                                                          "$<INSTALL_INTERFACE:${installed}.o>")
    target_link_options(memtrace_${interface} INTERFACE "$<BUILD_INTERFACE:@${built}${suffix}>"
                                                        "$<INSTALL_INTERFACE:@${installed}${suffix}>")
    set_property(GLOBAL APPEND PROPERTY MEMTRACE_VARIANTS memtrace_${interface})
    if(MEMTRACE_INSTALL)
        install(FILES "${object}" "${static_output}/${name}.options" "${static_output}/${name}-c++.options"
                DESTINATION "${CMAKE_INSTALL_LIBDIR}/memtrace")
    endif()
endfunction()

if(MEMTRACE_AGENT) # no program is linked on a device
    return()
endif()
memtrace_static_runtime(${libc} static)
if(libc STREQUAL "musl" AND NOT MEMTRACE_HAS_KERNEL_HEADERS)
    target_compile_options(memtrace_static PRIVATE "SHELL:-idirafter ${kernel_headers}")
endif()
if(musl_options)
    memtrace_static_runtime(musl static-musl)
endif()

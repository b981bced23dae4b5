# SPDX-License-Identifier: MIT
# Which machine a project is built for, as MemTrace calls it: x86_64, aarch64, riscv64, arm. Included by MemTrace's own build, by the
# version file of its package, which refuses other machines' projects, and by what looks for plugins.

# Sets `result` to the machine that the processor's name stands for.
function(_memtrace_machine_of result name)
    string(TOLOWER "${name}" machine)
    string(REGEX MATCH "^[^-]*" machine "${machine}")
    if(machine STREQUAL "amd64")
        set(machine x86_64)
    elseif(machine STREQUAL "arm64")
        set(machine aarch64)
    elseif(machine MATCHES "^arm(v[5-8][a-z]*|hf)?$")
        set(machine arm)
    endif()
    set(${result} "${machine}" PARENT_SCOPE)
endfunction()

# What the compiler makes code for, as far as CMake knows: a cross compiler in CC alone, without a toolchain file,
# leaves CMAKE_SYSTEM_PROCESSOR at the machine that builds.
function(_memtrace_machine_of_project result)
    set(name "${CMAKE_LIBRARY_ARCHITECTURE}")
    if(NOT name)
        set(name "${CMAKE_SYSTEM_PROCESSOR}")
    endif()
    _memtrace_machine_of(machine "${name}")
    set(${result} "${machine}" PARENT_SCOPE)
endfunction()

# Sets `result` to the project's machine if that is another than `machine`, else to nothing. Toolchain files also name
# processors by their models (cortex-a53): a name that says nothing to us is taken to be right.
function(_memtrace_other_machine result machine)
    _memtrace_machine_of_project(project)
    set(other "")
    if(project MATCHES "^(x86_64|aarch64|i[3-6]86|arm|riscv|mips|ppc|powerpc|s390|loongarch|sparc)" AND NOT project
                                                                                                STREQUAL machine)
        set(other "${project}")
    endif()
    set(${result} "${other}" PARENT_SCOPE)
endfunction()

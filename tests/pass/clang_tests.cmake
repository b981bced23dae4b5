# SPDX-License-Identifier: MIT
# Tests of the Clang plugin, for each version that it is built for.
get_property(plugins GLOBAL PROPERTY MEMTRACE_PLUGINS)
list(FILTER plugins INCLUDE REGEX "^clang-")
foreach(plugin IN LISTS plugins)
    string(REPLACE "clang-" "" major ${plugin})
    set(arguments "${MEMTRACE_CLANG_${major}}" $<TARGET_FILE:memtrace_clang_${major}>)
    foreach(case levels frames unwind_tables exceptions coroutines openmp sanitizers profile lto
                 lto_linker placement options attribute interposed report refusal warnings)
        pass_test(clang_${major}.${case} clang_pass.py ${case} ${arguments})
    endforeach()
endforeach()

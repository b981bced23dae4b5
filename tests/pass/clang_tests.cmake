# SPDX-License-Identifier: MIT
# Tests of the Clang plugin, for each version that it is built for.
get_property(plugins GLOBAL PROPERTY MEMTRACE_PLUGINS)
list(FILTER plugins INCLUDE REGEX "^clang-")
foreach(plugin IN LISTS plugins)
    string(REPLACE "clang-" "" major ${plugin})
    set(arguments "${MEMTRACE_CLANG_${major}}" $<TARGET_FILE:memtrace_clang_${major}>)
    foreach(case levels frames debugging unwind_tables exceptions coroutines openmp sanitizers
                 profile lto lto_linker rust placement options attribute interposed report refusal
                 warnings)
        script_test(pass clang_${major}.${case} 900 clang_pass.py ${case} ${arguments})
    endforeach()
    # tests/programs/CMakeLists.txt has the cases; these are where frames are left in odd ways.
    foreach(case recursion qsort alloca variadic tail_calls inlined longjmp signal threads fibers)
        script_test(pass clang_${major}.backtraces.${case} 900 clang_backtraces.py stacks.c ${case}
                  ${arguments})
    endforeach()
    foreach(case classes exceptions rethrow throw_through_qsort many_throws thread_local coroutines)
        script_test(pass clang_${major}.backtraces.cxx_${case} 900 clang_backtraces.py stacks_cxx.cpp ${case}
                  ${arguments})
    endforeach()
endforeach()

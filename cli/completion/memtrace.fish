# SPDX-License-Identifier: MIT
# fish completion of the memtrace command.
function __memtrace_on
    test (count (commandline -opc)) -ge 2; and contains (commandline -opc)[2] $argv
end
complete -c memtrace -f -n __fish_use_subcommand -a run -d 'run a program under the profiler'
complete -c memtrace -f -n __fish_use_subcommand -a record -d 'run a program and record every event'
complete -c memtrace -f -n __fish_use_subcommand -a report -d 'show a profile or a running process'
complete -c memtrace -f -n __fish_use_subcommand -a diff -d 'what grew from one profile to another'
complete -c memtrace -f -n __fish_use_subcommand -a check -d 'whether a profile keeps its budgets'
complete -c memtrace -f -n __fish_use_subcommand -a query -d 'SQL over a profile or a recording'
complete -c memtrace -f -n __fish_use_subcommand -a export -d 'files for other tools'
complete -c memtrace -f -n __fish_use_subcommand -a import -d 'a recording of a file of heaptrack'
complete -c memtrace -f -n __fish_use_subcommand -a extract -d 'program files out of a recording'
complete -c memtrace -f -n __fish_use_subcommand -a info -d 'what is in a file'
complete -c memtrace -f -n __fish_use_subcommand -a repack -d 'write a recording anew'
complete -c memtrace -f -n __fish_use_subcommand -a strip -d 'leave short-lived blocks out of a recording'
complete -c memtrace -f -n __fish_use_subcommand -a anonymize -d 'hide the names in a recording'
complete -c memtrace -f -n __fish_use_subcommand -a merge -d 'make one recording of several'
complete -c memtrace -f -n __fish_use_subcommand -a list -d 'profiles of running and killed processes'
complete -c memtrace -f -n __fish_use_subcommand -a trace -d 'who allocated this address'
complete -c memtrace -f -n __fish_use_subcommand -a control -d 'count all, a sample or nothing'
complete -c memtrace -f -n __fish_use_subcommand -a symbolize -d 'name module+offset lines'
complete -c memtrace -f -n __fish_use_subcommand -a flags -d 'compiler and linker flags'
for option in top every churn stacks contexts limit signals
    complete -c memtrace -n '__memtrace_on run record' -l $option -x
end
complete -c memtrace -n '__memtrace_on run record' -l unwind -x -a 'auto patch verify fp libunwind'
complete -c memtrace -n '__memtrace_on run record' -l on-limit -x -a 'report dump abort'
complete -c memtrace -n '__memtrace_on run record' -l children -x -a 'all exec none'
for option in inject start-off follow-children keep-small
    complete -c memtrace -n '__memtrace_on run record' -l $option
end
for option in output log
    complete -c memtrace -n '__memtrace_on run record' -l $option -r
end
for option in summary no-summary
    complete -c memtrace -n '__memtrace_on run record' -l $option
end
for option in show-peak show-maximum show-leaked show-live show-allocated show-total show-cumulative show-allocations show-temporary show-threads \
        show-shutdown show-groups show-lifetimes show-sizes show-blocks show-fragmentation show-mappings \
        show-timeline show-marks show-processes
    complete -c memtrace -n '__memtrace_on report' -l $option
end
for option in top-down bottom-up flat paths full-names no-cache nodes all-frames json csv
    complete -c memtrace -n '__memtrace_on report' -l $option
end
for option in min-percent limit depth shutdown-at temporary-within show-caller-callee
    complete -c memtrace -n '__memtrace_on report' -l $option -x
end
complete -c memtrace -n '__memtrace_on report' -l blocks-by -x -a 'largest oldest first'
complete -c memtrace -n '__memtrace_on report diff check' -l suppressions -r
for option in no-builtin-suppressions no-embedded-suppressions
    complete -c memtrace -n '__memtrace_on report diff check' -l $option
end
complete -c memtrace -n '__memtrace_on report' -l format -x -a 'text markdown json csv'
complete -c memtrace -n '__memtrace_on report' -l by -x -a 'function line'
complete -c memtrace -n '__memtrace_on report' -l color -x -a 'auto always never'
for option in output debug-folders
    complete -c memtrace -n '__memtrace_on report' -l $option -r
end
for option in sample sizes modules cull-below duration rotate
    complete -c memtrace -n '__memtrace_on record' -l $option -x
end
complete -c memtrace -n '__memtrace_on record' -l embed -x -a 'symbols all none'
complete -c memtrace -n '__memtrace_on record' -l on-lag -x -a 'wait drop'
for option in precise free-stacks no-addresses profile
    complete -c memtrace -n '__memtrace_on record' -l $option
end
complete -c memtrace -n '__memtrace_on diff check' -l no-cache
complete -c memtrace -n '__memtrace_on check' -l format -x -a 'gcc github junit json'
for option in max-leaked max-live max-peak max-maximum max-allocated max-total max-cumulative max-allocations max-temporary \
        max-allocations-per-scope max-bytes-per-scope max-growth tolerance
    complete -c memtrace -n '__memtrace_on check' -l $option -x
end
for option in budgets baseline output debug-folders
    complete -c memtrace -n '__memtrace_on check' -l $option -r
end
complete -c memtrace -n '__memtrace_on diff' -l metric -x -a 'peak leaked allocated allocations temporary'
complete -c memtrace -n '__memtrace_on diff' -l by -x -a 'path function file module'
complete -c memtrace -n '__memtrace_on diff' -l color -x -a 'auto always never'
for option in line-tolerance limit min depth
    complete -c memtrace -n '__memtrace_on diff' -l $option -x
end
for option in all-frames full-names markdown json csv
    complete -c memtrace -n '__memtrace_on diff' -l $option
end
for option in output debug-folders
    complete -c memtrace -n '__memtrace_on diff' -l $option -r
end
complete -c memtrace -n '__memtrace_on query' -l format -x -a 'table markdown csv tsv json'
complete -c memtrace -n '__memtrace_on query' -l header -x -a 'on off'
for option in schema full-names no-cache
    complete -c memtrace -n '__memtrace_on query' -l $option
end
for option in script output debug-folders
    complete -c memtrace -n '__memtrace_on query' -l $option -r
end
complete -c memtrace -n '__memtrace_on export' -l format -x -a '(memtrace export --list | string match -r "[a-z0-9]+")'
complete -c memtrace -n '__memtrace_on export' -l cost -x -a 'peak leaked allocated allocations temporary'
complete -c memtrace -n '__memtrace_on export' -l by -x -a 'function line'
for option in full-names all-frames no-cache list
    complete -c memtrace -n '__memtrace_on export' -l $option
end
for option in output debug-folders
    complete -c memtrace -n '__memtrace_on export' -l $option -r
end
complete -c memtrace -n '__memtrace_on info' -l json
complete -c memtrace -n '__memtrace_on repack strip anonymize merge' -l output -r
complete -c memtrace -n '__memtrace_on repack strip anonymize merge' -l level -x
complete -c memtrace -n '__memtrace_on anonymize' -l key -r
complete -c memtrace -n '__memtrace_on anonymize' -l debug-folders -r
complete -c memtrace -n '__memtrace_on repack' -l no-addresses
complete -c memtrace -n '__memtrace_on repack' -l no-symbols
complete -c memtrace -n '__memtrace_on strip' -l below -x
complete -c memtrace -n '__memtrace_on import' -l output -r
complete -c memtrace -n '__memtrace_on extract' -l list
complete -c memtrace -n '__memtrace_on extract' -l output -r
complete -c memtrace -n '__memtrace_on list' -l json
complete -c memtrace -n '__memtrace_on control' -f -a 'exact sample off on'
for option in root debug
    complete -c memtrace -n '__memtrace_on symbolize' -l $option -r
end
complete -c memtrace -n '__memtrace_on flags' -l mode -x -a 'auto pass hooks frame-pointer'
complete -c memtrace -n '__memtrace_on flags' -l compiler -x -a '(__fish_complete_command)'
for option in cflags libs explain gdb cmake
    complete -c memtrace -n '__memtrace_on flags' -l $option
end
complete -c memtrace -n '__memtrace_on report' -l processes -x
complete -c memtrace -n '__memtrace_on report diff check query export' -l process -x
complete -c memtrace -n '__memtrace_on report diff check query export' -l all-processes
# Which part of a file.
for option in between function not-function file not-file module not-module path path-depth pool \
        group-allocations group-bytes group-live-blocks group-live-bytes size first-size last-size \
        chain-length chain-lifetime lifetime address allocated freed thread freed-by scope
    complete -c memtrace -n '__memtrace_on report diff check query export' -l $option -x
end
for option in from to at live-at
    complete -c memtrace -n '__memtrace_on report diff check query export' -l $option -x -a 'start end peak mark:'
end
complete -c memtrace -n '__memtrace_on report diff check query export' -l class -x -a 'heap mapping pool'
for option in leaked temporary freed-by-others
    complete -c memtrace -n '__memtrace_on report diff check query export' -l $option
end

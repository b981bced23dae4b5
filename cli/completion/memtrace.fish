# SPDX-License-Identifier: MIT
# fish completion of the memtrace command.
function __memtrace_on
    test (count (commandline -opc)) -ge 2; and test (commandline -opc)[2] = $argv[1]
end
complete -c memtrace -f -n __fish_use_subcommand -a run -d 'run a program under the profiler'
complete -c memtrace -f -n __fish_use_subcommand -a report -d 'show a profile or a running process'
complete -c memtrace -f -n __fish_use_subcommand -a list -d 'profiles of running and killed processes'
complete -c memtrace -f -n __fish_use_subcommand -a trace -d 'who allocated this address'
complete -c memtrace -f -n __fish_use_subcommand -a symbolize -d 'name module+offset lines'
complete -c memtrace -f -n __fish_use_subcommand -a flags -d 'compiler and linker flags'
for option in top every churn stacks
    complete -c memtrace -n '__memtrace_on run' -l $option -x
end
for option in output log
    complete -c memtrace -n '__memtrace_on run' -l $option -r
end
for option in show-maximum show-leaked show-cumulative show-allocations show-temporary flat bottom-up json csv
    complete -c memtrace -n '__memtrace_on report' -l $option
end
complete -c memtrace -n '__memtrace_on flags' -l mode -x -a 'auto hooks frame-pointer'
for option in cflags libs explain
    complete -c memtrace -n '__memtrace_on flags' -l $option
end

#compdef memtrace
# SPDX-License-Identifier: MIT
# zsh completion of the memtrace command.
_memtrace() {
    local -a commands
    commands=(
        'run:run a program under the profiler'
        'record:run a program and record every event'
        'report:show a profile or a running process'
        'diff:what grew from one profile to another'
        'check:whether a profile keeps its budgets'
        'query:SQL over a profile or a recording'
        'export:files for other tools'
        'import:a recording of a file of heaptrack'
        'extract:program files out of a recording'
        'info:what is in a file'
        'repack:write a recording anew'
        'strip:leave short-lived blocks out of a recording'
        'anonymize:hide the names in a recording'
        'merge:make one recording of several'
        'list:profiles of running and killed processes'
        'trace:who allocated this address'
        'control:count all, a sample or nothing in a running program'
        'symbolize:name module+offset lines'
        'flags:compiler and linker flags'
    )
    if ((CURRENT == 2)); then
        _describe command commands
        return
    fi
    local command=$words[2]
    shift words
    ((CURRENT--))
    local -a filters
    filters=(
        '--from[time]:time:(start end peak mark\:)' '--to[time]:time:(start end peak mark\:)'
        '--at[time]:time:(start end peak mark\:)' '--between[which]:marks'
        '*--function[of a frame]:regex' '*--not-function[of a frame]:regex' '*--file[of a frame]:regex'
        '*--not-file[of a frame]:regex' '*--module[of a frame]:regex' '*--not-module[of a frame]:regex'
        '--path[which]:hash' '--path-depth[which]:range' '*--class[of memory]:class:(heap mapping pool)'
        '--pool[which]:name' '--group-allocations[which]:range' '--group-bytes[which]:range'
        '--group-live-blocks[which]:range' '--group-live-bytes[which]:range' '--size[which]:range'
        '--first-size[which]:range' '--last-size[which]:range' '--chain-length[which]:range'
        '--chain-lifetime[which]:range' '--lifetime[which]:range' '--address[which]:range'
        '--allocated[which]:span' '--freed[which]:span' '--live-at[time]:time:(start end peak mark\:)'
        '*--thread[which]:thread' '*--freed-by[which]:thread' '--scope[which]:name' '--leaked'
        '--temporary' '--freed-by-others'
    )
    case $command in
    run | record)
        local -a own
        own=()
        [[ $command == run ]] || own=('--precise' '--free-stacks' '--no-addresses' \
            '--sample[mean distance]:size' '--sizes[of blocks]:range' '--modules[that allocate]:list' '--cull-below[left out]:time' '--duration[of recording]:time' \
            '--rotate[of a file]:size' '--embed[what]:files:(symbols all none)' \
            '--on-lag[of the disk]:what:(wait drop)' '--profile')
        _arguments $own '--output[where to]:pattern:_files' '--every[interval]:time' \
            '--churn[allocated plus freed]:size' '--top[paths shown]:count' \
            '--log[log file]:file:_files' '--summary' '--no-summary' \
            '--stacks[depth]:stacks:(none short full)' '--contexts[most paths kept]:count' \
            '--unwind[how stacks are walked]:mode:(auto patch verify fp libunwind)' \
            '--inject[follow other allocators, too]' '--limit[of memory]:size or percentage' \
            '--on-limit[what then]:what:(report dump abort)' '--start-off' \
            '--signals[that switch]:list' '--children[who is profiled]:who:(all exec none)' \
            '--follow-children' '--keep-small' \
            '*::program:_normal'
        ;;
    report)
        _arguments $filters '--show-peak' '--show-maximum' '--show-leaked' '--show-live' \
            '--show-allocated' '--show-total' '--show-cumulative' '--show-allocations' \
            '--show-shutdown' '--shutdown-at[from when on]:time' '--show-temporary' \
            '--temporary-within[lifetime]:duration' '--show-caller-callee[whose]:function' \
            '--show-groups' '--show-lifetimes' '--show-sizes' '--show-blocks' \
            '--blocks-by[order]:order:(largest oldest first)' '--show-fragmentation' \
            '--show-mappings' '--show-timeline' '--show-marks' \
            '--show-threads' '--show-processes' '--process[of a run]:PID or NAME' '--all-processes' \
            '--processes[lines of their tree]:count' '--top-down' '--bottom-up' '--flat' '--paths' \
            '--by[branches]:what:(function line)' '--full-names' '--no-cache' '--min-percent[threshold]:percent' \
            '--limit[rows]:count' '--depth[frames]:count' '--nodes' '--all-frames' \
            '--color[when]:when:(auto always never)' '--debug-folders[folders]:folders:_files -/' \
            '*--suppressions[leaks to leave out]:file:_files' '--no-builtin-suppressions' \
            '--no-embedded-suppressions' '--format[form]:form:(text markdown json csv)' '--json' '--csv' \
            '--output[file]:file:_files' '*:profile:_files -g "*.mt[pr]"'
        ;;
    check)
        _arguments $filters '--process[of a run]:PID or NAME' '--all-processes' \
            '*--suppressions[leaks to leave out]:file:_files' '--no-builtin-suppressions' \
            '--no-embedded-suppressions' '*--budgets[one a line]:file:_files' '--max-leaked[never freed]:size' \
            '--max-live[never freed]:size' '--max-peak[held at most]:size' '--max-maximum[held at most]:size' \
            '--max-allocated[ever]:size' '--max-total[ever]:size' '--max-cumulative[ever]:size' \
            '--max-allocations[how many]:count' '--max-temporary[how many]:count' \
            '*--max-allocations-per-scope[in any one]:name=count' \
            '*--max-bytes-per-scope[in any one]:name=size' '*--max-growth[over the baseline]:limit' \
            '--baseline[of growth]:profile:_files' '--tolerance[of limits]:percent' \
            '--format[of messages]:format:(gcc github junit json)' '--no-cache' \
            '--debug-folders[folders]:folders:_files -/' '--output[file]:file:_files' \
            '*:profile:_files -g "*.mt[pr]"'
        ;;
    diff)
        _arguments $filters '--process[of a run]:PID or NAME' '--all-processes' \
            '*--suppressions[leaks to leave out]:file:_files' '--no-builtin-suppressions' \
            '--no-embedded-suppressions' \
            '*--metric[compared]:metric:(peak leaked allocated allocations temporary)' \
            '--by[rows]:what:(path function file module)' '--line-tolerance[of moved lines]:lines' \
            '--limit[rows]:count' '--min[change]:size' '--depth[frames]:count' '--all-frames' '--full-names' \
            '--color[when]:when:(auto always never)' '--debug-folders[folders]:folders:_files -/' \
            '--markdown' '--json' '--csv' '--output[file]:file:_files' '--no-cache' \
            '*:profile:_files -g "*.mt[pr]"'
        ;;
    query)
        _arguments $filters '--process[of a run]:PID or NAME' '--all-processes' '--schema' '--script[statements]:file:_files' \
            '--format[of answers]:format:(table markdown csv tsv json)' '--header[names of columns]:when:(on off)' \
            '--full-names' '--no-cache' '--debug-folders[folders]:folders:_files -/' '--output[file]:file:_files' \
            '1:file:_files -g "*.mt[pr]"' '2:SQL'
        ;;
    export)
        _arguments $filters '--process[of a run]:PID or NAME' '--all-processes' \
            '--format[of the file]:format:(${(f)"$(memtrace export --list | cut -d" " -f3)"})' \
            '--output[file]:file:_files' '--cost[counted]:cost:(peak leaked allocated allocations temporary)' \
            '--by[branches]:what:(function line)' '--full-names' '--all-frames' \
            '--debug-folders[folders]:folders:_files -/' '--no-cache' '--list' '*:file:_files -g "*.mt[pr]"'
        ;;
    info) _arguments '--json' '*:file:_files -g "*.mt[pr]"' ;;
    repack) _arguments '--output[where to]:file:_files' '--level[1 to 19]:level:' '--no-addresses' '--no-symbols' '1:recording:_files -g "*.mtr"' ;;
    strip) _arguments '--output[where to]:file:_files' '--below[leave out what lived shorter]:duration:' '--level[1 to 19]:level:' '1:recording:_files -g "*.mtr"' ;;
    anonymize) _arguments '--output[where to]:file:_files' '--key[what makes the names]:file:_files' '--debug-folders[where debug files lie]:folders:_files -/' '--level[1 to 19]:level:' '1:recording:_files -g "*.mtr"' ;;
    merge) _arguments '--output[where to]:file:_files' '--level[1 to 19]:level:' '*:file:_files -g "*.mt[rp]"' ;;
    import) _arguments '--output[where to]:file:_files' '1:data file of heaptrack:_files' ;;
    extract) _arguments '--list' '--output[where to]:folder:_files -/' '1:recording:_files -g "*.mtr"' ;;
    list) _arguments '--json' ;;
    symbolize)
        _arguments '--root[modules]:folder:_files -/' '--debug[debug files]:folders:_files -/' \
            '*:file:_files'
        ;;
    trace) _arguments '1:process:_pids' '2:address' ;;
    control) _arguments '1:process:_pids' '2:mode:(exact sample off on)' '3:size' ;;
    flags)
        _arguments '--mode[mode]:mode:(auto pass hooks frame-pointer)' \
            '--compiler[for which]:command:_command_names -e' '--cflags' '--libs' '--explain' '--gdb' '--cmake'
        ;;
    esac
}
_memtrace "$@"

#compdef memtrace
# SPDX-License-Identifier: MIT
# zsh completion of the memtrace command; made by `memtrace completion zsh`
_memtrace() {
    local -a commands filters
    commands=(
        'run:run a program and profile it'
        'record:run a program and record every event'
        'report:show a profile, or that of a running program'
        'diff:show what grew from one profile to another'
        'query:answer SQL over a profile or a recording'
        'serve:show profiles, recordings and running programs in the browser'
        'top:watch a running program on the terminal'
        'check:check whether a profile keeps its budgets'
        'export:write files for other tools\: flame graphs, JSON, CSV, ...'
        'replay:repeat a recording'\''s allocations with other allocators'
        'import:make a recording from a heaptrack data file'
        'extract:get the program files out of a recording'
        'repack:write a recording anew\: joined, packed, without damage; or a profile'
        'strip:leave short-lived blocks out of a recording'
        'anonymize:hide the names in a recording'
        'merge:make one recording or profile of several'
        'info:show what is in a profile or recording'
        'list:list profiles of running and of killed programs'
        'allocators:list functions of a program that can be followed'
        'trace:say which code allocated the block at an address'
        'send:send a recording to another machine, also while it grows'
        'gather:receive recordings of other machines'
        'control:count all, a sample or nothing in a running program; record it from now on'
        'attach:profile a program that runs already'
        'detach:leave a program that was attached to, and write its profile'
        'symbolize:turn module+offset lines into function and line'
        'flags:print compiler and linker flags for other build systems'
        'completion:print what makes a shell complete the command'\''s options'
    )
    filters=( \
            '*--from[what happened from T on]:T:(start end peak mark\:)' \
            '*--to[what happened before T]:T:(start end peak mark\:)' \
            '*--at[the same as --to T]:T:(start end peak mark\:)' \
            '*--between[from one mark of the program to another]:M1,M2:' \
            '*--function[call paths with such a function]:REGEX:' \
            '*--not-function[call paths without one]:REGEX:' \
            '*--file[call paths with a frame in such a source file]:REGEX:' \
            '*--not-file[call paths without one]:REGEX:' \
            '*--module[call paths with a frame in such a program file or library]:REGEX:' \
            '*--not-module[call paths without one]:REGEX:' \
            '*--path[that call path]:HASH:' \
            '*--path-depth[call paths with that many frames]:RANGE:' \
            '*--class[memory of that class]:heap|mapping|pool:(heap mapping pool)' \
            '*--pool[that pool]:NAME:' \
            '*--group-allocations[call paths that allocated that often in the whole run]:RANGE:' \
            '*--group-bytes[... that many bytes]:RANGE:' \
            '*--group-live-blocks[... that have that many live blocks at the end, or that share]:RANGE:' \
            '*--group-live-bytes[... that many live bytes]:RANGE:' \
            '*--group-interval[... that long from their first allocation to the last one]:RANGE:' \
            '*--group-maximum-at[... that first held their own maximum in that time ]:T..T:(start end peak mark\:)' \
            '*--size[with that many bytes]:RANGE:' \
            '*--first-size[of a chain of reallocations]:RANGE:' \
            '*--last-size[... its last size]:RANGE:' \
            '*--chain-length[... how many blocks it had]:RANGE:' \
            '*--chain-position[... the block'\''s place in it, from 1 on]:RANGE:' \
            '*--chain-leaked[... whose last block was never freed]' \
            '*--chain-lifetime[... how long it lived]:RANGE:' \
            '*--lifetime[that lived that long]:RANGE:' \
            '*--allocated[that began in that time]:T..T:(start end peak mark\:)' \
            '*--freed[that ended in that time]:T..T:(start end peak mark\:)' \
            '*--live-at[that lived at that moment, at both]:T\[,T\]:(start end peak mark\:)' \
            '*--address[that lay there]:RANGE:' \
            '*--mapping[that lay in this mapping of the process, by its number in the report of mappings]:NUMBER:' \
            '*--mapping-permissions[that lay in mappings with these permissions]:PATTERN:_files' \
            '*--mapping-peak-rss[that lay in mappings of which at most that many bytes were resident]:RANGE:' \
            '*--thread[that this thread allocated]:ID|NAME:' \
            '*--freed-by[that this thread freed]:ID|NAME:' \
            '*--freed-path[that this call path freed]:HASH:' \
            '*--mapped[that have a mapping of their own]' \
            '*--arena[of malloc'\''s main arena, or of another one]:main|other:(main other)' \
            '*--scope[that were allocated in this scope of the program]:NAME:' \
            '*--leaked[that were never freed]' \
            '*--temporary[that were freed before their thread'\''s next allocation]' \
            '*--freed-by-others[that another thread freed]' \
            '*--where[for which this holds, of the columns of the table allocations]:SQL:')
    if ((CURRENT == 2)); then
        _describe command commands
        return
    fi
    local command=$words[2]
    shift words
    ((CURRENT--))
    case $command in
    run)
        _arguments \
            '*--output[where the profile goes]:PATTERN:_files' \
            '*-o[where the profile goes]:PATTERN:_files' \
            '*--sample[count one allocation in SIZE bytes on average, chosen at random]:SIZE:' \
            '*--every[print the largest call paths every TIME]:TIME:' \
            '*-e[print the largest call paths every TIME]:TIME:' \
            '*--churn[... and/or every SIZE bytes allocated plus freed]:SIZE:' \
            '*-c[... and/or every SIZE bytes allocated plus freed]:SIZE:' \
            '*--top[how many call paths]:N:' \
            '*-n[how many call paths]:N:' \
            '*--mode[who may read what is written, as for chmod ]:MODE:' \
            '*--log[print them to FILE, not to stderr]:FILE:_files' \
            '*-l[print them to FILE, not to stderr]:FILE:_files' \
            '*--summary[a summary at the end ]' \
            '*--no-summary[no summary]' \
            '*--stacks[none]:none|short|full:(none short full)' \
            '*--contexts[keep at most N call paths apart]:N:' \
            '*--unwind[how prebuilt code is walked ]:auto|patch|verify|fp|libunwind:(auto patch verify fp libunwind)' \
            '*--inject[also follow libraries that bind an allocator of their own]' \
            '*--serve[show it in the browser while it runs, and until Ctrl-C ]' \
            '*--alloc[also follow these functions of the program, which allocate]:SPECIFICATION:' \
            '*--limit[watch the program'\''s memory]:HOW-MUCH:' \
            '*--on-limit[report ]:report|dump|abort:(report dump abort)' \
            '*--start-off[count nothing until the program or a signal switches counting on]' \
            '*--signals[the signals that do so]:LIST:' \
            '*--toggle-signal[the same as --signals SIGNAL]:SIGNAL:' \
            '*--children[all ]:all|exec|none:(all exec none)' \
            '*--follow-children[the same as --children all]' \
            '*--library[the libmemtrace.so to load ]:FILE:_files' \
            '*--keep-small[write files also for processes that allocate hardly anything]' \
            '*--help[show this]' \
            '*-h[show this]' \
            '*::program:_normal'
        ;;
    record)
        _arguments \
            '*--output[where the recording goes]:PATTERN:_files' \
            '*-o[where the recording goes]:PATTERN:_files' \
            '*--precise[the exact time of each event, instead of one every few milliseconds]' \
            '*--free-stacks[record the call path of frees, too]' \
            '*--no-addresses[a smaller file, without the addresses of blocks]' \
            '*--no-slices[leave out the sums that make its first report quick]' \
            '*--sample[count one allocation in SIZE bytes on average, chosen at random]:SIZE:' \
            '*--sizes[only blocks of such sizes]:MIN-MAX:' \
            '*--modules[only what these modules allocate]:LIST:' \
            '*--cull-below[leave out what is freed sooner]:TIME:' \
            '*--cull-pending[at most COUNT blocks wait for that]:COUNT:' \
            '*--duration[stop recording after TIME]:TIME:' \
            '*--rotate[begin a new file whenever one has reached SIZE]:SIZE:' \
            '*--embed[what of the program'\''s files goes into the recording ]:symbols|all|none:(symbols all none)' \
            '*--on-lag[where disk or network are too slow]:wait|drop|thin:(wait drop thin)' \
            '*--profile[write a profile, too]' \
            '*--to[also send it, while it grows, to where `memtrace gather` listens]:HOST\[\:PORT\]|auto:' \
            '*--listen[or let `memtrace gather HOST` fetch it from here while it grows]:ADDRESS\[\:PORT\]:' \
            '*--discoverable[with --listen]' \
            '*--discovery-port[the UDP port of --discoverable ]:PORT:' \
            '*--token[a secret that both sides know]:FILE:_files' \
            '*--queue[keep no copy here]:SIZE:' \
            '*--allow-control[with --to or --listen]' \
            '*--linger[how long sending the rest may take after the end ]:TIME:' \
            '*--every[print the largest call paths every TIME]:TIME:' \
            '*-e[print the largest call paths every TIME]:TIME:' \
            '*--churn[... and/or every SIZE bytes allocated plus freed]:SIZE:' \
            '*-c[... and/or every SIZE bytes allocated plus freed]:SIZE:' \
            '*--top[how many call paths]:N:' \
            '*-n[how many call paths]:N:' \
            '*--mode[who may read what is written, as for chmod ]:MODE:' \
            '*--log[print them to FILE, not to stderr]:FILE:_files' \
            '*-l[print them to FILE, not to stderr]:FILE:_files' \
            '*--summary[a summary at the end ]' \
            '*--no-summary[no summary]' \
            '*--stacks[none]:none|short|full:(none short full)' \
            '*--contexts[keep at most N call paths apart]:N:' \
            '*--unwind[how prebuilt code is walked ]:auto|patch|verify|fp|libunwind:(auto patch verify fp libunwind)' \
            '*--inject[also follow libraries that bind an allocator of their own]' \
            '*--serve[show it in the browser while it runs, and until Ctrl-C ]' \
            '*--alloc[also follow these functions of the program, which allocate]:SPECIFICATION:' \
            '*--limit[watch the program'\''s memory]:HOW-MUCH:' \
            '*--on-limit[report ]:report|dump|abort:(report dump abort)' \
            '*--start-off[count nothing until the program or a signal switches counting on]' \
            '*--signals[the signals that do so]:LIST:' \
            '*--toggle-signal[the same as --signals SIGNAL]:SIGNAL:' \
            '*--children[all ]:all|exec|none:(all exec none)' \
            '*--follow-children[the same as --children all]' \
            '*--library[the libmemtrace.so to load ]:FILE:_files' \
            '*--keep-small[write files also for processes that allocate hardly anything]' \
            '*--help[show this]' \
            '*-h[show this]' \
            '*::program:_normal'
        ;;
    report)
        _arguments \
            '*--show-peak[what was held when the program held most]' \
            '*--show-maximum[what was held when the program held most]' \
            '*--show-leaked[what was never freed]' \
            '*--show-live[what was never freed]' \
            '*--show-shutdown[what was never freed, or only after the last allocation \[R\]]' \
            '*--shutdown-at[the same, but freed only after T \[R\]]:T:(start end peak mark\:)' \
            '*--show-allocated[all that was ever allocated, by bytes]' \
            '*--show-total[all that was ever allocated, by bytes]' \
            '*--show-cumulative[all that was ever allocated, by bytes]' \
            '*--show-allocations[the same by number of allocations]' \
            '*--show-temporary[allocations freed before their thread'\''s next allocation]' \
            '*--temporary-within[allocations freed within 10ms, 1s, ... \[R\]]:D:' \
            '*--show-caller-callee[who calls a function and what it calls, by the metrics above]:FUNCTION|/REGEX/:' \
            '*--show-findings[what looks wrong, the gravest first, and what shows more of it]' \
            '*--show-groups[a table of call paths]' \
            '*--show-lifetimes[how long blocks lived]' \
            '*--show-sizes[how large blocks are]' \
            '*--show-blocks[single blocks]' \
            '*--blocks-by[which of them come first \[R\]]:largest|oldest|first:(largest oldest first)' \
            '*--show-fragmentation[slack, holes, pages and who keeps them, an address map \[R\]]' \
            '*--show-mappings[mappings of the process, and who called mmap]' \
            '*--show-pools[a table of pools]' \
            '*--show-timeline[memory over time as a chart]' \
            '*--timeline-series[the same of these, separated by commas]:SERIES:' \
            '*--show-marks[what the program marked \[R\]]' \
            '*--show-threads[a table of threads, and who freed whose blocks]' \
            '*--show-processes[a table of the processes of a run, or of a profile'\''s forked children]' \
            '*--top-down[trees from main to the allocating function ]' \
            '*--bottom-up[trees from the allocating function to main]' \
            '*--flat[a table by function instead of trees]' \
            '*--paths[the whole call paths instead of trees]' \
            '*--by[what one branch of a tree is ]:function|line:(function line)' \
            '*--full-names[C++ names with parameters, template arguments, return types]' \
            '*--min-percent[leave out what is below P percent ]:P:' \
            '*--limit[at most N branches of one function, N rows, N paths ]:N:' \
            '*-n[at most N branches of one function, N rows, N paths ]:N:' \
            '*--depth[at most N frames ]:N:' \
            '*-d[at most N frames ]:N:' \
            '*--nodes[in JSON of everything]' \
            '*--all-frames[show what the system runs before main, each level of a recursion, and what library functions ]' \
            '*--color[colours]:auto|always|never:(auto always never)' \
            '*--processes[of a run]:N:' \
            '*--process[of a run of several processes ]:PID|NAME\[\:IMAGE\]:' \
            '*--all-processes[the sum of all by call path, small forked children included]' \
            '*--debug-folders[where separate debug files are, colon-separated ]:FOLDERS:_files -/' \
            '*--no-debuginfod[ask no server for debug information, whatever DEBUGINFOD_URLS says]' \
            '*--root[look for the program'\''s files below these first, by their paths or just their names, colon-separated]:FOLDERS:_files -/' \
            '*--memory-limit[use at most this much memory]:SIZE:' \
            '*--no-cache[keep nothing on disk for the next command]' \
            '*--format[json and csv are for programs]:text|markdown|csv|json:(text markdown csv json)' \
            '*-f[json and csv are for programs]:text|markdown|csv|json:(text markdown csv json)' \
            '*--json[the same as --format json]' \
            '*--csv[the same as --format csv]' \
            '*--output[write to FILE]:FILE:_files' \
            '*-o[write to FILE]:FILE:_files' \
            '*--suppressions[those that LeakSanitizer'\''s suppression file names ]:FILE:_files' \
            '*--no-builtin-suppressions[report what common libraries keep on purpose, too]' \
            '*--no-embedded-suppressions[ignore __lsan_default_suppressions]' \
            '*--help[show this]' \
            '*-h[show this]' \
            $filters \
            '1:PROFILE:_files -g "*.mt[pr](-.)"' \
            '*:PROFILE:_files -g "*.mt[pr](-.)"'
        ;;
    diff)
        _arguments \
            '*--metric[what is compared]:peak|leaked|allocated|allocations|temporary:(peak leaked allocated allocations temporary)' \
            '*-m[what is compared]:peak|leaked|allocated|allocations|temporary:(peak leaked allocated allocations temporary)' \
            '*--by[rows are call paths ]:path|function|file|module:(path function file module)' \
            '*--line-tolerance[in another build, lines of one function are the same at most N lines apart ]:N:' \
            '*--limit[at most N rows of what grew, and of what shrank ]:N:' \
            '*-n[at most N rows of what grew, and of what shrank ]:N:' \
            '*--min[sum up what changed by less, such as 64K]:SIZE:' \
            '*--depth[at most N frames of a call path ]:N:' \
            '*-d[at most N frames of a call path ]:N:' \
            '*--all-frames[show what libraries of the language call, too]' \
            '*--full-names[C++ names with parameters, template arguments, return types]' \
            '*--color[colours]:auto|always|never:(auto always never)' \
            '*--output[write to FILE]:FILE:_files' \
            '*-o[write to FILE]:FILE:_files' \
            '*--process[of a run of several processes ]:PID|NAME\[\:IMAGE\]:' \
            '*--all-processes[the sum of all by call path, small forked children included]' \
            '*--debug-folders[where separate debug files are, colon-separated ]:FOLDERS:_files -/' \
            '*--no-debuginfod[ask no server for debug information, whatever DEBUGINFOD_URLS says]' \
            '*--root[look for the program'\''s files below these first, by their paths or just their names, colon-separated]:FOLDERS:_files -/' \
            '*--memory-limit[use at most this much memory]:SIZE:' \
            '*--no-cache[keep nothing on disk for the next command]' \
            '*--markdown[tables for a comment on a change]' \
            '*--json[one object with every row and metric]' \
            '*--csv[one line for each row]' \
            '*--suppressions[those that LeakSanitizer'\''s suppression file names ]:FILE:_files' \
            '*--no-builtin-suppressions[report what common libraries keep on purpose, too]' \
            '*--no-embedded-suppressions[ignore __lsan_default_suppressions]' \
            '*--base-process[this process of its run]:PID|NAME\[\:IMAGE\]:' \
            '*--base-all-processes[the sum of all processes of its run]' \
            '*--base-from[any of the options that say which part of it]:T:(start end peak mark\:)' \
            '*--base-to[any of the options that say which part of it]:T:(start end peak mark\:)' \
            '*--base-at[any of the options that say which part of it]:T:(start end peak mark\:)' \
            '*--base-between[any of the options that say which part of it]:M1,M2:' \
            '*--base-function[any of the options that say which part of it]:REGEX:' \
            '*--base-not-function[any of the options that say which part of it]:REGEX:' \
            '*--base-file[any of the options that say which part of it]:REGEX:' \
            '*--base-not-file[any of the options that say which part of it]:REGEX:' \
            '*--base-module[any of the options that say which part of it]:REGEX:' \
            '*--base-not-module[any of the options that say which part of it]:REGEX:' \
            '*--base-path[any of the options that say which part of it]:HASH:' \
            '*--base-path-depth[any of the options that say which part of it]:RANGE:' \
            '*--base-class[any of the options that say which part of it]:heap|mapping|pool:(heap mapping pool)' \
            '*--base-pool[any of the options that say which part of it]:NAME:' \
            '*--base-group-allocations[any of the options that say which part of it]:RANGE:' \
            '*--base-group-bytes[any of the options that say which part of it]:RANGE:' \
            '*--base-group-live-blocks[any of the options that say which part of it]:RANGE:' \
            '*--base-group-live-bytes[any of the options that say which part of it]:RANGE:' \
            '*--base-group-interval[any of the options that say which part of it]:RANGE:' \
            '*--base-group-maximum-at[any of the options that say which part of it]:T..T:(start end peak mark\:)' \
            '*--base-size[any of the options that say which part of it]:RANGE:' \
            '*--base-first-size[any of the options that say which part of it]:RANGE:' \
            '*--base-last-size[any of the options that say which part of it]:RANGE:' \
            '*--base-chain-length[any of the options that say which part of it]:RANGE:' \
            '*--base-chain-position[any of the options that say which part of it]:RANGE:' \
            '*--base-chain-leaked[any of the options that say which part of it]' \
            '*--base-chain-lifetime[any of the options that say which part of it]:RANGE:' \
            '*--base-lifetime[any of the options that say which part of it]:RANGE:' \
            '*--base-allocated[any of the options that say which part of it]:T..T:(start end peak mark\:)' \
            '*--base-freed[any of the options that say which part of it]:T..T:(start end peak mark\:)' \
            '*--base-live-at[any of the options that say which part of it]:T\[,T\]:(start end peak mark\:)' \
            '*--base-address[any of the options that say which part of it]:RANGE:' \
            '*--base-mapping[any of the options that say which part of it]:NUMBER:' \
            '*--base-mapping-permissions[any of the options that say which part of it]:PATTERN:_files' \
            '*--base-mapping-peak-rss[any of the options that say which part of it]:RANGE:' \
            '*--base-thread[any of the options that say which part of it]:ID|NAME:' \
            '*--base-freed-by[any of the options that say which part of it]:ID|NAME:' \
            '*--base-freed-path[any of the options that say which part of it]:HASH:' \
            '*--base-mapped[any of the options that say which part of it]' \
            '*--base-arena[any of the options that say which part of it]:main|other:(main other)' \
            '*--base-scope[any of the options that say which part of it]:NAME:' \
            '*--base-leaked[any of the options that say which part of it]' \
            '*--base-temporary[any of the options that say which part of it]' \
            '*--base-freed-by-others[any of the options that say which part of it]' \
            '*--base-where[any of the options that say which part of it]:SQL:' \
            '*--help[show this]' \
            '*-h[show this]' \
            $filters \
            '1:PROFILE:_files -g "*.mt[pr](-.)"' \
            '*:PROFILE:_files -g "*.mt[pr](-.)"'
        ;;
    query)
        _arguments \
            '*--schema[show the tables and their columns]' \
            '*--script[run the statements of a file]:FILE:_files' \
            '*--format[default]:table|markdown|csv|tsv|json:(table markdown csv tsv json)' \
            '*-f[default]:table|markdown|csv|tsv|json:(table markdown csv tsv json)' \
            '*--header[with or without the names of columns]:on|off:(on off)' \
            '*--full-names[C++ names with parameters, template arguments, return types]' \
            '*--output[write to FILE]:FILE:_files' \
            '*-o[write to FILE]:FILE:_files' \
            '*--process[of a run of several processes ]:PID|NAME\[\:IMAGE\]:' \
            '*--all-processes[the sum of all by call path, small forked children included]' \
            '*--debug-folders[where separate debug files are, colon-separated ]:FOLDERS:_files -/' \
            '*--no-debuginfod[ask no server for debug information, whatever DEBUGINFOD_URLS says]' \
            '*--root[look for the program'\''s files below these first, by their paths or just their names, colon-separated]:FOLDERS:_files -/' \
            '*--memory-limit[use at most this much memory]:SIZE:' \
            '*--no-cache[keep nothing on disk for the next command]' \
            '*--help[show this]' \
            '*-h[show this]' \
            $filters \
            '1:PROFILE:_files -g "*.mt[pr](-.)"' \
            '*:PROFILE:_files -g "*.mt[pr](-.)"'
        ;;
    serve)
        _arguments \
            '*--port[listen there ]:PORT:' \
            '*-p[listen there ]:PORT:' \
            '*--no-open[do not open the browser]' \
            '*--view[open this view]:QUERY:' \
            '*--source-map[source files below OLD, as the program'\''s debug information names them, are below NEW here]:OLD=NEW:' \
            '*--sources[show source files below this folder, beside those that belong to the program]:FOLDER:_files -/' \
            '*--cache-memory[how much memory the answers that are kept may take ]:SIZE:' \
            '*--debug-folders[where separate debug files are, colon-separated ]:FOLDERS:_files -/' \
            '*--no-debuginfod[ask no server for debug information, whatever DEBUGINFOD_URLS says]' \
            '*--root[look for the program'\''s files below these first, by their paths or just their names, colon-separated]:FOLDERS:_files -/' \
            '*--memory-limit[use at most this much memory]:SIZE:' \
            '*--listen[listen at this address instead of this machine'\''s own]:ADDRESS:' \
            '*--allow-remote[let others on the network ask, unencrypted]' \
            '*--help[show this]' \
            '*-h[show this]' \
            '1:PROFILE:_files -g "*.mt[pr](-.)"' \
            '*:PROFILE:_files -g "*.mt[pr](-.)"'
        ;;
    top)
        _arguments \
            '*--interval[between two looks ]:TIME:' \
            '*-i[between two looks ]:TIME:' \
            '*--sort[what comes first ]:live|delta|total|rate|temporary|blocks|maximum:(live delta total rate temporary blocks maximum)' \
            '*-s[what comes first ]:live|delta|total|rate|temporary|blocks|maximum:(live delta total rate temporary blocks maximum)' \
            '*--reverse[what has least comes first]' \
            '*-r[what has least comes first]' \
            '*--function[only call paths through a function that matches]:REGEX:' \
            '*-f[only call paths through a function that matches]:REGEX:' \
            '*--paths[call paths, not functions]' \
            '*-p[call paths, not functions]' \
            '*--once[print one screen as text, after two looks]' \
            '*-1[print one screen as text, after two looks]' \
            '*--limit[with --once]:N:' \
            '*-n[with --once]:N:' \
            '*--debug-folders[where separate debug files are, colon-separated ]:FOLDERS:_files -/' \
            '*--no-debuginfod[ask no server for debug information, whatever DEBUGINFOD_URLS says]' \
            '*--root[look for the program'\''s files below these first, by their paths or just their names, colon-separated]:FOLDERS:_files -/' \
            '*--memory-limit[use at most this much memory]:SIZE:' \
            '*--color[colours ]:auto|always|never:(auto always never)' \
            '*--help[show this]' \
            '*-h[show this]' \
            '1:PROFILE:_files -g "*.mt[pr](-.)"' \
            '*:PROFILE:_files -g "*.mt[pr](-.)"'
        ;;
    check)
        _arguments \
            '*--budgets[budgets, one a line, with # comments]:FILE:_files' \
            '*-b[budgets, one a line, with # comments]:FILE:_files' \
            '*--max-leaked[never freed]:SIZE:' \
            '*--max-live[never freed]:SIZE:' \
            '*--max-peak[held when the program held most]:SIZE:' \
            '*--max-maximum[held when the program held most]:SIZE:' \
            '*--max-allocated[ever allocated]:SIZE:' \
            '*--max-total[ever allocated]:SIZE:' \
            '*--max-cumulative[ever allocated]:SIZE:' \
            '*--max-allocations[how many]:N:' \
            '*--max-temporary[freed before their thread'\''s next allocation]:N:' \
            '*--max-allocations-per-scope[in any one scope]:NAME=N:' \
            '*--max-bytes-per-scope[allocated in any one scope]:NAME=SIZE:' \
            '*--max-growth[of the peak over --baseline]:LIMIT:' \
            '*--baseline[what --max-growth compares with]:FILE:_files' \
            '*--tolerance[limits may be exceeded by P percent]:P:' \
            '*--format[lines as compilers print them ]:gcc|github|junit|json:(gcc github junit json)' \
            '*-f[lines as compilers print them ]:gcc|github|junit|json:(gcc github junit json)' \
            '*--output[write to FILE]:FILE:_files' \
            '*-o[write to FILE]:FILE:_files' \
            '*--process[of a run of several processes ]:PID|NAME\[\:IMAGE\]:' \
            '*--all-processes[the sum of all by call path, small forked children included]' \
            '*--debug-folders[where separate debug files are, colon-separated ]:FOLDERS:_files -/' \
            '*--no-debuginfod[ask no server for debug information, whatever DEBUGINFOD_URLS says]' \
            '*--root[look for the program'\''s files below these first, by their paths or just their names, colon-separated]:FOLDERS:_files -/' \
            '*--memory-limit[use at most this much memory]:SIZE:' \
            '*--no-cache[keep nothing on disk for the next command]' \
            '*--suppressions[those that LeakSanitizer'\''s suppression file names ]:FILE:_files' \
            '*--no-builtin-suppressions[report what common libraries keep on purpose, too]' \
            '*--no-embedded-suppressions[ignore __lsan_default_suppressions]' \
            '*--help[show this]' \
            '*-h[show this]' \
            $filters \
            '1:PROFILE:_files -g "*.mt[pr](-.)"' \
            '*:PROFILE:_files -g "*.mt[pr](-.)"'
        ;;
    export)
        _arguments \
            '*--format[one of those below]:FORMAT:($(memtrace export --list 2>/dev/null | awk "{print \$1}"))' \
            '*-f[one of those below]:FORMAT:($(memtrace export --list 2>/dev/null | awk "{print \$1}"))' \
            '*--output[write to FILE]:FILE:_files' \
            '*-o[write to FILE]:FILE:_files' \
            '*--cost[what is counted, where a format holds only one cost, or shows one first ]:peak|leaked|allocated|allocations|temporary:(peak leaked allocated allocations temporary)' \
            '*-c[what is counted, where a format holds only one cost, or shows one first ]:peak|leaked|allocated|allocations|temporary:(peak leaked allocated allocations temporary)' \
            '*--by[what is told apart where call paths are merged ]:function|line:(function line)' \
            '*--depth[at most N frames of each call path, where a format writes whole paths ]:N:' \
            '*-d[at most N frames of each call path, where a format writes whole paths ]:N:' \
            '*--full-names[C++ names with parameters, template arguments, return types]' \
            '*--all-frames[also what the system runs before main and each level of a recursion]' \
            '*--list[only list the names of the formats]' \
            '*-l[only list the names of the formats]' \
            '*--process[of a run of several processes ]:PID|NAME\[\:IMAGE\]:' \
            '*--all-processes[the sum of all by call path, small forked children included]' \
            '*--debug-folders[where separate debug files are, colon-separated ]:FOLDERS:_files -/' \
            '*--no-debuginfod[ask no server for debug information, whatever DEBUGINFOD_URLS says]' \
            '*--root[look for the program'\''s files below these first, by their paths or just their names, colon-separated]:FOLDERS:_files -/' \
            '*--memory-limit[use at most this much memory]:SIZE:' \
            '*--no-cache[keep nothing on disk for the next command]' \
            '*--help[show this]' \
            '*-h[show this]' \
            $filters \
            '1:PROFILE:_files -g "*.mt[pr](-.)"' \
            '*:PROFILE:_files -g "*.mt[pr](-.)"'
        ;;
    replay)
        _arguments \
            '*--allocator[also with the malloc of this library, such as libjemalloc.so.2]:FILE:_files' \
            '*-a[also with the malloc of this library, such as libjemalloc.so.2]:FILE:_files' \
            '*--threads[use as many threads as the program had, not one]' \
            '*--touch[write to each page of each block, as most programs do]' \
            '*--times[repeat it N times and show the fastest ]:N:' \
            '*-n[repeat it N times and show the fastest ]:N:' \
            '*--help[show this]' \
            '*-h[show this]' \
            '1:FILE:_files' \
            '*:FILE:_files'
        ;;
    import)
        _arguments \
            '*--output[default]:FILE:_files' \
            '*-o[default]:FILE:_files' \
            '*--memory-limit[use at most this much memory]:SIZE:' \
            '*--help[show this]' \
            '*-h[show this]' \
            '1:FILE:_files' \
            '*:FILE:_files'
        ;;
    extract)
        _arguments \
            '*--list[only list what there is]' \
            '*-l[only list what there is]' \
            '*--output[default]:FOLDER:_files -/' \
            '*-o[default]:FOLDER:_files -/' \
            '*--max-size[write at most this much ]:SIZE:' \
            '*--memory-limit[use at most this much memory]:SIZE:' \
            '*--help[show this]' \
            '*-h[show this]' \
            '1:RECORDING:_files -g "*.mtr(-.)"' \
            '*:RECORDING:_files -g "*.mtr(-.)"'
        ;;
    repack)
        _arguments \
            '*--output[what is written]:FILE:_files' \
            '*-o[what is written]:FILE:_files' \
            '*--level[how hard to compress, 1 to 19 ]:N:' \
            '*-l[how hard to compress, 1 to 19 ]:N:' \
            '*--no-addresses[without the blocks'\'' addresses]' \
            '*--no-symbols[without the program files and symbols that it carries]' \
            '*--raw[a profile that is not compressed, as other programs read it]' \
            '*--memory-limit[use at most this much memory]:SIZE:' \
            '*--help[show this]' \
            '*-h[show this]' \
            '1:PROFILE:_files -g "*.mt[pr](-.)"' \
            '*:PROFILE:_files -g "*.mt[pr](-.)"'
        ;;
    strip)
        _arguments \
            '*--output[what is written]:FILE:_files' \
            '*-o[what is written]:FILE:_files' \
            '*--level[how hard to compress, 1 to 19 ]:N:' \
            '*-l[how hard to compress, 1 to 19 ]:N:' \
            '*--below[leave out blocks that lived shorter instead]:DURATION:' \
            '*-b[leave out blocks that lived shorter instead]:DURATION:' \
            '*--memory-limit[use at most this much memory]:SIZE:' \
            '*--help[show this]' \
            '*-h[show this]' \
            '1:RECORDING:_files -g "*.mtr(-.)"' \
            '*:RECORDING:_files -g "*.mtr(-.)"'
        ;;
    anonymize)
        _arguments \
            '*--output[what is written]:FILE:_files' \
            '*-o[what is written]:FILE:_files' \
            '*--level[how hard to compress, 1 to 19 ]:N:' \
            '*-l[how hard to compress, 1 to 19 ]:N:' \
            '*--key[make the names from what is in this file]:FILE:_files' \
            '*-k[make the names from what is in this file]:FILE:_files' \
            '*--debug-folders[where debug files lie, separated by colons]:FOLDERS:_files -/' \
            '*--root[look for the program'\''s files below these first, by their paths or just their names, colon-separated]:FOLDERS:_files -/' \
            '*--memory-limit[use at most this much memory]:SIZE:' \
            '*--help[show this]' \
            '*-h[show this]' \
            '1:RECORDING:_files -g "*.mtr(-.)"' \
            '*:RECORDING:_files -g "*.mtr(-.)"'
        ;;
    merge)
        _arguments \
            '*--output[what is written]:FILE:_files' \
            '*-o[what is written]:FILE:_files' \
            '*--level[how hard to compress, 1 to 19 ]:N:' \
            '*-l[how hard to compress, 1 to 19 ]:N:' \
            '*--memory-limit[use at most this much memory]:SIZE:' \
            '*--help[show this]' \
            '*-h[show this]' \
            '1:PROFILE:_files -g "*.mt[pr](-.)"' \
            '*:PROFILE:_files -g "*.mt[pr](-.)"'
        ;;
    info)
        _arguments \
            '*--json[one JSON object for each file]' \
            '*-j[one JSON object for each file]' \
            '*--memory-limit[use at most this much memory]:SIZE:' \
            '*--help[show this]' \
            '*-h[show this]' \
            '1:PROFILE:_files -g "*.mt[pr](-.)"' \
            '*:PROFILE:_files -g "*.mt[pr](-.)"'
        ;;
    list)
        _arguments \
            '*--json[for other programs]' \
            '*-j[for other programs]' \
            '*--help[show this]' \
            '*-h[show this]'
        ;;
    allocators)
        _arguments \
            '*--all[list each function of PROGRAM]' \
            '*-a[list each function of PROGRAM]' \
            '*--json[for other programs]' \
            '*-j[for other programs]' \
            '*--help[show this]' \
            '*-h[show this]' \
            '1:FILE:_files' \
            '*:SPECIFICATION:'
        ;;
    trace)
        _arguments \
            '*--help[show this]' \
            '*-h[show this]' \
            '1:PID:_pids' \
            '*:PID:_pids'
        ;;
    send)
        _arguments \
            '*--to[where `memtrace gather` listens ]:HOST\[\:PORT\]|auto:' \
            '*--listen[or wait here for `memtrace gather HOST` to fetch it]:ADDRESS\[\:PORT\]:' \
            '*--discoverable[with --listen]' \
            '*--discovery-port[the UDP port of --discoverable ]:PORT:' \
            '*--token[a secret that both sides know, in a file that only you can read]:FILE:_files' \
            '*--allow-control[the receiver may switch counting, sample and set marks, while the program runs here ]' \
            '*--give-up[end when HOST cannot be reached for TIME ]:TIME:' \
            '*--help[show this]' \
            '*-h[show this]' \
            '1:RECORDING:_files -g "*.mtr(-.)"' \
            '*:RECORDING:_files -g "*.mtr(-.)"'
        ;;
    gather)
        _arguments \
            '*--listen[where to listen ]:ADDRESS\[\:PORT\]:' \
            '*--token[a secret that both sides know, in a file that only you can read]:FILE:_files' \
            '*--quota[the most bytes of one recording ]:SIZE:' \
            '*--total-quota[the most bytes of all files below DIR ]:SIZE:' \
            '*--discoverable[answer by UDP those that look for a gatherer ]' \
            '*--scan[ask by UDP, list what answers ]' \
            '*--discovery-port[the UDP port of --discoverable and --scan ]:PORT:' \
            '*--give-up[give up a HOST that cannot be reached for TIME ]:TIME:' \
            '*--help[show this]' \
            '*-h[show this]' \
            '1:FOLDER:_files -/' \
            '*:FOLDER:_files -/'
        ;;
    control)
        _arguments \
            '*--output[with record]:FILE:_files' \
            '*-o[with record]:FILE:_files' \
            '*--help[show this]' \
            '*-h[show this]' \
            '1:PID|RECORDING:{_pids; _files -g "*.mtr(-.)"}' \
            '*:exact|sample|off|on|mark|record:(exact sample off on mark record)'
        ;;
    attach)
        _arguments \
            '*--alloc[also follow these functions of the program, which allocate]:SPECIFICATION:' \
            '*--for[detach after TIME, or at Ctrl-C ]:TIME:' \
            '*-f[detach after TIME, or at Ctrl-C ]:TIME:' \
            '*--output[where the profile or recording goes ]:FILE:_files' \
            '*-o[where the profile or recording goes ]:FILE:_files' \
            '*--mode[who may read what is written, as for chmod ]:MODE:' \
            '*--record[make a recording of each event with its time]' \
            '*-r[make a recording of each event with its time]' \
            '*--sample[count one allocation in SIZE bytes, chosen at random]:SIZE:' \
            '*--to[with --record]:HOST\[\:PORT\]|auto:' \
            '*--token[a secret that both sides know]:FILE:_files' \
            '*--allow-control[with --to]' \
            '*--linger[how long sending the rest may take after the end ]:TIME:' \
            '*--force[attach even where its seccomp filters cannot be read]' \
            '*--census[only say what its heap holds, by size and C++ class, without profiling it]' \
            '*--json[with --census]' \
            '*--dry-run[only say whether it can be attached to]' \
            '*-n[only say whether it can be attached to]' \
            '*--help[show this]' \
            '*-h[show this]' \
            '1:PID:_pids' \
            '*:PID:_pids'
        ;;
    detach)
        _arguments \
            '*--all[leave all programs that are attached to]' \
            '*-a[leave all programs that are attached to]' \
            '*--force[detach even where its seccomp filters cannot be read]' \
            '*--help[show this]' \
            '*-h[show this]' \
            '1:PID:_pids' \
            '*:PID:_pids'
        ;;
    symbolize)
        _arguments \
            '*--root[look for modules below it first]:FOLDER:_files -/' \
            '*--debug[where debug files lie, separated by colons ]:FOLDERS:_files -/' \
            '*--no-debuginfod[ask no server for debug information, whatever DEBUGINFOD_URLS says]' \
            '*--memory-limit[use at most this much memory]:SIZE:' \
            '*--help[show this]' \
            '*-h[show this]' \
            '1:FILE:_files' \
            '*:FILE:_files'
        ;;
    flags)
        _arguments \
            '*--cflags[flags for the compiler]' \
            '*--libs[flags for the linker, run path included]' \
            '*--explain[the same, one a line, with what each is for]' \
            '*--cmake[the file that makes CMake ]' \
            '*--gdb[the file of commands for gdb]' \
            '*--alloc[pass]:SPECIFICATION:' \
            '*--list-allocators[which functions of FILEs, programs or objects built in mode pass, report so]' \
            '*--mode[how call paths are found]:auto|pass|hooks|frame-pointer:(auto pass hooks frame-pointer)' \
            '*-m[how call paths are found]:auto|pass|hooks|frame-pointer:(auto pass hooks frame-pointer)' \
            '*--compiler[the compiler the flags are for]:COMMAND:_command_names' \
            '*--help[show this]' \
            '*-h[show this]'
        ;;
    completion)
        _arguments \
            '*--help[show this]' \
            '*-h[show this]' \
            '1:bash|zsh|fish:(bash zsh fish)' \
            '*:bash|zsh|fish:(bash zsh fish)'
        ;;
    esac
}
_memtrace "$@"

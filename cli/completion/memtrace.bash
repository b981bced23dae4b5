# SPDX-License-Identifier: MIT
# bash completion of the memtrace command; made by `memtrace completion bash`
_memtrace_reply() {
    COMPREPLY=($(compgen "$@" -- "$current"))
}
_memtrace_files() {
    COMPREPLY=($(compgen -f -X "!$1" -- "$current") $(compgen -d -- "$current"))
}
_memtrace_filters=' --from --to --at --between --function --not-function --file --not-file --module --not-module --path --path-depth --class --pool --group-allocations --group-bytes --group-live-blocks --group-live-bytes --group-interval --group-maximum-at --size --first-size --last-size --chain-length --chain-position --chain-leaked --chain-lifetime --lifetime --allocated --freed --live-at --address --mapping --mapping-permissions --mapping-peak-rss --thread --freed-by --freed-path --mapped --arena --scope --leaked --temporary --freed-by-others --where'
_memtrace_filter() {
    case $previous in
        --from) _memtrace_reply -W 'start end peak mark:'; return 0 ;;
        --to) _memtrace_reply -W 'start end peak mark:'; return 0 ;;
        --at) _memtrace_reply -W 'start end peak mark:'; return 0 ;;
        --between) :; return 0 ;;
        --function) :; return 0 ;;
        --not-function) :; return 0 ;;
        --file) :; return 0 ;;
        --not-file) :; return 0 ;;
        --module) :; return 0 ;;
        --not-module) :; return 0 ;;
        --path) :; return 0 ;;
        --path-depth) :; return 0 ;;
        --class) _memtrace_reply -W 'heap mapping pool'; return 0 ;;
        --pool) :; return 0 ;;
        --group-allocations) :; return 0 ;;
        --group-bytes) :; return 0 ;;
        --group-live-blocks) :; return 0 ;;
        --group-live-bytes) :; return 0 ;;
        --group-interval) :; return 0 ;;
        --group-maximum-at) _memtrace_reply -W 'start end peak mark:'; return 0 ;;
        --size) :; return 0 ;;
        --first-size) :; return 0 ;;
        --last-size) :; return 0 ;;
        --chain-length) :; return 0 ;;
        --chain-position) :; return 0 ;;
        --chain-lifetime) :; return 0 ;;
        --lifetime) :; return 0 ;;
        --allocated) _memtrace_reply -W 'start end peak mark:'; return 0 ;;
        --freed) _memtrace_reply -W 'start end peak mark:'; return 0 ;;
        --live-at) _memtrace_reply -W 'start end peak mark:'; return 0 ;;
        --address) :; return 0 ;;
        --mapping) :; return 0 ;;
        --mapping-permissions) _memtrace_files '*'; return 0 ;;
        --mapping-peak-rss) :; return 0 ;;
        --thread) :; return 0 ;;
        --freed-by) :; return 0 ;;
        --freed-path) :; return 0 ;;
        --arena) _memtrace_reply -W 'main other'; return 0 ;;
        --scope) :; return 0 ;;
        --where) :; return 0 ;;
    esac
    return 1
}
_memtrace() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
    local command=${COMP_WORDS[1]} options='' i
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        _memtrace_reply -W '--help --version run record report diff query serve top check export replay import extract repack strip anonymize merge info list allocators trace send gather control attach detach symbolize flags completion'
        return
    fi
    for ((i = 2; i < COMP_CWORD; i++)); do
        [[ ${COMP_WORDS[i]} == -- ]] || continue
        ((i == COMP_CWORD - 1)) && _memtrace_reply -c || _memtrace_files '*'
        return
    done
    case $command in
    run)
        case $previous in
        --output | -o) _memtrace_files '*'; return 0 ;;
        --sample) :; return 0 ;;
        --every | -e) :; return 0 ;;
        --churn | -c) :; return 0 ;;
        --top | -n) :; return 0 ;;
        --mode) :; return 0 ;;
        --log | -l) _memtrace_files '*'; return 0 ;;
        --stacks) _memtrace_reply -W 'none short full'; return 0 ;;
        --contexts) :; return 0 ;;
        --unwind) _memtrace_reply -W 'auto patch verify fp libunwind'; return 0 ;;
        --alloc) :; return 0 ;;
        --limit) :; return 0 ;;
        --on-limit) _memtrace_reply -W 'report dump abort'; return 0 ;;
        --signals) :; return 0 ;;
        --toggle-signal) :; return 0 ;;
        --children) _memtrace_reply -W 'all exec none'; return 0 ;;
        --library) _memtrace_files '*'; return 0 ;;
        esac
        options=' --output --sample --every --churn --top --mode --log --summary --no-summary --stacks --contexts --unwind --inject --serve --alloc --limit --on-limit --start-off --signals --toggle-signal --children --follow-children --library --keep-small --help'
        ;;
    record)
        case $previous in
        --output | -o) _memtrace_files '*'; return 0 ;;
        --sample) :; return 0 ;;
        --sizes) :; return 0 ;;
        --modules) :; return 0 ;;
        --cull-below) :; return 0 ;;
        --cull-pending) :; return 0 ;;
        --duration) :; return 0 ;;
        --rotate) :; return 0 ;;
        --embed) _memtrace_reply -W 'symbols all none'; return 0 ;;
        --on-lag) _memtrace_reply -W 'wait drop thin'; return 0 ;;
        --to) :; return 0 ;;
        --listen) :; return 0 ;;
        --discovery-port) :; return 0 ;;
        --token) _memtrace_files '*'; return 0 ;;
        --queue) :; return 0 ;;
        --linger) :; return 0 ;;
        --every | -e) :; return 0 ;;
        --churn | -c) :; return 0 ;;
        --top | -n) :; return 0 ;;
        --mode) :; return 0 ;;
        --log | -l) _memtrace_files '*'; return 0 ;;
        --stacks) _memtrace_reply -W 'none short full'; return 0 ;;
        --contexts) :; return 0 ;;
        --unwind) _memtrace_reply -W 'auto patch verify fp libunwind'; return 0 ;;
        --alloc) :; return 0 ;;
        --limit) :; return 0 ;;
        --on-limit) _memtrace_reply -W 'report dump abort'; return 0 ;;
        --signals) :; return 0 ;;
        --toggle-signal) :; return 0 ;;
        --children) _memtrace_reply -W 'all exec none'; return 0 ;;
        --library) _memtrace_files '*'; return 0 ;;
        esac
        options=' --output --precise --free-stacks --no-addresses --no-slices --sample --sizes --modules --cull-below --cull-pending --duration --rotate --embed --on-lag --profile --to --listen --discoverable --discovery-port --token --queue --allow-control --linger --every --churn --top --mode --log --summary --no-summary --stacks --contexts --unwind --inject --serve --alloc --limit --on-limit --start-off --signals --toggle-signal --children --follow-children --library --keep-small --help'
        ;;
    report)
        case $previous in
        --shutdown-at) _memtrace_reply -W 'start end peak mark:'; return 0 ;;
        --temporary-within) :; return 0 ;;
        --show-caller-callee) :; return 0 ;;
        --blocks-by) _memtrace_reply -W 'largest oldest first'; return 0 ;;
        --timeline-series) :; return 0 ;;
        --by) _memtrace_reply -W 'function line'; return 0 ;;
        --min-percent) :; return 0 ;;
        --limit | -n) :; return 0 ;;
        --depth | -d) :; return 0 ;;
        --color) _memtrace_reply -W 'auto always never'; return 0 ;;
        --processes) :; return 0 ;;
        --process) :; return 0 ;;
        --debug-folders) _memtrace_reply -d; return 0 ;;
        --root) _memtrace_reply -d; return 0 ;;
        --memory-limit) :; return 0 ;;
        --format | -f) _memtrace_reply -W 'text markdown csv json'; return 0 ;;
        --output | -o) _memtrace_files '*'; return 0 ;;
        --suppressions) _memtrace_files '*'; return 0 ;;
        *) _memtrace_filter && return ;;
        esac
        options=' --show-peak --show-maximum --show-leaked --show-live --show-shutdown --shutdown-at --show-allocated --show-total --show-cumulative --show-allocations --show-temporary --temporary-within --show-caller-callee --show-findings --show-groups --show-lifetimes --show-sizes --show-blocks --blocks-by --show-fragmentation --show-mappings --show-pools --show-timeline --timeline-series --show-marks --show-threads --show-processes --top-down --bottom-up --flat --paths --by --full-names --min-percent --limit --depth --nodes --all-frames --color --processes --process --all-processes --debug-folders --no-debuginfod --root --memory-limit --no-cache --format --json --csv --output --suppressions --no-builtin-suppressions --no-embedded-suppressions --help'$_memtrace_filters
        [[ $current == -* ]] || { _memtrace_files '*.mt[pr]'; return; }
        ;;
    diff)
        case $previous in
        --metric | -m) _memtrace_reply -W 'peak leaked allocated allocations temporary'; return 0 ;;
        --by) _memtrace_reply -W 'path function file module'; return 0 ;;
        --line-tolerance) :; return 0 ;;
        --limit | -n) :; return 0 ;;
        --min) :; return 0 ;;
        --depth | -d) :; return 0 ;;
        --color) _memtrace_reply -W 'auto always never'; return 0 ;;
        --output | -o) _memtrace_files '*'; return 0 ;;
        --process) :; return 0 ;;
        --debug-folders) _memtrace_reply -d; return 0 ;;
        --root) _memtrace_reply -d; return 0 ;;
        --memory-limit) :; return 0 ;;
        --suppressions) _memtrace_files '*'; return 0 ;;
        --base-process) :; return 0 ;;
        --base-from) _memtrace_reply -W 'start end peak mark:'; return 0 ;;
        --base-to) _memtrace_reply -W 'start end peak mark:'; return 0 ;;
        --base-at) _memtrace_reply -W 'start end peak mark:'; return 0 ;;
        --base-between) :; return 0 ;;
        --base-function) :; return 0 ;;
        --base-not-function) :; return 0 ;;
        --base-file) :; return 0 ;;
        --base-not-file) :; return 0 ;;
        --base-module) :; return 0 ;;
        --base-not-module) :; return 0 ;;
        --base-path) :; return 0 ;;
        --base-path-depth) :; return 0 ;;
        --base-class) _memtrace_reply -W 'heap mapping pool'; return 0 ;;
        --base-pool) :; return 0 ;;
        --base-group-allocations) :; return 0 ;;
        --base-group-bytes) :; return 0 ;;
        --base-group-live-blocks) :; return 0 ;;
        --base-group-live-bytes) :; return 0 ;;
        --base-group-interval) :; return 0 ;;
        --base-group-maximum-at) _memtrace_reply -W 'start end peak mark:'; return 0 ;;
        --base-size) :; return 0 ;;
        --base-first-size) :; return 0 ;;
        --base-last-size) :; return 0 ;;
        --base-chain-length) :; return 0 ;;
        --base-chain-position) :; return 0 ;;
        --base-chain-lifetime) :; return 0 ;;
        --base-lifetime) :; return 0 ;;
        --base-allocated) _memtrace_reply -W 'start end peak mark:'; return 0 ;;
        --base-freed) _memtrace_reply -W 'start end peak mark:'; return 0 ;;
        --base-live-at) _memtrace_reply -W 'start end peak mark:'; return 0 ;;
        --base-address) :; return 0 ;;
        --base-mapping) :; return 0 ;;
        --base-mapping-permissions) _memtrace_files '*'; return 0 ;;
        --base-mapping-peak-rss) :; return 0 ;;
        --base-thread) :; return 0 ;;
        --base-freed-by) :; return 0 ;;
        --base-freed-path) :; return 0 ;;
        --base-arena) _memtrace_reply -W 'main other'; return 0 ;;
        --base-scope) :; return 0 ;;
        --base-where) :; return 0 ;;
        *) _memtrace_filter && return ;;
        esac
        options=' --metric --by --line-tolerance --limit --min --depth --all-frames --full-names --color --output --process --all-processes --debug-folders --no-debuginfod --root --memory-limit --no-cache --markdown --json --csv --suppressions --no-builtin-suppressions --no-embedded-suppressions --base-process --base-all-processes --base-from --base-to --base-at --base-between --base-function --base-not-function --base-file --base-not-file --base-module --base-not-module --base-path --base-path-depth --base-class --base-pool --base-group-allocations --base-group-bytes --base-group-live-blocks --base-group-live-bytes --base-group-interval --base-group-maximum-at --base-size --base-first-size --base-last-size --base-chain-length --base-chain-position --base-chain-leaked --base-chain-lifetime --base-lifetime --base-allocated --base-freed --base-live-at --base-address --base-mapping --base-mapping-permissions --base-mapping-peak-rss --base-thread --base-freed-by --base-freed-path --base-mapped --base-arena --base-scope --base-leaked --base-temporary --base-freed-by-others --base-where --help'$_memtrace_filters
        [[ $current == -* ]] || { _memtrace_files '*.mt[pr]'; return; }
        ;;
    query)
        case $previous in
        --script) _memtrace_files '*'; return 0 ;;
        --format | -f) _memtrace_reply -W 'table markdown csv tsv json'; return 0 ;;
        --header) _memtrace_reply -W 'on off'; return 0 ;;
        --output | -o) _memtrace_files '*'; return 0 ;;
        --process) :; return 0 ;;
        --debug-folders) _memtrace_reply -d; return 0 ;;
        --root) _memtrace_reply -d; return 0 ;;
        --memory-limit) :; return 0 ;;
        *) _memtrace_filter && return ;;
        esac
        options=' --schema --script --format --header --full-names --output --process --all-processes --debug-folders --no-debuginfod --root --memory-limit --no-cache --help'$_memtrace_filters
        [[ $current == -* ]] || { _memtrace_files '*.mt[pr]'; return; }
        ;;
    serve)
        case $previous in
        --port | -p) :; return 0 ;;
        --view) :; return 0 ;;
        --source-map) :; return 0 ;;
        --sources) _memtrace_reply -d; return 0 ;;
        --cache-memory) :; return 0 ;;
        --debug-folders) _memtrace_reply -d; return 0 ;;
        --root) _memtrace_reply -d; return 0 ;;
        --memory-limit) :; return 0 ;;
        --listen) :; return 0 ;;
        esac
        options=' --port --no-open --view --source-map --sources --cache-memory --debug-folders --no-debuginfod --root --memory-limit --listen --allow-remote --help'
        [[ $current == -* ]] || { _memtrace_files '*.mt[pr]'; return; }
        ;;
    top)
        case $previous in
        --interval | -i) :; return 0 ;;
        --sort | -s) _memtrace_reply -W 'live delta total rate temporary blocks maximum'; return 0 ;;
        --function | -f) :; return 0 ;;
        --limit | -n) :; return 0 ;;
        --debug-folders) _memtrace_reply -d; return 0 ;;
        --root) _memtrace_reply -d; return 0 ;;
        --memory-limit) :; return 0 ;;
        --color) _memtrace_reply -W 'auto always never'; return 0 ;;
        esac
        options=' --interval --sort --reverse --function --paths --once --limit --debug-folders --no-debuginfod --root --memory-limit --color --help'
        [[ $current == -* ]] || { _memtrace_files '*.mt[pr]'; return; }
        ;;
    check)
        case $previous in
        --budgets | -b) _memtrace_files '*'; return 0 ;;
        --max-leaked) :; return 0 ;;
        --max-live) :; return 0 ;;
        --max-peak) :; return 0 ;;
        --max-maximum) :; return 0 ;;
        --max-allocated) :; return 0 ;;
        --max-total) :; return 0 ;;
        --max-cumulative) :; return 0 ;;
        --max-allocations) :; return 0 ;;
        --max-temporary) :; return 0 ;;
        --max-allocations-per-scope) :; return 0 ;;
        --max-bytes-per-scope) :; return 0 ;;
        --max-growth) :; return 0 ;;
        --baseline) _memtrace_files '*'; return 0 ;;
        --tolerance) :; return 0 ;;
        --format | -f) _memtrace_reply -W 'gcc github junit json'; return 0 ;;
        --output | -o) _memtrace_files '*'; return 0 ;;
        --process) :; return 0 ;;
        --debug-folders) _memtrace_reply -d; return 0 ;;
        --root) _memtrace_reply -d; return 0 ;;
        --memory-limit) :; return 0 ;;
        --suppressions) _memtrace_files '*'; return 0 ;;
        *) _memtrace_filter && return ;;
        esac
        options=' --budgets --max-leaked --max-live --max-peak --max-maximum --max-allocated --max-total --max-cumulative --max-allocations --max-temporary --max-allocations-per-scope --max-bytes-per-scope --max-growth --baseline --tolerance --format --output --process --all-processes --debug-folders --no-debuginfod --root --memory-limit --no-cache --suppressions --no-builtin-suppressions --no-embedded-suppressions --help'$_memtrace_filters
        [[ $current == -* ]] || { _memtrace_files '*.mt[pr]'; return; }
        ;;
    export)
        case $previous in
        --format | -f) _memtrace_reply -W "$(memtrace export --list 2>/dev/null | awk '{print $1}')"; return 0 ;;
        --output | -o) _memtrace_files '*'; return 0 ;;
        --cost | -c) _memtrace_reply -W 'peak leaked allocated allocations temporary'; return 0 ;;
        --by) _memtrace_reply -W 'function line'; return 0 ;;
        --depth | -d) :; return 0 ;;
        --process) :; return 0 ;;
        --debug-folders) _memtrace_reply -d; return 0 ;;
        --root) _memtrace_reply -d; return 0 ;;
        --memory-limit) :; return 0 ;;
        *) _memtrace_filter && return ;;
        esac
        options=' --format --output --cost --by --depth --full-names --all-frames --list --process --all-processes --debug-folders --no-debuginfod --root --memory-limit --no-cache --help'$_memtrace_filters
        [[ $current == -* ]] || { _memtrace_files '*.mt[pr]'; return; }
        ;;
    replay)
        case $previous in
        --allocator | -a) _memtrace_files '*'; return 0 ;;
        --times | -n) :; return 0 ;;
        esac
        options=' --allocator --threads --touch --times --help'
        [[ $current == -* ]] || { _memtrace_files '*'; return; }
        ;;
    import)
        case $previous in
        --output | -o) _memtrace_files '*'; return 0 ;;
        --memory-limit) :; return 0 ;;
        esac
        options=' --output --memory-limit --help'
        [[ $current == -* ]] || { _memtrace_files '*'; return; }
        ;;
    extract)
        case $previous in
        --output | -o) _memtrace_reply -d; return 0 ;;
        --max-size) :; return 0 ;;
        --memory-limit) :; return 0 ;;
        esac
        options=' --list --output --max-size --memory-limit --help'
        [[ $current == -* ]] || { _memtrace_files '*.mtr'; return; }
        ;;
    repack)
        case $previous in
        --output | -o) _memtrace_files '*'; return 0 ;;
        --level | -l) :; return 0 ;;
        --memory-limit) :; return 0 ;;
        esac
        options=' --output --level --no-addresses --no-symbols --raw --memory-limit --help'
        [[ $current == -* ]] || { _memtrace_files '*.mt[pr]'; return; }
        ;;
    strip)
        case $previous in
        --output | -o) _memtrace_files '*'; return 0 ;;
        --level | -l) :; return 0 ;;
        --below | -b) :; return 0 ;;
        --memory-limit) :; return 0 ;;
        esac
        options=' --output --level --below --memory-limit --help'
        [[ $current == -* ]] || { _memtrace_files '*.mtr'; return; }
        ;;
    anonymize)
        case $previous in
        --output | -o) _memtrace_files '*'; return 0 ;;
        --level | -l) :; return 0 ;;
        --key | -k) _memtrace_files '*'; return 0 ;;
        --debug-folders) _memtrace_reply -d; return 0 ;;
        --root) _memtrace_reply -d; return 0 ;;
        --memory-limit) :; return 0 ;;
        esac
        options=' --output --level --key --debug-folders --root --memory-limit --help'
        [[ $current == -* ]] || { _memtrace_files '*.mtr'; return; }
        ;;
    merge)
        case $previous in
        --output | -o) _memtrace_files '*'; return 0 ;;
        --level | -l) :; return 0 ;;
        --memory-limit) :; return 0 ;;
        esac
        options=' --output --level --memory-limit --help'
        [[ $current == -* ]] || { _memtrace_files '*.mt[pr]'; return; }
        ;;
    info)
        case $previous in
        --memory-limit) :; return 0 ;;
        esac
        options=' --json --memory-limit --help'
        [[ $current == -* ]] || { _memtrace_files '*.mt[pr]'; return; }
        ;;
    list)
        case $previous in
        esac
        options=' --json --help'
        ;;
    allocators)
        case $previous in
        esac
        options=' --all --json --help'
        [[ $current == -* || COMP_CWORD -eq 2 ]] || { :; return; }
        [[ $current == -* ]] || { _memtrace_files '*'; return; }
        ;;
    trace)
        case $previous in
        esac
        options=' --help'
        [[ $current == -* ]] || { _memtrace_reply -W "$(cd /proc && echo [0-9]*)"; return; }
        ;;
    send)
        case $previous in
        --to) :; return 0 ;;
        --listen) :; return 0 ;;
        --discovery-port) :; return 0 ;;
        --token) _memtrace_files '*'; return 0 ;;
        --give-up) :; return 0 ;;
        esac
        options=' --to --listen --discoverable --discovery-port --token --allow-control --give-up --help'
        [[ $current == -* ]] || { _memtrace_files '*.mtr'; return; }
        ;;
    gather)
        case $previous in
        --listen) :; return 0 ;;
        --token) _memtrace_files '*'; return 0 ;;
        --quota) :; return 0 ;;
        --total-quota) :; return 0 ;;
        --discovery-port) :; return 0 ;;
        --give-up) :; return 0 ;;
        esac
        options=' --listen --token --quota --total-quota --discoverable --scan --discovery-port --give-up --help'
        [[ $current == -* ]] || { _memtrace_reply -d; return; }
        ;;
    control)
        case $previous in
        --output | -o) _memtrace_files '*'; return 0 ;;
        esac
        options=' --output --help'
        [[ $current == -* || COMP_CWORD -eq 2 ]] || { _memtrace_reply -W 'exact sample off on mark record'; return; }
        [[ $current == -* ]] || { _memtrace_files '*.mtr'; COMPREPLY+=($(compgen -W "$(cd /proc && echo [0-9]*)" -- "$current")); return; }
        ;;
    attach)
        case $previous in
        --alloc) :; return 0 ;;
        --for | -f) :; return 0 ;;
        --output | -o) _memtrace_files '*'; return 0 ;;
        --mode) :; return 0 ;;
        --sample) :; return 0 ;;
        --to) :; return 0 ;;
        --token) _memtrace_files '*'; return 0 ;;
        --linger) :; return 0 ;;
        esac
        options=' --alloc --for --output --mode --record --sample --to --token --allow-control --linger --force --census --json --dry-run --help'
        [[ $current == -* ]] || { _memtrace_reply -W "$(cd /proc && echo [0-9]*)"; return; }
        ;;
    detach)
        case $previous in
        esac
        options=' --all --force --help'
        [[ $current == -* ]] || { _memtrace_reply -W "$(cd /proc && echo [0-9]*)"; return; }
        ;;
    symbolize)
        case $previous in
        --root) _memtrace_reply -d; return 0 ;;
        --debug) _memtrace_reply -d; return 0 ;;
        --memory-limit) :; return 0 ;;
        esac
        options=' --root --debug --no-debuginfod --memory-limit --help'
        [[ $current == -* ]] || { _memtrace_files '*'; return; }
        ;;
    flags)
        case $previous in
        --alloc) :; return 0 ;;
        --mode | -m) _memtrace_reply -W 'auto pass hooks frame-pointer'; return 0 ;;
        --compiler) _memtrace_reply -c; return 0 ;;
        esac
        options=' --cflags --libs --explain --cmake --gdb --alloc --list-allocators --mode --compiler --help'
        ;;
    completion)
        case $previous in
        esac
        options=' --help'
        [[ $current == -* ]] || { _memtrace_reply -W 'bash zsh fish'; return; }
        ;;
    esac
    _memtrace_reply -W "$options"
}
complete -o filenames -F _memtrace memtrace

# SPDX-License-Identifier: MIT
# bash completion of the memtrace command; made by `memtrace completion bash`
_memtrace_reply() {
    COMPREPLY=($(compgen "$@" -- "$current"))
}
_memtrace_files() {
    COMPREPLY=($(compgen -f -X "!$1" -- "$current") $(compgen -d -- "$current"))
}
_memtrace() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
    local command=${COMP_WORDS[1]} options='' i
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        _memtrace_reply -W '--help --version run record report diff query check export import extract repack strip anonymize merge info list trace control symbolize flags completion'
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
        --output | -o) _memtrace_files '*'; return ;;
        --sample) :; return ;;
        --every | -e) :; return ;;
        --churn | -c) :; return ;;
        --top | -n) :; return ;;
        --log | -l) _memtrace_files '*'; return ;;
        --stacks) _memtrace_reply -W 'none short full'; return ;;
        --contexts) :; return ;;
        --unwind) _memtrace_reply -W 'auto patch verify fp libunwind'; return ;;
        --limit) :; return ;;
        --on-limit) _memtrace_reply -W 'report dump abort'; return ;;
        --signals) :; return ;;
        --children) _memtrace_reply -W 'all exec none'; return ;;
        esac
        options=' --output --sample --every --churn --top --log --summary --no-summary --stacks --contexts --unwind --inject --limit --on-limit --start-off --signals --children --follow-children --keep-small --help'
        ;;
    record)
        case $previous in
        --output | -o) _memtrace_files '*'; return ;;
        --sample) :; return ;;
        --sizes) :; return ;;
        --modules) :; return ;;
        --cull-below) :; return ;;
        --duration) :; return ;;
        --rotate) :; return ;;
        --embed) _memtrace_reply -W 'symbols all none'; return ;;
        --on-lag) _memtrace_reply -W 'wait drop'; return ;;
        --every | -e) :; return ;;
        --churn | -c) :; return ;;
        --top | -n) :; return ;;
        --log | -l) _memtrace_files '*'; return ;;
        --stacks) _memtrace_reply -W 'none short full'; return ;;
        --contexts) :; return ;;
        --unwind) _memtrace_reply -W 'auto patch verify fp libunwind'; return ;;
        --limit) :; return ;;
        --on-limit) _memtrace_reply -W 'report dump abort'; return ;;
        --signals) :; return ;;
        --children) _memtrace_reply -W 'all exec none'; return ;;
        esac
        options=' --output --precise --free-stacks --no-addresses --sample --sizes --modules --cull-below --duration --rotate --embed --on-lag --profile --every --churn --top --log --summary --no-summary --stacks --contexts --unwind --inject --limit --on-limit --start-off --signals --children --follow-children --keep-small --help'
        ;;
    report)
        case $previous in
        --shutdown-at) _memtrace_reply -W 'start end peak mark:'; return ;;
        --temporary-within) :; return ;;
        --show-caller-callee) :; return ;;
        --blocks-by) _memtrace_reply -W 'largest oldest first'; return ;;
        --by) _memtrace_reply -W 'function line'; return ;;
        --min-percent) :; return ;;
        --limit | -n) :; return ;;
        --depth | -d) :; return ;;
        --color) _memtrace_reply -W 'auto always never'; return ;;
        --processes) :; return ;;
        --process) :; return ;;
        --debug-folders) _memtrace_reply -d; return ;;
        --format | -f) _memtrace_reply -W 'text markdown json csv'; return ;;
        --output | -o) _memtrace_files '*'; return ;;
        --suppressions) _memtrace_files '*'; return ;;
        --from) _memtrace_reply -W 'start end peak mark:'; return ;;
        --to) _memtrace_reply -W 'start end peak mark:'; return ;;
        --at) _memtrace_reply -W 'start end peak mark:'; return ;;
        --between) :; return ;;
        --function) :; return ;;
        --not-function) :; return ;;
        --file) :; return ;;
        --not-file) :; return ;;
        --module) :; return ;;
        --not-module) :; return ;;
        --path) :; return ;;
        --path-depth) :; return ;;
        --class) _memtrace_reply -W 'heap mapping pool'; return ;;
        --pool) :; return ;;
        --group-allocations) :; return ;;
        --group-bytes) :; return ;;
        --group-live-blocks) :; return ;;
        --group-live-bytes) :; return ;;
        --size) :; return ;;
        --first-size) :; return ;;
        --last-size) :; return ;;
        --chain-length) :; return ;;
        --chain-lifetime) :; return ;;
        --lifetime) :; return ;;
        --allocated) _memtrace_reply -W 'start end peak mark:'; return ;;
        --freed) _memtrace_reply -W 'start end peak mark:'; return ;;
        --live-at) _memtrace_reply -W 'start end peak mark:'; return ;;
        --address) :; return ;;
        --thread) :; return ;;
        --freed-by) :; return ;;
        --scope) :; return ;;
        esac
        options=' --show-peak --show-maximum --show-leaked --show-live --show-shutdown --shutdown-at --show-allocated --show-total --show-cumulative --show-allocations --show-temporary --temporary-within --show-caller-callee --show-groups --show-lifetimes --show-sizes --show-blocks --blocks-by --show-fragmentation --show-mappings --show-timeline --show-marks --show-threads --show-processes --top-down --bottom-up --flat --paths --by --full-names --min-percent --limit --depth --nodes --all-frames --color --processes --process --all-processes --debug-folders --no-cache --format --json --csv --output --suppressions --no-builtin-suppressions --no-embedded-suppressions --from --to --at --between --function --not-function --file --not-file --module --not-module --path --path-depth --class --pool --group-allocations --group-bytes --group-live-blocks --group-live-bytes --size --first-size --last-size --chain-length --chain-lifetime --lifetime --allocated --freed --live-at --address --thread --freed-by --scope --leaked --temporary --freed-by-others --help'
        [[ $current == -* ]] || { _memtrace_files '*.mt[pr]'; return; }
        ;;
    diff)
        case $previous in
        --metric | -m) _memtrace_reply -W 'peak leaked allocated allocations temporary'; return ;;
        --by) _memtrace_reply -W 'path function file module'; return ;;
        --line-tolerance) :; return ;;
        --limit | -n) :; return ;;
        --min) :; return ;;
        --depth | -d) :; return ;;
        --color) _memtrace_reply -W 'auto always never'; return ;;
        --output | -o) _memtrace_files '*'; return ;;
        --process) :; return ;;
        --debug-folders) _memtrace_reply -d; return ;;
        --suppressions) _memtrace_files '*'; return ;;
        --from) _memtrace_reply -W 'start end peak mark:'; return ;;
        --to) _memtrace_reply -W 'start end peak mark:'; return ;;
        --at) _memtrace_reply -W 'start end peak mark:'; return ;;
        --between) :; return ;;
        --function) :; return ;;
        --not-function) :; return ;;
        --file) :; return ;;
        --not-file) :; return ;;
        --module) :; return ;;
        --not-module) :; return ;;
        --path) :; return ;;
        --path-depth) :; return ;;
        --class) _memtrace_reply -W 'heap mapping pool'; return ;;
        --pool) :; return ;;
        --group-allocations) :; return ;;
        --group-bytes) :; return ;;
        --group-live-blocks) :; return ;;
        --group-live-bytes) :; return ;;
        --size) :; return ;;
        --first-size) :; return ;;
        --last-size) :; return ;;
        --chain-length) :; return ;;
        --chain-lifetime) :; return ;;
        --lifetime) :; return ;;
        --allocated) _memtrace_reply -W 'start end peak mark:'; return ;;
        --freed) _memtrace_reply -W 'start end peak mark:'; return ;;
        --live-at) _memtrace_reply -W 'start end peak mark:'; return ;;
        --address) :; return ;;
        --thread) :; return ;;
        --freed-by) :; return ;;
        --scope) :; return ;;
        esac
        options=' --metric --by --line-tolerance --limit --min --depth --all-frames --full-names --color --output --process --all-processes --debug-folders --no-cache --markdown --json --csv --suppressions --no-builtin-suppressions --no-embedded-suppressions --from --to --at --between --function --not-function --file --not-file --module --not-module --path --path-depth --class --pool --group-allocations --group-bytes --group-live-blocks --group-live-bytes --size --first-size --last-size --chain-length --chain-lifetime --lifetime --allocated --freed --live-at --address --thread --freed-by --scope --leaked --temporary --freed-by-others --help'
        [[ $current == -* ]] || { _memtrace_files '*.mt[pr]'; return; }
        ;;
    query)
        case $previous in
        --script) _memtrace_files '*'; return ;;
        --format | -f) _memtrace_reply -W 'table markdown csv tsv json'; return ;;
        --header) _memtrace_reply -W 'on off'; return ;;
        --output | -o) _memtrace_files '*'; return ;;
        --process) :; return ;;
        --debug-folders) _memtrace_reply -d; return ;;
        --from) _memtrace_reply -W 'start end peak mark:'; return ;;
        --to) _memtrace_reply -W 'start end peak mark:'; return ;;
        --at) _memtrace_reply -W 'start end peak mark:'; return ;;
        --between) :; return ;;
        --function) :; return ;;
        --not-function) :; return ;;
        --file) :; return ;;
        --not-file) :; return ;;
        --module) :; return ;;
        --not-module) :; return ;;
        --path) :; return ;;
        --path-depth) :; return ;;
        --class) _memtrace_reply -W 'heap mapping pool'; return ;;
        --pool) :; return ;;
        --group-allocations) :; return ;;
        --group-bytes) :; return ;;
        --group-live-blocks) :; return ;;
        --group-live-bytes) :; return ;;
        --size) :; return ;;
        --first-size) :; return ;;
        --last-size) :; return ;;
        --chain-length) :; return ;;
        --chain-lifetime) :; return ;;
        --lifetime) :; return ;;
        --allocated) _memtrace_reply -W 'start end peak mark:'; return ;;
        --freed) _memtrace_reply -W 'start end peak mark:'; return ;;
        --live-at) _memtrace_reply -W 'start end peak mark:'; return ;;
        --address) :; return ;;
        --thread) :; return ;;
        --freed-by) :; return ;;
        --scope) :; return ;;
        esac
        options=' --schema --script --format --header --full-names --output --process --all-processes --debug-folders --no-cache --from --to --at --between --function --not-function --file --not-file --module --not-module --path --path-depth --class --pool --group-allocations --group-bytes --group-live-blocks --group-live-bytes --size --first-size --last-size --chain-length --chain-lifetime --lifetime --allocated --freed --live-at --address --thread --freed-by --scope --leaked --temporary --freed-by-others --help'
        [[ $current == -* ]] || { _memtrace_files '*.mt[pr]'; return; }
        ;;
    check)
        case $previous in
        --budgets | -b) _memtrace_files '*'; return ;;
        --max-leaked) :; return ;;
        --max-live) :; return ;;
        --max-peak) :; return ;;
        --max-maximum) :; return ;;
        --max-allocated) :; return ;;
        --max-total) :; return ;;
        --max-cumulative) :; return ;;
        --max-allocations) :; return ;;
        --max-temporary) :; return ;;
        --max-allocations-per-scope) :; return ;;
        --max-bytes-per-scope) :; return ;;
        --max-growth) :; return ;;
        --baseline) _memtrace_files '*'; return ;;
        --tolerance) :; return ;;
        --format | -f) _memtrace_reply -W 'gcc github junit json'; return ;;
        --output | -o) _memtrace_files '*'; return ;;
        --process) :; return ;;
        --debug-folders) _memtrace_reply -d; return ;;
        --suppressions) _memtrace_files '*'; return ;;
        --from) _memtrace_reply -W 'start end peak mark:'; return ;;
        --to) _memtrace_reply -W 'start end peak mark:'; return ;;
        --at) _memtrace_reply -W 'start end peak mark:'; return ;;
        --between) :; return ;;
        --function) :; return ;;
        --not-function) :; return ;;
        --file) :; return ;;
        --not-file) :; return ;;
        --module) :; return ;;
        --not-module) :; return ;;
        --path) :; return ;;
        --path-depth) :; return ;;
        --class) _memtrace_reply -W 'heap mapping pool'; return ;;
        --pool) :; return ;;
        --group-allocations) :; return ;;
        --group-bytes) :; return ;;
        --group-live-blocks) :; return ;;
        --group-live-bytes) :; return ;;
        --size) :; return ;;
        --first-size) :; return ;;
        --last-size) :; return ;;
        --chain-length) :; return ;;
        --chain-lifetime) :; return ;;
        --lifetime) :; return ;;
        --allocated) _memtrace_reply -W 'start end peak mark:'; return ;;
        --freed) _memtrace_reply -W 'start end peak mark:'; return ;;
        --live-at) _memtrace_reply -W 'start end peak mark:'; return ;;
        --address) :; return ;;
        --thread) :; return ;;
        --freed-by) :; return ;;
        --scope) :; return ;;
        esac
        options=' --budgets --max-leaked --max-live --max-peak --max-maximum --max-allocated --max-total --max-cumulative --max-allocations --max-temporary --max-allocations-per-scope --max-bytes-per-scope --max-growth --baseline --tolerance --format --output --process --all-processes --debug-folders --no-cache --suppressions --no-builtin-suppressions --no-embedded-suppressions --from --to --at --between --function --not-function --file --not-file --module --not-module --path --path-depth --class --pool --group-allocations --group-bytes --group-live-blocks --group-live-bytes --size --first-size --last-size --chain-length --chain-lifetime --lifetime --allocated --freed --live-at --address --thread --freed-by --scope --leaked --temporary --freed-by-others --help'
        [[ $current == -* ]] || { _memtrace_files '*.mt[pr]'; return; }
        ;;
    export)
        case $previous in
        --format | -f) _memtrace_reply -W "$(memtrace export --list 2>/dev/null | awk '{print $1}')"; return ;;
        --output | -o) _memtrace_files '*'; return ;;
        --cost | -c) _memtrace_reply -W 'peak leaked allocated allocations temporary'; return ;;
        --by) _memtrace_reply -W 'function line'; return ;;
        --depth | -d) :; return ;;
        --process) :; return ;;
        --debug-folders) _memtrace_reply -d; return ;;
        --from) _memtrace_reply -W 'start end peak mark:'; return ;;
        --to) _memtrace_reply -W 'start end peak mark:'; return ;;
        --at) _memtrace_reply -W 'start end peak mark:'; return ;;
        --between) :; return ;;
        --function) :; return ;;
        --not-function) :; return ;;
        --file) :; return ;;
        --not-file) :; return ;;
        --module) :; return ;;
        --not-module) :; return ;;
        --path) :; return ;;
        --path-depth) :; return ;;
        --class) _memtrace_reply -W 'heap mapping pool'; return ;;
        --pool) :; return ;;
        --group-allocations) :; return ;;
        --group-bytes) :; return ;;
        --group-live-blocks) :; return ;;
        --group-live-bytes) :; return ;;
        --size) :; return ;;
        --first-size) :; return ;;
        --last-size) :; return ;;
        --chain-length) :; return ;;
        --chain-lifetime) :; return ;;
        --lifetime) :; return ;;
        --allocated) _memtrace_reply -W 'start end peak mark:'; return ;;
        --freed) _memtrace_reply -W 'start end peak mark:'; return ;;
        --live-at) _memtrace_reply -W 'start end peak mark:'; return ;;
        --address) :; return ;;
        --thread) :; return ;;
        --freed-by) :; return ;;
        --scope) :; return ;;
        esac
        options=' --format --output --cost --by --depth --full-names --all-frames --list --process --all-processes --debug-folders --no-cache --from --to --at --between --function --not-function --file --not-file --module --not-module --path --path-depth --class --pool --group-allocations --group-bytes --group-live-blocks --group-live-bytes --size --first-size --last-size --chain-length --chain-lifetime --lifetime --allocated --freed --live-at --address --thread --freed-by --scope --leaked --temporary --freed-by-others --help'
        [[ $current == -* ]] || { _memtrace_files '*.mt[pr]'; return; }
        ;;
    import)
        case $previous in
        --output | -o) _memtrace_files '*'; return ;;
        esac
        options=' --output --help'
        [[ $current == -* ]] || { _memtrace_files '*'; return; }
        ;;
    extract)
        case $previous in
        --output | -o) _memtrace_reply -d; return ;;
        esac
        options=' --list --output --help'
        [[ $current == -* ]] || { _memtrace_files '*.mtr'; return; }
        ;;
    repack)
        case $previous in
        --output | -o) _memtrace_files '*'; return ;;
        --level | -l) :; return ;;
        esac
        options=' --output --level --no-addresses --no-symbols --help'
        [[ $current == -* ]] || { _memtrace_files '*.mtr'; return; }
        ;;
    strip)
        case $previous in
        --output | -o) _memtrace_files '*'; return ;;
        --level | -l) :; return ;;
        --below | -b) :; return ;;
        esac
        options=' --output --level --below --help'
        [[ $current == -* ]] || { _memtrace_files '*.mtr'; return; }
        ;;
    anonymize)
        case $previous in
        --output | -o) _memtrace_files '*'; return ;;
        --level | -l) :; return ;;
        --key | -k) _memtrace_files '*'; return ;;
        --debug-folders) _memtrace_reply -d; return ;;
        esac
        options=' --output --level --key --debug-folders --help'
        [[ $current == -* ]] || { _memtrace_files '*.mtr'; return; }
        ;;
    merge)
        case $previous in
        --output | -o) _memtrace_files '*'; return ;;
        --level | -l) :; return ;;
        esac
        options=' --output --level --help'
        [[ $current == -* ]] || { _memtrace_files '*.mt[pr]'; return; }
        ;;
    info)
        case $previous in
        esac
        options=' --json --help'
        [[ $current == -* ]] || { _memtrace_files '*.mt[pr]'; return; }
        ;;
    list)
        case $previous in
        esac
        options=' --json --help'
        ;;
    trace)
        case $previous in
        esac
        options=' --help'
        [[ $current == -* ]] || { _memtrace_reply -W "$(cd /proc && echo [0-9]*)"; return; }
        ;;
    control)
        case $previous in
        esac
        options=' --help'
        [[ $current == -* || COMP_CWORD -eq 2 ]] || { _memtrace_reply -W 'exact sample off on'; return; }
        [[ $current == -* ]] || { _memtrace_reply -W "$(cd /proc && echo [0-9]*)"; return; }
        ;;
    symbolize)
        case $previous in
        --root) _memtrace_reply -d; return ;;
        --debug) _memtrace_reply -d; return ;;
        esac
        options=' --root --debug --help'
        [[ $current == -* ]] || { _memtrace_files '*'; return; }
        ;;
    flags)
        case $previous in
        --mode | -m) _memtrace_reply -W 'auto pass hooks frame-pointer'; return ;;
        --compiler) _memtrace_reply -c; return ;;
        esac
        options=' --cflags --libs --explain --cmake --gdb --mode --compiler --help'
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

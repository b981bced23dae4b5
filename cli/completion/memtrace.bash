# SPDX-License-Identifier: MIT
# bash completion of the memtrace command.
_memtrace() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
    local command=${COMP_WORDS[1]} options=""
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "run record report diff check query export import extract info repack strip anonymize merge list trace control symbolize flags --help --version" -- "$current"))
        return
    fi
    local filters="--from --to --at --between --function --not-function --file --not-file --module --not-module
        --path --path-depth --class --pool --group-allocations --group-bytes --group-live-blocks
        --group-live-bytes --size --first-size --last-size --chain-length --chain-lifetime
        --lifetime --address --allocated --freed --live-at --thread --freed-by --scope --leaked
        --temporary --freed-by-others"
    case $previous in
    --mode)
        COMPREPLY=($(compgen -W "auto pass hooks frame-pointer" -- "$current"))
        return
        ;;
    --compiler)
        COMPREPLY=($(compgen -c -- "$current"))
        return
        ;;
    --stacks)
        COMPREPLY=($(compgen -W "none short full" -- "$current"))
        return
        ;;
    --unwind)
        COMPREPLY=($(compgen -W "auto patch verify fp libunwind" -- "$current"))
        return
        ;;
    --embed)
        COMPREPLY=($(compgen -W "symbols all none" -- "$current"))
        return
        ;;
    --on-lag)
        COMPREPLY=($(compgen -W "wait drop" -- "$current"))
        return
        ;;
    --on-limit)
        COMPREPLY=($(compgen -W "report dump abort" -- "$current"))
        return
        ;;
    --color)
        COMPREPLY=($(compgen -W "auto always never" -- "$current"))
        return
        ;;
    --format)
        [[ $command == export ]] && options=$(memtrace export --list 2>/dev/null | awk '{print $1}')
        [[ $command == query ]] && options="table markdown csv tsv json"
        [[ $command == check ]] && options="gcc github junit json"
        COMPREPLY=($(compgen -W "$options" -- "$current"))
        return
        ;;
    --cost)
        COMPREPLY=($(compgen -W "peak leaked allocated allocations temporary" -- "$current"))
        return
        ;;
    --metric)
        COMPREPLY=($(compgen -W "peak leaked allocated allocations temporary" -- "$current"))
        return
        ;;
    --by)
        if [[ $command == diff ]]; then
            COMPREPLY=($(compgen -W "path function file module" -- "$current"))
            return
        fi
        COMPREPLY=($(compgen -W "function line" -- "$current"))
        return
        ;;
    --class)
        COMPREPLY=($(compgen -W "heap mapping pool" -- "$current"))
        return
        ;;
    --from | --to | --at | --live-at)
        COMPREPLY=($(compgen -W "start end peak mark:" -- "$current"))
        return
        ;;
    --header)
        COMPREPLY=($(compgen -W "on off" -- "$current"))
        return
        ;;
    --output | --script | --budgets | --baseline | --log | --root | --debug | --debug-folders)
        COMPREPLY=($(compgen -f -- "$current"))
        return
        ;;
    esac
    case $command in
    run | record)
        local i
        for ((i = 2; i < COMP_CWORD; i++)); do
            if [[ ${COMP_WORDS[i]} == -- ]]; then
                if ((i == COMP_CWORD - 1)); then
                    COMPREPLY=($(compgen -c -- "$current"))
                else
                    COMPREPLY=($(compgen -f -- "$current"))
                fi
                return
            fi
        done
        options="--output --every --churn --top --log --summary --no-summary --stacks --contexts
            --unwind --inject --limit --on-limit --start-off --signals --children --keep-small --follow-children --help --"
        [[ $command == run ]] || options+=" --precise --free-stacks --no-addresses --sample --sizes --modules --cull-below
            --duration --rotate --embed --on-lag --profile"
        ;;
    report)
        options="--show-peak --show-maximum --show-leaked --show-live --show-shutdown --shutdown-at
            --show-allocated --show-total --show-cumulative
            --show-allocations --show-temporary --temporary-within --show-caller-callee --show-groups
            --show-lifetimes --show-sizes --show-blocks --blocks-by --show-fragmentation --show-mappings
            --show-timeline --show-marks --show-threads --show-processes --process --all-processes
            --processes --top-down --bottom-up --flat --paths --by
            --full-names --no-cache --min-percent --limit --depth --nodes --all-frames --color --debug-folders --format
            --suppressions --no-builtin-suppressions --no-embedded-suppressions --json --csv --output
            --help"
        if [[ $current != -* ]]; then
            COMPREPLY=($(compgen -f -X '!*.mt[pr]' -- "$current"))
            return
        fi
        ;;
    check)
        options="--process --all-processes --budgets --max-leaked --max-live --max-peak --max-maximum --max-allocated --max-total
            --max-cumulative --max-allocations --max-temporary
            --max-allocations-per-scope --max-bytes-per-scope --max-growth --baseline --tolerance
            --suppressions --no-builtin-suppressions --no-embedded-suppressions --format --debug-folders
            --output --no-cache --help"
        if [[ $current != -* ]]; then
            COMPREPLY=($(compgen -f -X '!*.mt[pr]' -- "$current"))
            return
        fi
        ;;
    diff)
        options="--process --all-processes --metric --by --line-tolerance --limit --min --depth --all-frames --full-names --color
            --suppressions --no-builtin-suppressions --no-embedded-suppressions --debug-folders --markdown --json --csv
            --output --no-cache --help"
        if [[ $current != -* ]]; then
            COMPREPLY=($(compgen -f -X '!*.mt[pr]' -- "$current"))
            return
        fi
        ;;
    export)
        options="--process --all-processes --format --output --cost --by --full-names --all-frames --debug-folders --no-cache --list --help"
        if [[ $current != -* ]]; then
            COMPREPLY=($(compgen -f -X '!*.mt[pr]' -- "$current"))
            return
        fi
        ;;
    query)
        options="--process --all-processes --schema --script --format --header --full-names --no-cache --debug-folders --output --help"
        if [[ $current != -* ]]; then
            COMPREPLY=($(compgen -f -X '!*.mt[pr]' -- "$current"))
            return
        fi
        ;;
    info)
        options="--json --help"
        ;;
    repack)
        options="--output --level --no-addresses --no-symbols --help"
        ;;
    strip)
        options="--output --below --level --help"
        ;;
    anonymize)
        options="--output --key --debug-folders --level --help"
        ;;
    merge)
        options="--output --level --help"
        ;;
    import)
        options="--output --help"
        if [[ $current != -* ]]; then
            COMPREPLY=($(compgen -f -- "$current"))
            return
        fi
        ;;
    extract)
        options="--list --output --help"
        if [[ $current != -* ]]; then
            COMPREPLY=($(compgen -f -X '!*.mtr' -- "$current"))
            return
        fi
        ;;
    trace) [[ $current == -* ]] || options=$(cd /proc && echo [0-9]*) ;;
    control) [[ $current == -* ]] || options="$(cd /proc && echo [0-9]*) exact sample off on" ;;
    flags) options="--mode --compiler --cflags --libs --explain --gdb --cmake --help" ;;
    list) options="--json --help" ;;
    symbolize)
        options="--root --debug --help"
        if [[ $current != -* ]]; then
            COMPREPLY=($(compgen -f -- "$current"))
            return
        fi
        ;;
    esac
    case $command in
    report | diff | check | query | export) options+=" $filters" ;;
    esac
    COMPREPLY=($(compgen -W "$options" -- "$current"))
}
complete -o filenames -F _memtrace memtrace

#compdef memtrace
# SPDX-License-Identifier: MIT
# zsh completion of the memtrace command.
_memtrace() {
    local -a commands
    commands=(
        'run:run a program under the profiler'
        'report:show a profile or a running process'
        'list:profiles of running and killed processes'
        'trace:who allocated this address'
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
    case $command in
    run)
        _arguments '--top[paths shown]:count' '--every[interval]:time' '--churn[bytes]:size' \
            '--output[profile]:pattern:_files' '--log[log file]:file:_files' \
            '--stacks[depth]:stacks:(none short full)' '*::program:_normal'
        ;;
    report)
        _arguments '--show-maximum' '--show-leaked' '--show-cumulative' '--show-allocations' \
            '--show-temporary' '--flat' '--bottom-up' '--json' '--csv' '*:profile:_files -g "*.mtp"'
        ;;
    trace) _arguments '1:process:_pids' '2:address' ;;
    flags)
        _arguments '--mode[mode]:mode:(auto hooks frame-pointer)' '--cflags' '--libs' '--explain'
        ;;
    esac
}
_memtrace "$@"

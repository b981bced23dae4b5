# SPDX-License-Identifier: MIT
# bash completion of the memtrace command, which is asked for each word: see cli/completion.c
_memtrace() {
    local IFS=$'\n' word=${COMP_WORDS[COMP_CWORD]} line kinds kind
    COMPREPLY=()
    while read -r line; do
        [[ $word != = ]] || word='' # --color=, which bash takes apart
        case $line in
        :files) COMPREPLY+=($(compgen -f -- "$word")) ;;
        :files\ *)
            kinds=${line#:files }
            for kind in ${kinds// /$IFS}; do COMPREPLY+=($(compgen -f -X "!*$kind" -- "$word")); done
            COMPREPLY+=($(compgen -d -- "$word"))
            ;;
        :folders) COMPREPLY+=($(compgen -d -- "$word")) ;;
        :commands) COMPREPLY+=($(compgen -c -- "$word")) ;;
        :program\ *)
            if declare -F _command_offset >/dev/null; then
                IFS=$' \t\n'
                _command_offset "${line#:program }"
            elif ((COMP_CWORD == ${line#:program })); then
                COMPREPLY=($(compgen -c -- "$word"))
            else
                COMPREPLY=($(compgen -f -- "$word"))
            fi
            ;;
        *)
            line=${line%%$'\t'*}
            [[ $line != "$word"* ]] || COMPREPLY+=("$line")
            ;;
        esac
    done < <(memtrace complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o filenames -F _memtrace memtrace

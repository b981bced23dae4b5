#compdef memtrace
# SPDX-License-Identifier: MIT
# zsh completion of the memtrace command, which is asked for each word: see cli/completion.c
_memtrace() {
    local line
    local -a offered
    for line in ${(f)"$(memtrace complete -- "${(@Q)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)"}; do
        [[ $PREFIX != --*=* ]] || compset -P '*='
        case $line in
        :files) _files ;;
        :files\ *) _files -g "*(${(j:|:)${(s: :)line#:files }})(-.)" ;;
        :folders) _files -/ ;;
        :commands) _command_names ;;
        :program\ *)
            shift ${line#:program } words
            ((CURRENT -= ${line#:program }))
            _normal
            ;;
        *) offered+=("${${line//:/\\:}/$'\t'/:}") ;;
        esac
    done
    (($#offered == 0)) || _describe -V 'memtrace' offered
}
if [[ ${funcstack[1]} == _memtrace ]]; then _memtrace "$@"; else compdef _memtrace memtrace; fi

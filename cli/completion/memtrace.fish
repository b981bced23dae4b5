# SPDX-License-Identifier: MIT
# fish completion of the memtrace command, which is asked for each word: see cli/completion.c
function __memtrace_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l option (string match -r -- '^--[^=]*=' "$words[-1]")
    for line in (memtrace complete -- $words[2..-1] 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path (commandline -ct)
            case ':files *'
                for kind in (string split ' ' -- $line)[2..-1]
                    __fish_complete_suffix $kind
                end
            case :folders
                __fish_complete_directories (commandline -ct)
            case :commands
                __fish_complete_command
            case ':program *'
                set -l from (math (string replace ':program ' '' -- $line) + 1)
                complete -C (string join ' ' -- (string escape -- $words[$from..-1]))
            case '*'
                string join '' -- $option $line
        end
    end
end
complete -c memtrace -f -a '(__memtrace_complete)'

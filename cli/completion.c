/* SPDX-License-Identifier: MIT */
/*
 * completion.c: `memtrace completion SHELL`: what makes a shell complete the command's options,
 * from the tables of options.
 */
#include "analyze/ask/filters.h"
#include "cli/cli.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- What an option or an operand takes, by the name it has in the help ---- */

enum { OPTIONVALUE_SIZE = 64 };
enum optionvalue {
    OPTIONVALUE_ANY,   /* nothing that could be listed */
    OPTIONVALUE_WORDS, /* it lists them itself: "auto|always|never" */
    OPTIONVALUE_FILE,
    OPTIONVALUE_FOLDER,
    OPTIONVALUE_COMMAND,
    OPTIONVALUE_FORMAT,    /* of `memtrace export` */
    OPTIONVALUE_TIME,      /* in a recording */
    OPTIONVALUE_PROFILE,   /* a profile, a recording or a run */
    OPTIONVALUE_RECORDING, /* only that */
    OPTIONVALUE_PID,
    OPTIONVALUE_PROGRAM, /* a process, or a recording, which stands for it */
};
static enum optionvalue optionvalue_of(const char *name) {
    static const struct {
        const char *name;
        enum optionvalue kind;
    } known[] = {{"FILE", OPTIONVALUE_FILE},
                 {"PATTERN", OPTIONVALUE_FILE},
                 {"FOLDER", OPTIONVALUE_FOLDER},
                 {"FOLDERS", OPTIONVALUE_FOLDER},
                 {"COMMAND", OPTIONVALUE_COMMAND},
                 {"FORMAT", OPTIONVALUE_FORMAT},
                 {"T", OPTIONVALUE_TIME},
                 {"T..T", OPTIONVALUE_TIME},
                 {"T[,T]", OPTIONVALUE_TIME},
                 {"PROFILE", OPTIONVALUE_PROFILE},
                 {"RECORDING", OPTIONVALUE_RECORDING},
                 {"PID", OPTIONVALUE_PID},
                 {"PID|RECORDING", OPTIONVALUE_PROGRAM}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].name, name) == 0) {
            return known[i].kind;
        }
    }
    return option_has_words(name) ? OPTIONVALUE_WORDS : OPTIONVALUE_ANY;
}

/* The n-th of a command's operands ("PID on|off"), from 0 on; behind the last one: the last. ""
 * where there are none (NULL). */
static void optionvalue_operand(const char *operands, size_t n, char text[OPTIONVALUE_SIZE]) {
    const char *next = operands;
    text[0] = '\0';
    for (size_t i = 0; next != NULL && i <= n; i++) {
        size_t length = strcspn(next, " ");
        snprintf(text, OPTIONVALUE_SIZE, "%.*s", (int)length, next);
        next = next[length] != '\0' ? next + length + 1 : NULL;
    }
}

/* ---- What all three go through ---- */

/* The filters stand once, and commands that take them refer to them: `command` is NULL there. */
typedef void (*option_writer)(const struct command *command, const struct option *option,
                              const char *help);

/* Those of a table that stands there with other names. */
static void each_prefixed(const struct option *prefix, const struct command *command,
                          option_writer write) {
    struct option_walk walk = option_walk_start(prefix->part);
    const struct option *option;
    while ((option = option_walk_next(&walk)) != NULL) {
        struct option named = *option;
        char name[64];
        if (!option_is_heading(option) && option->key != OPTION_HELP) {
            snprintf(name, sizeof name, "%s%s", prefix->name, option->name);
            named.name = name;
            write(command, &named, prefix->help);
        }
    }
}

static void each_row(struct option_walk walk, const struct command *command, option_writer write) {
    const struct option *option;
    const char *help = "";
    while ((option = option_walk_next(&walk)) != NULL) {
        if (option_is_prefix(option)) {
            each_prefixed(option, command, write);
        } else if (!option_is_heading(option) && (command != NULL || option->key != OPTION_HELP)) {
            help = option->help != NULL ? option->help : help;
            write(command, option, help);
        }
    }
}

/* Hands over every option of a command that a user may type, other names included, but filters. */
static void each_option(const struct command *command, option_writer write) {
    struct option_walk walk = option_walk_start(command->options);
    walk.without = filter_options;
    each_row(walk, command, write);
}

static void each_filter(option_writer write) {
    each_row(option_walk_start(filter_options), NULL, write);
}

static bool takes_filters(const struct command *command) {
    return option_has_part(command->options, filter_options);
}

static void each_command(void (*write)(const struct command *command)) {
    for (const struct command *const *command = commands; *command != NULL; command++) {
        if ((*command)->summary != NULL) {
            write(*command);
        }
    }
}

/* "auto|always|never" with blanks between. */
static void print_words(const char *words) {
    for (; *words != '\0'; words++) {
        putchar(*words == '|' ? ' ' : *words);
    }
}

/* Up to the end of its first clause: a list of options has a line for each. */
static int brief_length(const char *help) {
    return (int)strcspn(help, ";:(\n");
}

/* ---- bash ---- */

static void bash_name(const struct command *command, const struct option *option,
                      const char *help) {
    (void)command;
    (void)help;
    printf(" --%s", option->name);
}

/* The shell commands that fill COMPREPLY with such values. */
static void bash_values(const char *value) {
    static const char *const commands_of[] = {
        [OPTIONVALUE_ANY] = ":",
        [OPTIONVALUE_FILE] = "_memtrace_files '*'",
        [OPTIONVALUE_FOLDER] = "_memtrace_reply -d",
        [OPTIONVALUE_COMMAND] = "_memtrace_reply -c",
        [OPTIONVALUE_FORMAT] =
            "_memtrace_reply -W \"$(memtrace export --list 2>/dev/null | awk '{print $1}')\"",
        [OPTIONVALUE_TIME] = "_memtrace_reply -W 'start end peak mark:'",
        [OPTIONVALUE_PROFILE] = "_memtrace_files '*.mt[pr]'",
        [OPTIONVALUE_RECORDING] = "_memtrace_files '*.mtr'",
        [OPTIONVALUE_PID] = "_memtrace_reply -W \"$(cd /proc && echo [0-9]*)\"",
        [OPTIONVALUE_PROGRAM] = ("_memtrace_files '*.mtr'; COMPREPLY+=($(compgen -W "
                                 "\"$(cd /proc && echo [0-9]*)\" -- \"$current\"))")};
    enum optionvalue kind = optionvalue_of(value);
    if (kind == OPTIONVALUE_WORDS) {
        fputs("_memtrace_reply -W '", stdout);
        print_words(value);
        putchar('\'');
    } else {
        fputs(commands_of[kind], stdout);
    }
}

static void bash_case(const struct command *command, const struct option *option,
                      const char *help) {
    (void)command;
    (void)help;
    if (option->value == NULL) {
        return;
    }
    printf("        --%s", option->name);
    if (option->letter != 0) {
        printf(" | -%c", option->letter);
    }
    fputs(") ", stdout);
    bash_values(option->value);
    puts("; return 0 ;;");
}

static void bash_command(const struct command *command) {
    char first[OPTIONVALUE_SIZE];
    char second[OPTIONVALUE_SIZE];
    printf("    %s)\n        case $previous in\n", command->name);
    each_option(command, bash_case);
    puts(takes_filters(command) ? "        *) _memtrace_filter && return ;;\n        esac"
                                : "        esac");
    fputs("        options='", stdout);
    each_option(command, bash_name);
    puts(takes_filters(command) ? "'$_memtrace_filters" : "'");
    optionvalue_operand(command->operands, 0, first);
    optionvalue_operand(command->operands, 1, second);
    if (command->operands != NULL && strcmp(first, second) != 0) {
        fputs("        [[ $current == -* || COMP_CWORD -eq 2 ]] || { ", stdout);
        bash_values(second);
        puts("; return; }");
    }
    if (command->operands != NULL) {
        fputs("        [[ $current == -* ]] || { ", stdout);
        bash_values(first);
        puts("; return; }");
    }
    puts("        ;;");
}

static void bash_command_name(const struct command *command) {
    printf(" %s", command->name);
}

static void print_bash_filters(void) {
    fputs("_memtrace_filters='", stdout);
    each_filter(bash_name);
    puts("'\n"
         "_memtrace_filter() {\n"
         "    case $previous in");
    each_filter(bash_case);
    puts("    esac\n"
         "    return 1\n"
         "}");
}

static void print_bash(void) {
    puts("# SPDX-License-Identifier: MIT\n"
         "# bash completion of the memtrace command; made by `memtrace completion bash`\n"
         "_memtrace_reply() {\n"
         "    COMPREPLY=($(compgen \"$@\" -- \"$current\"))\n"
         "}\n"
         "_memtrace_files() {\n"
         "    COMPREPLY=($(compgen -f -X \"!$1\" -- \"$current\") $(compgen -d -- \"$current\"))\n"
         "}");
    print_bash_filters();
    puts("_memtrace() {\n"
         "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
         "    local command=${COMP_WORDS[1]} options='' i\n"
         "    COMPREPLY=()");
    fputs("    if ((COMP_CWORD == 1)); then\n        _memtrace_reply -W '--help --version", stdout);
    each_command(bash_command_name);
    puts("'\n        return\n    fi\n"
         "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
         "        [[ ${COMP_WORDS[i]} == -- ]] || continue\n"
         "        ((i == COMP_CWORD - 1)) && _memtrace_reply -c || _memtrace_files '*'\n"
         "        return\n"
         "    done\n"
         "    case $command in");
    each_command(bash_command);
    puts("    esac\n"
         "    _memtrace_reply -W \"$options\"\n"
         "}\n"
         "complete -o filenames -F _memtrace memtrace");
}

/* ---- zsh ---- */

/* Text in '...' of _arguments: quotes end it, brackets and colons would be its own. */
static void zsh_text(const char *text, int length) {
    for (int i = 0; i < length; i++) {
        if (text[i] == '\'') {
            fputs("'\\''", stdout);
        } else if (strchr("[]:\\", text[i]) != NULL) {
            printf("\\%c", text[i]);
        } else {
            putchar(text[i]);
        }
    }
}

static void zsh_values(const char *value) {
    static const char *const actions[] = {
        [OPTIONVALUE_ANY] = "",
        [OPTIONVALUE_FILE] = "_files",
        [OPTIONVALUE_FOLDER] = "_files -/",
        [OPTIONVALUE_COMMAND] = "_command_names",
        [OPTIONVALUE_FORMAT] = "($(memtrace export --list 2>/dev/null | awk \"{print \\$1}\"))",
        [OPTIONVALUE_TIME] = "(start end peak mark\\:)",
        [OPTIONVALUE_PROFILE] = "_files -g \"*.mt[pr](-.)\"",
        [OPTIONVALUE_RECORDING] = "_files -g \"*.mtr(-.)\"",
        [OPTIONVALUE_PID] = "_pids",
        [OPTIONVALUE_PROGRAM] = "{_pids; _files -g \"*.mtr(-.)\"}"};
    enum optionvalue kind = optionvalue_of(value);
    if (kind == OPTIONVALUE_WORDS) {
        fputs(":(", stdout);
        print_words(value);
        putchar(')');
    } else {
        printf(":%s", actions[kind]);
    }
}

static void zsh_spec(const char *name, const char *value, const char *help) {
    printf(" \\\n            '*%s[", name);
    zsh_text(help, brief_length(help));
    putchar(']');
    if (value != NULL) {
        putchar(':');
        zsh_text(value, (int)strlen(value));
        zsh_values(value);
    }
    putchar('\'');
}

static void zsh_option(const struct command *command, const struct option *option,
                       const char *help) {
    char name[OPTIONVALUE_SIZE];
    (void)command;
    snprintf(name, sizeof name, "--%s", option->name);
    zsh_spec(name, option->value, help);
    if (option->letter != 0) {
        snprintf(name, sizeof name, "-%c", option->letter);
        zsh_spec(name, option->value, help);
    }
}

static void zsh_operands(const struct command *command) {
    for (size_t i = 0; command->operands != NULL && i < 2; i++) {
        char operand[OPTIONVALUE_SIZE];
        optionvalue_operand(command->operands, i, operand);
        printf(" \\\n            '%s:", i == 0 ? "1" : "*");
        zsh_text(operand, (int)strlen(operand));
        zsh_values(operand);
        putchar('\'');
    }
    if (command->takes_program) {
        fputs(" \\\n            '*::program:_normal'", stdout);
    }
}

static void zsh_command(const struct command *command) {
    printf("    %s)\n        _arguments", command->name);
    each_option(command, zsh_option);
    if (takes_filters(command)) {
        fputs(" \\\n            $filters", stdout);
    }
    zsh_operands(command);
    puts("\n        ;;");
}

static void zsh_summary(const struct command *command) {
    printf("        '%s:", command->name);
    zsh_text(command->summary, (int)strlen(command->summary));
    puts("'");
}

static void print_zsh(void) {
    puts("#compdef memtrace\n"
         "# SPDX-License-Identifier: MIT\n"
         "# zsh completion of the memtrace command; made by `memtrace completion zsh`\n"
         "_memtrace() {\n"
         "    local -a commands filters\n"
         "    commands=(");
    each_command(zsh_summary);
    fputs("    )\n    filters=(", stdout);
    each_filter(zsh_option);
    puts(")\n"
         "    if ((CURRENT == 2)); then\n"
         "        _describe command commands\n"
         "        return\n"
         "    fi\n"
         "    local command=$words[2]\n"
         "    shift words\n"
         "    ((CURRENT--))\n"
         "    case $command in");
    each_command(zsh_command);
    puts("    esac\n"
         "}\n"
         "_memtrace \"$@\"");
}

/* ---- fish ---- */

static void fish_text(const char *text, int length) {
    for (int i = 0; i < length; i++) {
        if (text[i] == '\'' || text[i] == '\\') {
            putchar('\\');
        }
        putchar(text[i]);
    }
}

static void fish_values(const char *value) {
    static const char *const actions[] = {
        [OPTIONVALUE_ANY] = " -x",
        [OPTIONVALUE_FILE] = " -r -F",
        [OPTIONVALUE_FOLDER] = " -x -a '(__fish_complete_directories)'",
        [OPTIONVALUE_COMMAND] = " -x -a '(__fish_complete_command)'",
        [OPTIONVALUE_FORMAT] =
            " -x -a '(memtrace export --list 2>/dev/null | string match -r \"\\w+\")'",
        [OPTIONVALUE_TIME] = " -x -a 'start end peak mark:'",
        [OPTIONVALUE_PROFILE] = " -a '(__fish_complete_suffix .mtp; __fish_complete_suffix .mtr)'",
        [OPTIONVALUE_RECORDING] = " -a '(__fish_complete_suffix .mtr)'",
        [OPTIONVALUE_PID] = " -a '(__fish_complete_pids)'",
        [OPTIONVALUE_PROGRAM] = " -a '(__fish_complete_pids; __fish_complete_suffix .mtr)'"};
    enum optionvalue kind = optionvalue_of(value);
    if (kind == OPTIONVALUE_WORDS) {
        fputs(" -x -a '", stdout);
        print_words(value);
        putchar('\'');
    } else {
        fputs(actions[kind], stdout);
    }
}

static void fish_option(const struct command *command, const struct option *option,
                        const char *help) {
    printf(command != NULL ? "complete -c memtrace -n '__memtrace_on %s' -l %s"
                           : "    complete -c memtrace -n \"__memtrace_on $command%s\" -l %s",
           command != NULL ? command->name : "", option->name);
    if (option->letter != 0) {
        printf(" -s %c", option->letter);
    }
    if (option->value != NULL) {
        fish_values(option->value);
    }
    fputs(" -d '", stdout);
    fish_text(help, brief_length(help));
    puts("'");
}

static void fish_command(const struct command *command) {
    printf("complete -c memtrace -f -n __fish_use_subcommand -a %s -d '", command->name);
    fish_text(command->summary, (int)strlen(command->summary));
    puts("'");
    for (size_t i = 0; command->operands != NULL && i < 2; i++) {
        char operand[OPTIONVALUE_SIZE];
        char before[OPTIONVALUE_SIZE];
        optionvalue_operand(command->operands, i, operand);
        optionvalue_operand(command->operands, 0, before);
        if (i == 0 || strcmp(operand, before) != 0) {
            printf("complete -c memtrace -n '__memtrace_on %s'", command->name);
            fish_values(operand);
            putchar('\n');
        }
    }
    if (command->takes_program) {
        printf("complete -c memtrace -n '__memtrace_on %s' -a '(__fish_complete_command)'\n",
               command->name);
    }
    each_option(command, fish_option);
}

static void fish_filtered(const struct command *command) {
    if (takes_filters(command)) {
        printf(" %s", command->name);
    }
}

static void print_fish(void) {
    puts("# SPDX-License-Identifier: MIT\n"
         "# fish completion of the memtrace command; made by `memtrace completion fish`\n"
         "function __memtrace_on\n"
         "    set -l words (commandline -opc)\n"
         "    test (count $words) -ge 2; and test $words[2] = $argv[1]\n"
         "end");
    each_command(fish_command);
    fputs("for command in", stdout);
    each_command(fish_filtered);
    putchar('\n');
    each_filter(fish_option);
    puts("end");
}

/* ---- The command ---- */

static const struct {
    const char *name;
    void (*print)(void);
} shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};

static int run_completion(int argc, char **argv) {
    int status = cli_read(&completion_command, &argc, &argv, NULL);
    if (status != CLI_OK) {
        return status;
    }
    if (argc != 1) {
        return cli_usage("completion", "which shell? bash, zsh or fish");
    }
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
        if (strcmp(shells[i].name, argv[0]) == 0) {
            shells[i].print();
            return cli_finish(CLI_OK);
        }
    }
    return cli_usage("completion", "there is no completion for '%s': bash, zsh or fish", argv[0]);
}

const struct command completion_command = {
    .name = "completion",
    .run = run_completion,
    .summary = "print what makes a shell complete the command's options",
    .usage = "bash|zsh|fish",
    .about = "Prints a completion script. An installed MemTrace has them where shells look; where "
             "it is not installed:\n"
             "  bash:  source <(memtrace completion bash)\n"
             "  zsh:   source <(memtrace completion zsh)\n"
             "  fish:  memtrace completion fish | source",
    .operands = "bash|zsh|fish",
};

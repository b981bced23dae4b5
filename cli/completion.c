/* SPDX-License-Identifier: MIT */
/*
 * completion.c: what a shell offers for a word that is being typed. `memtrace complete -- WORD...`
 * answers, from the tables of options; the scripts of three shells (completion/), which
 * `memtrace completion SHELL` prints, ask it and do what only a shell does well.
 *
 * The words are those behind "memtrace" up to the one being typed, which may be empty. Each line of
 * the answer is a word, or a word, a tab and what it stands for, or one of:
 *
 *     :files           any file         :commands     of $PATH
 *     :files .mtr ...  ending so        :program N    the N-th word begins a command line of its
 * own :folders                                        ("memtrace" is the 0-th)
 */
#include "analyze/rows/safetext.h"
#include "cli/cli.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>

/* cli/completion/memtrace.* (cmake/embed.cmake) */
extern const char completion_memtrace_bash[];
extern const char completion_memtrace_zsh[];
extern const char completion_memtrace_fish[];

/* ---- What an option or an operand takes, by the name it has in the help ---- */

static void offer_processes(void) {
    DIR *folder = opendir("/proc");
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        char path[sizeof entry->d_name + sizeof "/proc//comm"];
        char name[64] = "";
        FILE *file;
        if (!isdigit((unsigned char)entry->d_name[0])) {
            continue;
        }
        snprintf(path, sizeof path, "/proc/%s/comm", entry->d_name);
        file = fopen(path, "re");
        if (file != NULL) {
            if (fgets(name, sizeof name, file) != NULL) {
                name[strcspn(name, "\n")] = '\0';
            }
            fclose(file);
        }
        printf("%s\t", entry->d_name);
        put_safe(stdout, name);
        putchar('\n');
    }
    if (folder != NULL) {
        closedir(folder);
    }
}

static void offer_values(const struct command *command, const char *value) {
    static const struct {
        const char *name;
        const char *line; /* NULL: processes */
        bool has_processes;
    } known[] = {{"FILE", ":files", false},
                 {"PATTERN", ":files", false},
                 {"FOLDER", ":folders", false},
                 {"FOLDERS", ":folders", false},
                 {"COMMAND", ":commands", false},
                 {"T", "start\nend\npeak\nmark:", false},
                 {"T..T", "start\nend\npeak\nmark:", false},
                 {"T[,T]", "start\nend\npeak\nmark:", false},
                 {"PROFILE", ":files .mtp .mtr", false},
                 {"RECORDING", ":files .mtr", false},
                 {"PID", NULL, true},
                 {"PID|RECORDING", ":files .mtr", true}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].name, value) == 0) {
            if (known[i].line != NULL) {
                puts(known[i].line);
            }
            if (known[i].has_processes) {
                offer_processes();
            }
            return;
        }
    }
    if (command->offer != NULL && command->offer(value)) {
        return;
    }
    if (option_has_words(value)) {
        for (; *value != '\0'; value++) {
            putchar(*value == '|' ? '\n' : *value);
        }
        putchar('\n');
    }
}

/* ---- Options and commands ---- */

static void offer_options(const struct option *options, const char *prefix, const char *of_all) {
    struct option_walk walk = option_walk_start(options);
    const struct option *option;
    const char *help = "";
    while ((option = option_walk_next(&walk)) != NULL) {
        if (option_is_prefix(option)) {
            offer_options(option->part, option->name, option->help);
        } else if (!option_is_heading(option) && (of_all == NULL || option->key != OPTION_HELP)) {
            help = of_all != NULL ? of_all : option->help != NULL ? option->help : help;
            /* Up to the end of its first clause: a list has a line for each. */
            printf("--%s%s\t%.*s\n", prefix, option->name, (int)strcspn(help, ";:(\n"), help);
        }
    }
}

static void offer_commands(void) {
    for (const struct command *const *command = commands; *command != NULL; command++) {
        if ((*command)->summary != NULL) {
            printf("%s\t%s\n", (*command)->name, (*command)->summary);
        }
    }
}

/* ---- Where the word stands ---- */

/* What stands before the word that is being typed. */
struct place {
    const struct option *open; /* it wants a value; NULL: none does */
    size_t operands;
    size_t program;   /* where the program's own words begin; 0: they have not */
    bool is_operands; /* "--" was there */
};

static struct place read_place(const struct command *command, size_t count, char **words) {
    struct place place = {0};
    for (size_t i = 1; i + 1 < count && place.program == 0; i++) {
        const char *value = NULL;
        if (place.open != NULL) {
            place.open = strcmp(words[i], "=") == 0 ? place.open : NULL;
        } else if (place.is_operands || words[i][0] != '-' || words[i][1] == '\0') {
            place.operands++;
            place.program = command->takes_program ? i + 1 : 0;
        } else if (strcmp(words[i], "--") == 0) {
            place.is_operands = true;
            place.program = command->takes_program ? i + 2 : 0;
        } else {
            place.open = cli_option(command, words[i], &value);
            place.open = place.open != NULL && value == NULL && place.open->value != NULL
                             ? place.open
                             : NULL;
        }
    }
    return place;
}

/* The n-th of a command's operands ("PID on|off"), from 0 on; behind the last one: the last. */
static void offer_operand(const struct command *command, size_t n) {
    char operand[64];
    const char *next = command->operands;
    while (n-- != 0 && strchr(next, ' ') != NULL) {
        next = strchr(next, ' ') + 1;
    }
    snprintf(operand, sizeof operand, "%.*s", (int)strcspn(next, " "), next);
    offer_values(command, operand);
}

static void offer(const struct command *command, size_t count, char **words) {
    struct place place = read_place(command, count, words);
    const char *word = words[count - 1];
    const char *value = NULL;
    if (place.program != 0) {
        printf(":program %zu\n", place.program);
    } else if (place.open != NULL) {
        offer_values(command, place.open->value);
    } else if (!place.is_operands && strncmp(word, "--", 2) == 0 && strchr(word, '=') != NULL) {
        const struct option *option = cli_option(command, word, &value);
        if (option != NULL && option->value != NULL) {
            offer_values(command, option->value);
        }
    } else if (!place.is_operands && word[0] == '-') {
        offer_options(command->options, "", NULL);
    } else if (command->takes_program) {
        printf(":program %zu\n", count);
    } else if (command->operands != NULL) {
        offer_operand(command, place.operands);
    } else {
        offer_options(command->options, "", NULL);
    }
}

static int run_complete(int argc, char **argv) {
    size_t skip = argc > 1 && strcmp(argv[1], "--") == 0 ? 2 : 1; /* no option is ours */
    size_t count = (size_t)argc - skip;
    char **words = argv + skip;
    const struct command *command = count > 1 ? command_find(words[0]) : NULL;
    if (count == 1) {
        offer_commands();
        puts("--help\n--version");
    } else if (count == 2 && strcmp(words[0], "help") == 0) {
        offer_commands();
    } else if (command != NULL) {
        offer(command, count, words);
    }
    return cli_finish(CLI_OK);
}

const struct command complete_command = {.name = "complete", .run = run_complete};

/* ---- The scripts ---- */

static int run_completion(int argc, char **argv) {
    static const struct {
        const char *name;
        const char *script;
    } shells[] = {{"bash", completion_memtrace_bash},
                  {"zsh", completion_memtrace_zsh},
                  {"fish", completion_memtrace_fish}};
    cli_read(&completion_command, &argc, &argv, NULL);
    if (argc != 1) {
        cli_usage("completion", "which shell? bash, zsh or fish");
    }
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
        if (strcmp(shells[i].name, argv[0]) == 0) {
            fputs(shells[i].script, stdout);
            return cli_finish(CLI_OK);
        }
    }
    cli_usage("completion", "there is no completion for '%s': bash, zsh or fish", argv[0]);
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

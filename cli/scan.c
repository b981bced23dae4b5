/* SPDX-License-Identifier: MIT */
/* scan.c: reading a command line by its table of options. See cli.h. */
#include "cli/cli.h"
#include "cli/nearest.h"

#include <stdlib.h>
#include <string.h>

enum { CHOICES = 16 };

/* One answer to a question that has one answer. */
struct choice {
    size_t at; /* where it is stored in the request */
    const char *value;
    const struct option *option;
};

struct scan {
    const char *command;
    int argc;
    char **argv;
    const struct option *options;
    int index;    /* next argument; at the end of options: the first operand */
    int operands; /* met so far: they stand behind argv[index] */
    bool permute; /* operands may stand between options; they are moved behind them */
    bool is_quiet;
    /* The option that was found last. */
    const struct option *option;
    size_t base;       /* where its offsets count from */
    const char *value; /* NULL if it has none */
    struct choice choices[CHOICES];
    size_t choice_count;
};

static struct scan start(const struct command *command, int argc, char **argv) {
    return (struct scan){.command = command->name,
                         .argc = argc,
                         .argv = argv,
                         .options = command->options,
                         .index = 1,
                         .permute = !command->takes_program};
}

/* Moves argv[from] down to argv[to]; those between move up. */
static void move_argument(char **argv, int from, int to) {
    char *argument = argv[from];
    memmove(&argv[to + 1], &argv[to], (size_t)(from - to) * sizeof *argv);
    argv[to] = argument;
}

/* Brings the next option to scan->index. Operands met so far stand behind it. */
static bool find_option(struct scan *scan) {
    for (int i = scan->index; i < scan->argc; i++) {
        if (scan->argv[i][0] == '-' && scan->argv[i][1] != '\0') {
            scan->operands = i - scan->index;
            move_argument(scan->argv, i, scan->index);
            return true;
        }
        if (!scan->permute) {
            break;
        }
    }
    return false;
}

/* How long the name is that an argument spells: "--json=3". */
static size_t name_length(const char *argument) {
    return strcspn(argument, "=") - 2;
}

static bool is_meant(const struct option *option, const char *argument) {
    if (argument[1] != '-') {
        return option->letter == argument[1];
    }
    return option->name != NULL && strlen(option->name) == name_length(argument) &&
           strncmp(option->name, argument + 2, strlen(option->name)) == 0;
}

static void match_option(struct scan *scan, const char *argument) {
    const char *equals = strchr(argument, '=');
    struct option_walk walk = option_walk_start(scan->options);
    do {
        scan->option = option_walk_next(&walk);
    } while (scan->option != NULL && !is_meant(scan->option, argument));
    scan->base = walk.base;
    if (argument[1] == '-') {
        scan->value = equals != NULL ? equals + 1 : NULL;
    } else {
        scan->value = argument[2] != '\0' ? argument + 2 : NULL;
    }
}

/* "--jsno", "--jsno=3": prints which one was meant. */
static int refuse_option(const struct scan *scan, const char *argument) {
    bool is_long = argument[1] == '-';
    struct nearest nearest = nearest_to(argument + 2, is_long ? name_length(argument) : 0);
    struct option_walk walk = option_walk_start(scan->options);
    const struct option *option;
    while (is_long && (option = option_walk_next(&walk)) != NULL) {
        if (option->name != NULL) {
            nearest_offer(&nearest, option->name);
        }
    }
    return cli_usage(scan->command, "there is no option %.*s%s%s%s", (int)strcspn(argument, "="),
                     argument, nearest.name != NULL ? ": did you mean --" : "",
                     nearest.name != NULL ? nearest.name : "", nearest.name != NULL ? "?" : "");
}

/* The value in the next argument, which stands behind the operands met so far. */
static const char *next_value(struct scan *scan) {
    int at = scan->index + scan->operands;
    if (at >= scan->argc) {
        return NULL;
    }
    move_argument(scan->argv, at, scan->index);
    return scan->argv[scan->index++];
}

/* Finds the next option. 1, 0 at the end, -1 after an error (its line is printed). */
static int next(struct scan *scan) {
    const char *argument;
    const char *wrong = NULL;
    if (!find_option(scan)) {
        return 0;
    }
    argument = scan->argv[scan->index++];
    if (strcmp(argument, "--") == 0) {
        return 0;
    }
    match_option(scan, argument);
    if (scan->option != NULL && scan->option->value != NULL && scan->value == NULL) {
        scan->value = next_value(scan);
        wrong = scan->value == NULL ? "needs a value" : NULL;
    } else if (scan->option != NULL && scan->option->value == NULL && scan->value != NULL) {
        wrong = "takes no value";
    }
    if (scan->option != NULL && wrong == NULL) {
        return 1;
    }
    if (!scan->is_quiet && scan->option == NULL) {
        refuse_option(scan, argument);
    } else if (!scan->is_quiet) {
        cli_usage(scan->command, "option --%s %s", scan->option->name, wrong);
    }
    return -1;
}

/* "--format json" or "--flat", with the blank or without. */
static int contradict(const struct scan *scan, const struct choice *old, const char *value) {
    bool had_value = old->option->value != NULL;
    bool has_value = scan->option->value != NULL;
    return cli_usage(scan->command, "--%s%s%s and --%s%s%s exclude each other", old->option->name,
                     had_value ? " " : "", had_value ? old->value : "", scan->option->name,
                     has_value ? " " : "", has_value ? value : "");
}

/* Of what has one answer: whether there was another one. The same again is fine. */
static int choose(struct scan *scan) {
    const struct option *option = scan->option;
    const char *value = option->implied != NULL ? option->implied : scan->value;
    size_t at = scan->base + option->offset;
    for (size_t i = 0; i < scan->choice_count; i++) {
        if (scan->choices[i].at == at) {
            return strcmp(scan->choices[i].value, value) == 0
                       ? CLI_OK
                       : contradict(scan, &scan->choices[i], value);
        }
    }
    if (scan->choice_count < CHOICES) {
        scan->choices[scan->choice_count++] = (struct choice){at, value, option};
    }
    return CLI_OK;
}

int cli_read(const struct command *command, int *argc, char ***argv, void *request) {
    struct scan scan = start(command, *argc, *argv);
    struct error error;
    int found;
    while ((found = next(&scan)) > 0) {
        if (option_store(scan.option, scan.value, (char *)request + scan.base, &error) != 0) {
            return cli_usage(scan.command, "%s", error.message);
        }
        if (scan.option->is_choice && choose(&scan) != CLI_OK) {
            return CLI_USAGE;
        }
    }
    *argc -= scan.index;
    *argv += scan.index;
    return found < 0 ? CLI_USAGE : CLI_OK;
}

int cli_one(const struct command *command, int argc, char **argv, const char *what,
            const char **operand) {
    *operand = argc > 0 ? argv[0] : NULL;
    if (argc > 1) {
        return cli_usage(command->name, "one file at a time: '%s' is one too many", argv[1]);
    }
    return argc == 1 || what == NULL ? CLI_OK : cli_usage(command->name, "%s is needed", what);
}

/* Whether --help stands where options do. */
static bool wants_help(const struct command *command, int argc, char **argv) {
    char **copy = calloc((size_t)argc + 1, sizeof *copy);
    struct scan scan = start(command, argc, copy);
    bool wanted = false;
    if (copy == NULL) {
        return false;
    }
    memcpy(copy, argv, (size_t)argc * sizeof *copy);
    scan.is_quiet = true;
    while (!wanted && next(&scan) > 0) {
        wanted = scan.option->key == OPTION_HELP;
    }
    free(copy);
    return wanted;
}

int cli_run(const struct command *command, int argc, char **argv) {
    if (wants_help(command, argc, argv)) {
        help_print(command);
        return cli_finish(CLI_OK);
    }
    return command->run(argc, argv);
}

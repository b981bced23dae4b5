/* SPDX-License-Identifier: MIT */
/* scan.c: reading a command line by its table of options. See cli.h. */
#include "cli/cli.h"
#include "cli/nearest.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cli_scan cli_scan_start(const char *command, int argc, char **argv,
                               const struct option *options) {
    return (struct cli_scan){
        .command = command, .argc = argc, .argv = argv, .options = options, .index = 1};
}

/* Moves argv[from] down to argv[to]; those between move up. */
static void move_argument(char **argv, int from, int to) {
    char *argument = argv[from];
    memmove(&argv[to + 1], &argv[to], (size_t)(from - to) * sizeof *argv);
    argv[to] = argument;
}

/* With permute: brings the next option to scan->index. Operands met so far stand behind it. */
static bool find_option(struct cli_scan *scan) {
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

static void __attribute__((format(printf, 2, 3)))
refuse(const struct cli_scan *scan, const char *format, ...) {
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!scan->is_quiet) {
        cli_usage(scan->command, "%s", text);
    }
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

static const struct option *match_option(const struct cli_scan *scan, const char *argument,
                                         const char **value) {
    const char *equals = strchr(argument, '=');
    struct option_walk walk = option_walk_start(scan->options);
    const struct option *option;
    do {
        option = option_walk_next(&walk);
    } while (option != NULL && !is_meant(option, argument));
    if (argument[1] == '-') {
        *value = equals != NULL ? equals + 1 : NULL;
    } else {
        *value = argument[2] != '\0' ? argument + 2 : NULL;
    }
    return option;
}

/* "--jsno", "--jsno=3": prints which one was meant. */
static void refuse_option(const struct cli_scan *scan, const char *argument) {
    bool is_long = argument[1] == '-';
    struct nearest nearest = nearest_to(argument + 2, is_long ? name_length(argument) : 0);
    struct option_walk walk = option_walk_start(scan->options);
    const struct option *option;
    while (is_long && (option = option_walk_next(&walk)) != NULL) {
        if (option->name != NULL) {
            nearest_offer(&nearest, option->name);
        }
    }
    refuse(scan, "there is no option %.*s%s%s%s", (int)strcspn(argument, "="), argument,
           nearest.name != NULL ? ": did you mean --" : "",
           nearest.name != NULL ? nearest.name : "", nearest.name != NULL ? "?" : "");
}

/* The value in the next argument, which stands behind the operands met so far. */
static const char *next_value(struct cli_scan *scan) {
    int at = scan->index + scan->operands;
    if (at >= scan->argc) {
        return NULL;
    }
    move_argument(scan->argv, at, scan->index);
    return scan->argv[scan->index++];
}

int cli_scan_next(struct cli_scan *scan) {
    const struct option *option;
    const char *value;
    const char *argument;
    if (!find_option(scan)) {
        return 0;
    }
    argument = scan->argv[scan->index++];
    if (strcmp(argument, "--") == 0) {
        return 0;
    }
    option = match_option(scan, argument, &value);
    if (option == NULL) {
        refuse_option(scan, argument);
        return -1;
    }
    scan->option = option;
    scan->name = argument;
    scan->value = value;
    if (option->value == NULL && value != NULL) {
        refuse(scan, "option --%s takes no value: %s", option->name, argument);
        return -1;
    }
    if (option->value != NULL && value == NULL) {
        scan->value = next_value(scan);
        if (scan->value == NULL) {
            refuse(scan, "option %s needs a value", argument);
            return -1;
        }
    }
    return option->key;
}

int cli_scan_all(struct cli_scan *scan,
                 int (*take)(void *request, const struct cli_scan *scan, int key), void *request) {
    int status = CLI_OK;
    int key = 0;
    scan->permute = true;
    while (status == CLI_OK && (key = cli_scan_next(scan)) > 0) {
        status = take(request, scan, key);
    }
    return key < 0 ? CLI_USAGE : status;
}

int cli_choose(const struct cli_scan *scan, const char **chosen, const char *choice) {
    if (*chosen != NULL && strcmp(*chosen, choice) != 0) {
        return cli_usage(scan->command, "%s and %s exclude each other", *chosen, choice);
    }
    *chosen = choice;
    return CLI_OK;
}

/* Whether --help stands where options do. */
static bool wants_help(const struct command *command, int argc, char **argv) {
    char **copy = calloc((size_t)argc + 1, sizeof *copy);
    struct cli_scan scan = cli_scan_start(command->name, argc, copy, command->options);
    int key = 0;
    if (copy == NULL) {
        return false;
    }
    memcpy(copy, argv, (size_t)argc * sizeof *copy);
    scan.permute = !command->takes_program;
    scan.is_quiet = true;
    do {
        key = cli_scan_next(&scan);
    } while (key > 0 && key != OPTION_HELP);
    free(copy);
    return key == OPTION_HELP;
}

int cli_run(const struct command *command, int argc, char **argv) {
    if (wants_help(command, argc, argv)) {
        help_print(command);
        return cli_finish(CLI_OK);
    }
    return command->run(argc, argv);
}

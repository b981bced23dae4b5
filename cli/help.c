/* SPDX-License-Identifier: MIT */
/* help.c: what --help prints, from a command's table of options. See command.h. */
#include "cli/command.h"

#include <stdio.h>
#include <string.h>

enum { WIDTH = 79, TEXT_COLUMN = 28, NAME_SIZE = 100 };

/* "  -o, --output FILE" */
static int spell(const struct option *option, char *text, size_t size) {
    char letter[8] = "    ";
    if (option->letter != 0) {
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    }
    return snprintf(text, size, "  %s--%s%s%s", letter, option->name,
                    option->value != NULL ? " " : "", option->value != NULL ? option->value : "");
}

/* How much of the text goes into a line with so much room: up to a blank or its own line's end. */
static size_t line_length(const char *text, size_t room) {
    size_t length = strcspn(text, "\n");
    if (length <= room) {
        return length;
    }
    while (room > 0 && text[room] != ' ') {
        room--;
    }
    return room > 0 ? room : length;
}

/* From `column` on, where the cursor is; lines that follow begin there, too. */
static void print_wrapped(const char *text, int column) {
    while (*text != '\0') {
        size_t length = line_length(text, (size_t)(WIDTH - column));
        printf("%.*s\n", (int)length, text);
        text += length;
        text += *text == ' ' || *text == '\n';
        if (*text != '\0' && *text != '\n') {
            printf("%*s", column, "");
        }
    }
}

static void print_option(const struct option *option, const char *help) {
    char name[NAME_SIZE];
    int length = spell(option, name, sizeof name);
    fputs(name, stdout);
    if (length > TEXT_COLUMN - 2) {
        putchar('\n');
        length = 0;
    }
    printf("%*s", TEXT_COLUMN - length, "");
    print_wrapped(help, TEXT_COLUMN);
}

/* The help of an option, with its other names, which stand behind it in the table. */
static void add_other_names(struct option_walk walk, char *help, size_t size) {
    const struct option *other = option_walk_next(&walk);
    const char *joint = " (also ";
    size_t used = strlen(help);
    for (; other != NULL && option_is_alias(other) && used < size; joint = ", ") {
        used += (size_t)snprintf(help + used, size - used, "%s--%s", joint, other->name);
        other = option_walk_next(&walk);
    }
    if (joint[0] == ',' && used < size) {
        snprintf(help + used, size - used, ")");
    }
}

void option_help(const struct option *option, const struct option_walk *walk, char *help,
                 size_t size) {
    snprintf(help, size, "%s", option->help);
    add_other_names(*walk, help, size);
}

static void print_usage(const struct command *command) {
    const char *form = command->usage;
    const char *lead = "usage: ";
    while (*form != '\0') {
        size_t length = strcspn(form, "\n");
        printf("%smemtrace %s %.*s\n", lead, command->name, (int)length, form);
        form += length + (form[length] == '\n');
        lead = "       ";
    }
}

void help_print(const struct command *command) {
    struct option_walk walk = option_walk_start(command->options);
    const struct option *option;
    char help[OPTION_HELP_SIZE];
    print_usage(command);
    putchar('\n');
    print_wrapped(command->about, 0);
    for (bool is_first = true; (option = option_walk_next(&walk)) != NULL; is_first = false) {
        if (is_first || option_is_heading(option)) {
            putchar('\n');
        }
        if (option_is_heading(option)) {
            printf("%s:\n", option->help);
        } else if (!option_is_alias(option)) {
            option_help(option, &walk, help, sizeof help);
            print_option(option, help);
        }
    }
    if (command->more != NULL) {
        putchar('\n');
        command->more();
    }
}

/* SPDX-License-Identifier: MIT */
/*
 * help.c: what --help prints, and `memtrace manual`: the part of the manual page (docs/memtrace.1)
 * that tells of commands and options, both from the tables of options. manual is not for people:
 * scripts/generate calls it.
 */
#include "ask/filters.h"
#include "cli/cli.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 79, TEXT_COLUMN = 28, NAME_SIZE = 100 };

/* "  -o, --output FILE" */
static int help_spell(const struct option *option, char *text, size_t size) {
    char letter[8] = "    ";
    if (option->letter != 0) {
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    }
    return snprintf(text, size, "  %s--%s%s%s", letter, option->name,
                    option->value != NULL && !option_is_prefix(option) ? " " : "",
                    option->value != NULL ? option->value : "");
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
    int length = help_spell(option, name, sizeof name);
    fputs(name, stdout);
    if (length > TEXT_COLUMN - 2) {
        putchar('\n');
        length = 0;
    }
    printf("%*s", TEXT_COLUMN - length, "");
    print_wrapped(help, TEXT_COLUMN);
}

enum { OPTION_HELP_SIZE = 600 }; /* what help tells of one */

/* The help of an option, with its other names, which stand behind it in the table. */
static void option_help(const struct option *option, const struct option_walk *walk, char *help,
                        size_t size) {
    struct option_walk behind = *walk;
    const char *joint = " (also ";
    size_t used = (size_t)snprintf(help, size, "%s", option->help);
    const struct option *other;
    while ((other = option_walk_next(&behind)) != NULL && option_is_alias(other) && used < size) {
        used += (size_t)snprintf(help + used, size - used, "%s--%s", joint, other->name);
        joint = ", ";
    }
    if (joint[0] == ',' && used < size) {
        snprintf(help + used, size - used, ")");
    }
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

/* ---- The manual page ---- */

/* Text for man(7): what begins a line as a request would, and the signs that it means itself. */
static void manual_text(const char *text) {
    for (bool begins = true; *text != '\0'; begins = *text++ == '\n') {
        if (begins && (*text == '.' || *text == '\'')) {
            fputs("\\&", stdout);
        }
        if (*text == '-') {
            fputs("\\-", stdout);
        } else if (*text == '\\') {
            fputs("\\e", stdout);
        } else {
            putchar(*text);
        }
    }
}

static void manual_heading(const char *begin, const char *title) {
    fputs(begin, stdout);
    for (; *title != '\0'; title++) {
        putchar(toupper((unsigned char)*title));
    }
    putchar('\n');
}

static void manual_option(const struct option *option, const struct option_walk *walk) {
    char help[OPTION_HELP_SIZE];
    fputs(".TP\n", stdout);
    if (option->letter != 0) {
        printf("\\fB\\-%c\\fR, ", option->letter);
    }
    fputs("\\fB\\-\\-", stdout);
    manual_text(option->name);
    fputs("\\fR", stdout);
    if (option->value != NULL) {
        fputs(option_is_prefix(option) ? "\\fI" : " \\fI", stdout);
        manual_text(option->value);
        fputs("\\fR", stdout);
    }
    putchar('\n');
    option_help(option, walk, help, sizeof help);
    manual_text(help);
    putchar('\n');
}

/* Without those of the part, if it is not NULL. */
static void manual_table(const struct option *options, const struct option *without) {
    struct option_walk walk = option_walk_start(options);
    const struct option *option;
    walk.without = without;
    while ((option = option_walk_next(&walk)) != NULL && option->key != OPTION_HELP) {
        if (option_is_heading(option)) {
            fputs(".SS ", stdout);
            manual_text(option->help);
            putchar('\n');
        } else if (!option_is_alias(option)) {
            manual_option(option, &walk);
        }
    }
}

/* Without the filters, which have a section of their own. */
static void manual_options(const struct command *command) {
    manual_heading(".SH OPTIONS OF ", command->name);
    manual_table(command->options, filter_options);
    if (option_has_part(command->options, filter_options)) {
        puts(".PP\nAnd those of FILTERS, below.");
    }
}

static void print_synopsis(const struct command *command) {
    const char *form = command->usage;
    while (*form != '\0') {
        size_t length = strcspn(form, "\n");
        char line[200];
        snprintf(line, sizeof line, "%.*s", (int)length, form);
        printf(".B memtrace %s\n", command->name);
        manual_text(line);
        fputs("\n.br\n", stdout);
        form += length + (form[length] == '\n');
    }
}

/* Lines that are indented stay as they are. */
static void print_about(const char *about) {
    bool is_verbatim = false;
    while (*about != '\0') {
        size_t length = strcspn(about, "\n");
        char line[1200];
        bool wants = about[0] == ' ';
        snprintf(line, sizeof line, "%.*s", (int)length, about);
        if (wants != is_verbatim) {
            puts(wants ? ".nf" : ".fi");
        }
        is_verbatim = wants;
        if (line[0] == '\0') {
            fputs(".sp", stdout);
        }
        manual_text(line);
        putchar('\n');
        about += length + (about[length] == '\n');
    }
    if (is_verbatim) {
        puts(".fi");
    }
}

static int run_manual(int argc, char **argv) {
    const struct command *const *command;
    (void)argc;
    (void)argv;
    manual_heading(".SH ", "synopsis");
    for (command = commands; *command != NULL; command++) {
        if ((*command)->summary != NULL) {
            print_synopsis(*command);
        }
    }
    manual_heading(".SH ", "description");
    puts(".B memtrace\n"
         "counts every heap allocation of a program by the call path that made it: what is live, "
         "what was live\nwhen the program held most, what was never freed, what was allocated in "
         "total, and what was freed at\nonce. Programs are either built with MemTrace (see\n.B "
         "flags\nand the CMake function memtrace_instrument) and profile themselves, or are run "
         "unchanged under\n.BR \"memtrace run\" .");
    manual_heading(".SH ", "commands");
    for (command = commands; *command != NULL; command++) {
        if ((*command)->summary != NULL) {
            printf(".TP\n.B %s\n", (*command)->name);
            print_about((*command)->about);
        }
    }
    puts(".PP\nEach command explains its options with\n.BR \\-\\-help .");
    for (command = commands; *command != NULL; command++) {
        if ((*command)->summary != NULL && (*command)->options != NULL) {
            manual_options(*command);
        }
    }
    if (!option_is_end(filter_options)) {
        manual_heading(".SH ", "filters");
        manual_table(filter_options, NULL);
    }
    return cli_finish(CLI_OK);
}

const struct command manual_command = {.name = "manual", .run = run_manual};

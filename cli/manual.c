/* SPDX-License-Identifier: MIT */
/*
 * manual.c: `memtrace manual`: the part of the manual page (docs/memtrace.1) that tells of commands
 * and options, from their tables (command.h). Not for people: scripts/generate calls it.
 */
#include "analyze/ask/filters.h"
#include "cli/cli.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Text for man(7): what begins a line as a request would, and the signs that it means itself. */
static void print_text(const char *text) {
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

static void print_capitals(const char *title) {
    for (; *title != '\0'; title++) {
        putchar(toupper((unsigned char)*title));
    }
    putchar('\n');
}

static void print_heading(const char *title) {
    fputs(".SH ", stdout);
    print_capitals(title);
}

static void print_option(const struct option *option, const struct option_walk *walk) {
    char help[OPTION_HELP_SIZE];
    fputs(".TP\n", stdout);
    if (option->letter != 0) {
        printf("\\fB\\-%c\\fR, ", option->letter);
    }
    fputs("\\fB\\-\\-", stdout);
    print_text(option->name);
    fputs("\\fR", stdout);
    if (option->value != NULL) {
        fputs(" \\fI", stdout);
        print_text(option->value);
        fputs("\\fR", stdout);
    }
    putchar('\n');
    option_help(option, walk, help, sizeof help);
    print_text(help);
    putchar('\n');
}

/* Without those of the part, if it is not NULL. */
static void print_table(const struct option *options, const struct option *without) {
    struct option_walk walk = option_walk_start(options);
    const struct option *option;
    walk.without = without;
    while ((option = option_walk_next(&walk)) != NULL && option->key != OPTION_HELP) {
        if (option_is_heading(option)) {
            fputs(".SS ", stdout);
            print_text(option->help);
            putchar('\n');
        } else if (!option_is_alias(option)) {
            print_option(option, &walk);
        }
    }
}

/* Without the filters, which have a section of their own. */
static void print_options(const struct command *command) {
    printf(".SH OPTIONS OF ");
    print_capitals(command->name);
    print_table(command->options, filter_options);
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
        print_text(line);
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
        print_text(line);
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
    print_heading("synopsis");
    for (command = commands; *command != NULL; command++) {
        if ((*command)->summary != NULL) {
            print_synopsis(*command);
        }
    }
    print_heading("description");
    puts(".B memtrace\n"
         "counts every heap allocation of a program by the call path that made it: what is live, "
         "what was live\nwhen the program held most, what was never freed, what was allocated in "
         "total, and what was freed at\nonce. Programs are either built with MemTrace (see\n.B "
         "flags\nand the CMake function memtrace_instrument) and profile themselves, or are run "
         "unchanged under\n.BR \"memtrace run\" .");
    print_heading("commands");
    for (command = commands; *command != NULL; command++) {
        if ((*command)->summary != NULL) {
            printf(".TP\n.B %s\n", (*command)->name);
            print_about((*command)->about);
        }
    }
    puts(".PP\nEach command explains its options with\n.BR \\-\\-help .");
    for (command = commands; *command != NULL; command++) {
        if ((*command)->summary != NULL && (*command)->options != NULL) {
            print_options(*command);
        }
    }
    print_heading("filters");
    print_table(filter_options, NULL);
    return cli_finish(CLI_OK);
}

const struct command manual_command = {.name = "manual", .run = run_manual};

/* SPDX-License-Identifier: MIT */
/* main.c: the `memtrace` command: picks the subcommand. */
#include "cli/cli.h"
#include "cli/nearest.h"
#include "memtrace/version.h"

#include <stdio.h>
#include <string.h>

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help; /* NULL: not for people */
};

static const struct command commands[] = {
    {"run", cmd_run, "run a program and profile it"},
    {"record", cmd_record, "run a program and record every event"},
    {"report", cmd_report, "show a profile, or that of a running program"},
    {"diff", cmd_diff, "show what grew from one profile to another"},
    {"query", cmd_query, "answer SQL over a profile or a recording"},
    {"check", cmd_check, "check whether a profile keeps its budgets"},
    {"export", cmd_export, "write files for other tools: flame graphs, JSON, CSV, ..."},
    {"import", cmd_import, "make a recording from a heaptrack data file"},
    {"extract", cmd_extract, "get the program files out of a recording"},
    {"repack", cmd_repack, "write a recording anew: joined, packed, without damage"},
    {"strip", cmd_strip, "leave short-lived blocks out of a recording"},
    {"anonymize", cmd_anonymize, "hide the names in a recording"},
    {"merge", cmd_merge, "make one recording or profile of several"},
    {"info", cmd_info, "show what is in a profile or recording"},
    {"list", cmd_list, "list profiles of running and of killed programs"},
    {"trace", cmd_trace, "say which code allocated the block at an address"},
    {"control", cmd_control, "count all, a sample or nothing in a running program"},
    {"symbolize", cmd_symbolize, "turn module+offset lines into function and line"},
    {"flags", cmd_flags, "print compiler and linker flags for other build systems"},
    {"companion", cmd_companion, NULL},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void print_help(FILE *out) {
    fputs("usage: memtrace COMMAND [OPTION]... [ARGUMENT]...\n"
          "       memtrace COMMAND --help\n"
          "       memtrace --version\n"
          "\n"
          "Tells which code owns every byte of a native program.\n"
          "\n"
          "commands:\n",
          out);
    for (size_t i = 0; i < COMMANDS; i++) {
        if (commands[i].help != NULL) {
            fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
        }
    }
    fputs("\n"
          "examples:\n"
          "  memtrace run -- ./program ARGUMENTS   profile a program\n"
          "  memtrace report                       show the newest profile of this folder\n"
          "  memtrace report 1234                  show what process 1234 holds now\n",
          out);
}

static const struct command *find_command(const char *name) {
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(commands[i].name, name) == 0) {
            return &commands[i];
        }
    }
    return NULL;
}

/* Says which command was meant. */
static int refuse(const char *name) {
    bool is_option = name[0] == '-';
    struct nearest nearest = nearest_to(name, strlen(name));
    for (size_t i = 0; i < COMMANDS && !is_option; i++) {
        if (commands[i].help != NULL) {
            nearest_offer(&nearest, commands[i].name);
        }
    }
    nearest_offer(&nearest, is_option ? "--help" : "help");
    nearest_offer(&nearest, is_option ? "--version" : "help");
    return cli_usage(NULL, "there is no %s '%s'%s%s%s", is_option ? "option" : "command", name,
                     nearest.name != NULL ? ": did you mean " : "",
                     nearest.name != NULL ? nearest.name : "", nearest.name != NULL ? "?" : "");
}

/* `memtrace help` and `memtrace help COMMAND`. */
static int help(int argc, char **argv) {
    const struct command *command = argc > 1 ? find_command(argv[1]) : NULL;
    char option[] = "--help";
    char *arguments[] = {argc > 1 ? argv[1] : NULL, option, NULL};
    if (argc <= 1) {
        print_help(stdout);
        return cli_finish(CLI_OK);
    }
    if (command == NULL) {
        return refuse(argv[1]);
    }
    return command->run(2, arguments);
}

int main(int argc, char **argv) {
    const struct command *command;
    if (argc < 2) {
        print_help(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        return help(argc - 1, argv + 1);
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        puts("memtrace " MEMTRACE_VERSION);
        return cli_finish(CLI_OK);
    }
    command = find_command(argv[1]);
    if (command == NULL) {
        return refuse(argv[1]);
    }
    return command->run(argc - 1, argv + 1);
}

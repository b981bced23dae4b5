/* SPDX-License-Identifier: MIT */
/* main.c: the `memtrace` command: picks the subcommand. */
#include "cli/cli.h"
#include "memtrace/version.h"

#include <stdio.h>
#include <string.h>

#ifdef MEMTRACE_AGENT
static const char examples[] =
    "\n"
    "examples:\n"
#ifdef MEMTRACE_STREAM
    "  memtrace record --to HOST -- ./program   record it into HOST's `memtrace gather`\n"
    "  memtrace attach 1234 --record --to HOST  the same of a program that runs\n"
#else
    "  memtrace record -- ./program             record a program\n"
    "  memtrace attach 1234 --record            the same of a program that runs\n"
#endif
    "\n"
    "This build is for devices: reports are made on a machine with the whole of MemTrace.\n";
#else
static const char examples[] =
    "\n"
    "examples:\n"
    "  memtrace run -- ./program ARGUMENTS   profile a program\n"
    "  memtrace report                       show the newest profile of this folder\n"
    "  memtrace report 1234                  show what process 1234 holds now\n";
#endif

static void print_help(FILE *out) {
    fputs("usage: memtrace COMMAND [OPTION]... [ARGUMENT]...\n"
          "       memtrace COMMAND --help\n"
          "       memtrace --version\n"
          "\n"
          "Tells which code owns every byte of a native program.\n"
          "\n"
          "commands:\n",
          out);
    for (const struct command *const *command = commands; *command != NULL; command++) {
        if ((*command)->summary != NULL) {
            fprintf(out, "  %-10s %s\n", (*command)->name, (*command)->summary);
        }
    }
    fputs(examples, out);
}

/* Says which command was meant, and ends. */
static noreturn void refuse_name(const char *name) {
    bool is_option = name[0] == '-';
    const char *option = command_left_out(name);
    struct nearest nearest = nearest_to(name, strlen(name));
    for (size_t i = 0; commands[i] != NULL && !is_option; i++) {
        if (commands[i]->summary != NULL) {
            nearest_offer(&nearest, commands[i]->name);
        }
    }
    nearest_offer(&nearest, is_option ? "--help" : "help");
    nearest_offer(&nearest, is_option ? "--version" : "help");
    if (option != NULL) {
#ifdef MEMTRACE_AGENT
        cli_error("%s is not in this build for devices: take or send what was recorded to a "
                  "machine with the whole of MemTrace, and use it there",
                  name);
#else
        cli_error("%s is not in this build: configure MemTrace with %s", name, option);
#endif
        cli_end(CLI_FAILURE);
    }
    cli_usage(NULL, "there is no %s '%s'%s%s%s", is_option ? "option" : "command", name,
              nearest.name != NULL ? ": did you mean " : "",
              nearest.name != NULL ? nearest.name : "", nearest.name != NULL ? "?" : "");
}

/* `memtrace help` and `memtrace help COMMAND`. */
static int help(int argc, char **argv) {
    const struct command *command = argc > 1 ? command_find(argv[1]) : NULL;
    if (argc <= 1) {
        print_help(stdout);
        return cli_finish(CLI_OK);
    }
    if (command == NULL || command->summary == NULL) {
        refuse_name(argv[1]);
    }
    help_print(command);
    return cli_finish(CLI_OK);
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
    command = command_find(argv[1]);
    if (command == NULL) {
        refuse_name(argv[1]);
    }
    return cli_run(command, argc - 1, argv + 1);
}

/* SPDX-License-Identifier: MIT */
/* commands.c: the subcommands, in the order of the help. See command.h. */
#include "cli/command.h"

#include <stddef.h>
#include <string.h>

const struct command *const commands[] = {
    &run_command,
    &record_command,
    &report_command,
    &diff_command,
    &query_command,
    &check_command,
    &export_command,
    &import_command,
    &extract_command,
    &repack_command,
    &strip_command,
    &anonymize_command,
    &merge_command,
    &info_command,
    &list_command,
    &trace_command,
    &control_command,
    &symbolize_command,
    &flags_command,
    &completion_command,
    &companion_command,
    &manual_command,
    NULL,
};

const struct command *command_find(const char *name) {
    for (const struct command *const *command = commands; *command != NULL; command++) {
        if (strcmp((*command)->name, name) == 0) {
            return *command;
        }
    }
    return NULL;
}

/* SPDX-License-Identifier: MIT */
/*
 * plugin.c: which compiler is this command, and is there a plugin that it takes?
 *
 * The compiler is asked by the macros it predefines: options that print a version differ, and
 * wrappers do not know them.
 */
#include "cli/plugin.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The exit statuses of a shell that cannot start a command: no program, not found. */
enum { NO_PROGRAM = 126, NOT_FOUND = 127 };

/* A version in front of the next colon or line end; 0: a macro that was not replaced. */
static unsigned version_at(const char *text) {
    char *end;
    unsigned long version = strtoul(text, &end, 10);
    return end > text && version < 1000 ? (unsigned)version : 0;
}

bool plugin_identify(struct plugin *plugin, const char *command) {
    char *question = NULL, line[256];
    FILE *answer = NULL;
    unsigned clang = 0, gnu = 0;
    int status = 0;
    if (asprintf(&question, "printf '%s\\n' | %s -E -P -x c - 2>/dev/null",
                 "memtrace:__clang_major__:__GNUC__", command) > 0)
        answer = popen(question, "r");
    free(question);
    while (answer && fgets(line, sizeof(line), answer)) {
        const char *first = strchr(line, ':');
        const char *second = first ? strchr(first + 1, ':') : NULL;
        if (strncmp(line, "memtrace:", strlen("memtrace:")) != 0 || !second)
            continue;
        clang = version_at(first + 1);
        gnu = version_at(second + 1);
    }
    if (answer)
        status = pclose(answer);
    status = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    plugin->missing = status == NO_PROGRAM || status == NOT_FOUND;
    plugin->gcc = clang == 0;
    plugin->major = clang ? clang : gnu;
    snprintf(plugin->reason, sizeof(plugin->reason), "\"%.200s\" is %s", command,
             plugin->missing ? "not a command" : "neither GCC nor Clang");
    return plugin->major != 0;
}

/* Compiles an empty program: another build of the same version may refuse the plugin. */
static bool is_taken(const struct plugin *plugin, const char *command) {
    char *script = NULL, *option = NULL;
    int status = -1;
    pid_t pid;
    if (asprintf(&option, "%s%s", plugin->gcc ? "-fplugin=" : "-fpass-plugin=", plugin->file) < 0)
        return false;
    if (asprintf(&script,
                 "echo 'int main(void) { return 0; }' |"
                 "%s \"$1\" -S -x c - -o /dev/null >/dev/null 2>&1",
                 command) > 0) {
        char *arguments[] = {"sh", "-c", script, "sh", option, NULL};
        if (posix_spawn(&pid, "/bin/sh", NULL, NULL, arguments, environ) != 0 ||
            waitpid(pid, &status, 0) != pid)
            status = -1;
    }
    free(option);
    free(script);
    return status == 0;
}

bool plugin_find(struct plugin *plugin, const char *command, const char *folder) {
    char *reason = plugin->reason;
    size_t room = sizeof(plugin->reason);
    const char *name = plugin->gcc ? "GCC" : "Clang";
    int length = snprintf(plugin->file, sizeof(plugin->file), "%s/%s-%u/memtrace.so", folder,
                          plugin->gcc ? "gcc" : "clang", plugin->major);
    if (length < 0 || (size_t)length >= sizeof(plugin->file) || access(plugin->file, R_OK) != 0) {
        snprintf(reason, room,
                 "no plugin for %s %u in %s: install %s-%u%s and build MemTrace again", name,
                 plugin->major, folder, plugin->gcc ? "gcc" : "llvm", plugin->major,
                 plugin->gcc ? "-plugin-dev" : "-dev");
        return false;
    }
    if (!is_taken(plugin, command)) {
        snprintf(reason, room, "\"%.200s\" does not take %s", command, plugin->file);
        return false;
    }
    snprintf(reason, room, "plugin for %s %u", name, plugin->major);
    return true;
}

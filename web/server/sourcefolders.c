/* SPDX-License-Identifier: MIT */
/* sourcefolders.c: see sourcefolders.h. */
#include "web/server/sourcefolders.h"

#include "analyze/symbol/sourceinfo.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whether the path leads below the folder, which has no slash at its end. */
static bool is_below(const char *path, const char *folder) {
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && path[length] == '/';
}

/* ---- Folders that users named ---- */

static bool is_named(const struct sourcetext_wish *wish, const char *path, bool is_mapped) {
    for (size_t i = 0; i < wish->folder_count; i++) {
        char folder[PATH_MAX];
        if (realpath(wish->folders[i], folder) != NULL &&
            (strcmp(folder, "/") == 0 || is_below(path, folder))) {
            return true;
        }
    }
    for (size_t i = 0; is_mapped && i < wish->map_count; i++) {
        const char *equals = strchr(wish->maps[i], '=');
        char place[PATH_MAX];
        if (equals != NULL && realpath(equals + 1, place) != NULL &&
            (is_below(path, place) || strcmp(path, place) == 0)) {
            return true;
        }
    }
    return false;
}

/* ---- Folders of a project ---- */

/* Where others than one project's files lie, too: nothing is shown because of one of these. */
static bool is_shared(const char *folder) {
    static const char *const shared[] = {
        "/",      "/bin", "/boot", "/dev",  "/etc",     "/home",    "/lib",      "/lib64",
        "/media", "/mnt", "/opt",  "/proc", "/root",    "/run",     "/sbin",     "/srv",
        "/sys",   "/tmp", "/usr",  "/var",  "/var/tmp", "/var/lib", "/usr/local"};
    const char *home = getenv("HOME");
    for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++) {
        if (strcmp(folder, shared[i]) == 0) {
            return true;
        }
    }
    return (home != NULL && strcmp(folder, home) == 0) ||
           (is_below(folder, "/home") && strchr(folder + sizeof "/home", '/') == NULL);
}

static bool begins_project(const char *folder) {
    static const char *const marks[] = {
        ".git",      ".hg",      ".svn",       "CMakeLists.txt", "meson.build", "configure.ac",
        "configure", "Makefile", "Cargo.toml", "build.zig",      "WORKSPACE",   "MODULE.bazel"};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        char path[PATH_MAX];
        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, marks[i]) < sizeof path &&
            access(path, F_OK) == 0) {
            return true;
        }
    }
    return false;
}

struct asked {
    const char *path;
};

/* Whether the path is in the folder's project: below the outermost folder around it that looks like
 * the beginning of one; of none, below the folder itself. */
static bool is_in_project(void *context, const char *name) {
    const struct asked *asked = context;
    char project[PATH_MAX];
    char folder[PATH_MAX];
    if (name[0] != '/' || realpath(name, folder) == NULL || is_shared(folder)) {
        return false;
    }
    strcpy(project, folder);
    for (char *slash = folder + strlen(folder); slash != NULL; slash = strrchr(folder, '/')) {
        *slash = '\0';
        if (folder[0] == '\0' || is_shared(folder)) {
            break;
        }
        if (begins_project(folder)) {
            strcpy(project, folder);
        }
    }
    return is_below(asked->path, project);
}

static bool is_in_project_of(struct asked *asked, const char *file) {
    char path[PATH_MAX];
    char *slash;
    if (file == NULL || realpath(file, path) == NULL || (slash = strrchr(path, '/')) == path) {
        return false;
    }
    *slash = '\0';
    return is_in_project(asked, path);
}

bool sourcefolders_allow(const struct sourcetext_wish *wish, const char *path,
                         const struct stat *status, bool is_mapped) {
    const struct symbol_module module = {wish->module, wish->build_id, wish->build_id_size};
    struct asked asked = {path};
    if (is_named(wish, path, is_mapped)) {
        return true;
    }
    if (wish->only_named || strcmp(sourcetext_language(path), "text") == 0 ||
        ((status->st_mode & S_IROTH) == 0 && status->st_uid != geteuid())) {
        return false;
    }
    return is_below(path, "/usr") || is_in_project_of(&asked, wish->served) ||
           (wish->module[0] == '/' && is_in_project_of(&asked, wish->module)) ||
           sourceinfo_visit_folders(&module, wish->debug_folders, is_in_project, &asked);
}

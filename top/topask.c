/* SPDX-License-Identifier: MIT */
/* topask.c: see topask.h. */
#include "top/topask.h"

#include <string.h>

int topask_begin(struct topask *ask, const char *path, const struct programask_wish *wish,
                 struct error *error) {
    struct region region;
    int asked;
    topask_end(ask);
    asked = gatherask_begin(&ask->gatherer, path, wish, error);
    if (asked != 0) {
        ask->whom = asked > 0 ? TOPASK_GATHERER : TOPASK_NOTHING;
        return asked > 0 ? 0 : -1;
    }
    if (programask_find(path, &region, error) != 0 ||
        programask_begin(&ask->program, &region, wish, error) != 0) {
        return -1;
    }
    ask->whom = TOPASK_PROGRAM;
    return 0;
}

int topask_begin_process(struct topask *ask, pid_t pid, const struct programask_wish *wish,
                         struct error *error) {
    struct region region;
    topask_end(ask);
    if (region_find(pid, &region, error) != 0 ||
        programask_begin(&ask->program, &region, wish, error) != 0) {
        return -1;
    }
    ask->whom = TOPASK_PROGRAM;
    return 0;
}

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

bool topask_look(struct topask *ask, struct programask_answer *answer) {
    bool has_come = (ask->whom == TOPASK_GATHERER && gatherask_look(&ask->gatherer, answer)) ||
                    (ask->whom == TOPASK_PROGRAM && programask_look(&ask->program, answer));
    if (has_come) {
        ask->whom = TOPASK_NOTHING;
    }
    if (has_come && answer->is_done && !begins(answer->text, "marked") &&
        !begins(answer->text, "asked")) {
        ask->is_off = begins(answer->text, "off");
        ask->is_sampled = ask->is_off ? ask->is_sampled : begins(answer->text, "sampled");
    }
    return has_come;
}

void topask_end(struct topask *ask) {
    if (ask->whom == TOPASK_GATHERER) {
        gatherask_end(&ask->gatherer);
    } else if (ask->whom == TOPASK_PROGRAM) {
        programask_end(&ask->program);
    }
    ask->whom = TOPASK_NOTHING;
}

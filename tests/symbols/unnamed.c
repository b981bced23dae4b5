/* SPDX-License-Identifier: MIT */
/* unnamed.c: allocates in a library of the system's, within functions that it does not export. */
#include <sqlite3.h>
#include <stddef.h>

int main(void) {
    sqlite3 *base = NULL;
    if (sqlite3_open(":memory:", &base) != SQLITE_OK) {
        return 1;
    }
    sqlite3_exec(base, "create table a (b, c); insert into a values (1, 2);", NULL, NULL, NULL);
    return sqlite3_close(base);
}

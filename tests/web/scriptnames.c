/* SPDX-License-Identifier: MIT */
/* scriptnames.c: a program whose names are scripts: its function (tests/export/evil.c), its source
 * file, its scopes and marks. Whoever shows one of them as markup runs it. */
#include <memtrace/memtrace.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

void call_evil(void);

static void *volatile kept;

/* clang-format off */
#line 1 "<img src=x onerror=alert(1)>.c"
static void *work(void *unused) {
    (void)unused;
    uint64_t scope = MEMTRACE_SCOPE_BEGIN("<svg onload=alert(2)>");
    kept = malloc(100000);
    MEMTRACE_SCOPE_END(scope);
    return NULL;
}

int main(void) {
    pthread_t thread;
    call_evil();
    MEMTRACE_MARK("</script><script>alert(3)</script>");
    if (pthread_create(&thread, NULL, work, NULL) != 0 || pthread_join(thread, NULL) != 0) {
        return 1;
    }
    MEMTRACE_MARK("javascript:alert(4)//\" onmouseover=\"alert(5)");
    kept = malloc(1000);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* closing.c: allocates, closes every descriptor but 0 to 2, as daemons do, and goes on. An
 * argument: takes the lowest numbers again for a file of its own first. Ends with 3. */
#include "../programs/subjects/subject.h"

#include <fcntl.h>
#include <stdlib.h>

NOINLINE static void work(void) {
    for (size_t i = 0; i < 20000; i++) {
        void *block = malloc(1000 + i % 7);
        keep(block);
        if (i % 16 != 0) {
            free(block);
        }
    }
}

int main(int argc, char **argv) {
    static const char text[] = "untouched";
    char back[sizeof text] = "";
    int file;
    work();
    for (int fd = 3; fd < 1024; fd++) {
        close(fd);
    }
    file = open(argc > 1 ? argv[1] : "/dev/null", O_RDWR | O_CREAT | O_TRUNC, 0600);
    check(file == 3, "the lowest descriptor");
    check(write(file, text, sizeof text) == (ssize_t)sizeof text, "write");
    for (int fd = 4; fd < 900; fd++) {
        dup2(file, fd);
    }
    work();
    check(argc < 2 ||
              (pread(file, back, sizeof back, 0) == (ssize_t)sizeof back &&
               memcmp(back, text, sizeof text) == 0 && lseek(file, 0, SEEK_END) == sizeof text),
          "what the file holds");
    say("all done\n");
    return 3;
}

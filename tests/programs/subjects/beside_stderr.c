/* SPDX-License-Identifier: MIT */
/* beside_stderr.c FILE: closes its standard error, and has a file of its own as descriptor 2 then.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int file;
    free(malloc(10));
    close(2);
    file = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    write(file, "data\n", 5);
    malloc(100);
    return file == 2 ? 5 : 1;
}

/* SPDX-License-Identifier: MIT */
/* clang_openmp.c: outlined functions and tasks that allocate, for clang_pass.py. */
#include <stdio.h>
#include <stdlib.h>
static void *volatile last;
int main(void) {
    long sum = 0;
#pragma omp parallel for reduction(+ : sum) num_threads(3)
    for (int i = 0; i < 3000; i++) {
        char *memory = malloc(i + 1);
        memory[i] = (char)i;
        sum += memory[i];
        last = memory;
        free(memory);
    }
#pragma omp parallel num_threads(2)
#pragma omp single
#pragma omp task shared(sum)
    {
        last = malloc(9);
        free(last);
        sum += 1;
    }
    printf("%ld\n", sum);
}

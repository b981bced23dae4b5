/* SPDX-License-Identifier: MIT */
/*
 * tree.c: a binary tree built by recursion over two call sites, so that every node comes from a
 * call path of its own: the worst case for whoever keeps call paths. Run by benchmarks/run.
 *
 *   --nodes N    nodes (default 2.5 million), balanced
 *
 * Results: nanoseconds for each node, what the same recursion takes without allocating
 * ("walk_ns": compiler hooks count there), and the peak of resident memory.
 */
#include "bench.h"

struct node {
    struct node *left, *right;
};

static BENCH_FRAME struct node *build(long nodes) {
    if (nodes == 0)
        return NULL;
    struct node *node = malloc(sizeof *node);
    if (!node)
        exit(1);
    node->left = build((nodes - 1) / 2);
    BENCH_CALL_SITE(1);
    node->right = build(nodes - 1 - (nodes - 1) / 2);
    BENCH_CALL_SITE(2);
    return node;
}

static BENCH_FRAME long walk(long nodes) {
    if (nodes == 0)
        return 0;
    long left = walk((nodes - 1) / 2);
    BENCH_CALL_SITE(1);
    long right = walk(nodes - 1 - (nodes - 1) / 2);
    BENCH_CALL_SITE(2);
    return left + right + 1;
}

int main(int argc, char **argv) {
    long nodes = bench_option(argc, argv, "--nodes", 2500000);
    uint64_t start = bench_now_ns();
    long walked = walk(nodes);
    uint64_t walked_at = bench_now_ns();
    struct node *root = build(nodes);
    uint64_t built_at = bench_now_ns();
    BENCH_KEEP(root);
    bench_result("walk_ns", (double)(walked_at - start) / (double)walked);
    bench_result("node_ns", (double)(built_at - walked_at) / (double)walked);
    bench_result("peak_kib", (double)bench_status_kib("VmHWM:"));
    return 0;
}

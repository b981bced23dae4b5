/* SPDX-License-Identifier: MIT */
/* Loads the plug-in and lets it allocate. */
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
    void *plugin = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
    int (*fill)(void);
    if (!plugin) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    fill = (int (*)(void))dlsym(plugin, "store_fill");
    return fill && fill() == 10 ? 0 : 1;
}

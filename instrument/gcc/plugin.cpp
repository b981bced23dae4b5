/* SPDX-License-Identifier: MIT */
/*
 * plugin.cpp: what GCC calls when it loads -fplugin=memtrace.so. Fits one version of GCC; the same
 * file serves all its languages and the link-time compiler.
 */
#include "instrument/gcc/headers.h"

#include "instrument/gcc/insertion.h"
#include "instrument/gcc/machine.h"
#include "instrument/gcc/named.h"
#include "instrument/gcc/reach.h"
#include "instrument/gcc/settings.h"

#define PUBLIC __attribute__((visibility("default")))

PUBLIC int plugin_is_GPL_compatible;

namespace {

void register_attributes(void *, void *) {
    settings_register_attributes();
}

void register_pass(const char *plugin, opt_pass *pass, const char *reference,
                   pass_positioning_ops position) {
    register_pass_info info = {pass, reference, 1, position};
    register_callback(plugin, PLUGIN_PASS_MANAGER_SETUP, NULL, &info);
}

/* Why nothing can be done for what GCC is to compile; NULL: all is well. */
const char *unfit() {
    const char *reason = machine_unfit();
    return reason ? reason : flag_split_stack ? "not with -fsplit-stack" : NULL;
}

} // namespace

PUBLIC int plugin_init(plugin_name_args *info, plugin_gcc_version *version) {
    const char *name = info->base_name;
    if (!plugin_default_version_check(version, &gcc_version)) {
        error("plugin %qs: built for GCC %s (%s), this is GCC %s (%s)", name, gcc_version.basever,
              gcc_version.datestamp, version->basever, version->datestamp);
        return 1;
    }
    if (unfit()) {
        error("plugin %qs: %s", name, unfit());
        return 1;
    }
    if (!settings_read(info)) {
        return 1;
    }
    /* The runtime finds a frame word through them. */
    global_options.x_flag_asynchronous_unwind_tables = 1;
    global_options.x_flag_unwind_tables = 1;
    register_callback(name, PLUGIN_ATTRIBUTES, register_attributes, NULL);
    register_callback(name, PLUGIN_FINISH_UNIT, insertion_end_unit, NULL);
    register_callback(name, PLUGIN_REGISTER_GGC_ROOTS, NULL,
                      const_cast<ggc_root_tab *>(named_roots()));
    register_pass(name, named_make_pass(g), "*warn_unused_result", PASS_POS_INSERT_BEFORE);
    register_pass(name, named_make_record_pass(g), "*free_lang_data", PASS_POS_INSERT_BEFORE);
    register_pass(name, reach_make_pass(g), "simdclone", PASS_POS_INSERT_AFTER);
    register_pass(name, insertion_make_pass(g), "ira", PASS_POS_INSERT_BEFORE);
    return 0;
}

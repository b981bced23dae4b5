/* SPDX-License-Identifier: MIT */
/*
 * plugin.cpp: how Clang and its linkers load the pass: the check of their version, and when the
 * pass runs.
 *
 * It runs last, after inlining and after sanitizers, which would otherwise move the frame word.
 * With LTO it runs before linking, where every linker can have it; where the linker loads it as
 * well (lld since 15: --load-pass-plugin), it takes the first words out and runs again on the
 * linked unit.
 */
#include "instrument/clang/named.h"
#include "instrument/clang/options.h"
#include "instrument/clang/pass.h"

#include <llvm/Config/llvm-config.h>
#include <llvm/Passes/PassBuilder.h>
#if __has_include(<llvm/Plugins/PassPlugin.h>)
#include <llvm/Plugins/PassPlugin.h>
#else
#include <llvm/Passes/PassPlugin.h>
#endif

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <memory>
#include <string>

using namespace llvm;

namespace {

/* The major version of the program that loads us, 0: it does not tell. Asks by functions that mean
 * the same in every version: LLVM's since 16, the preprocessor's __clang_major__ before. */
unsigned host_version() {
    using get_version = void (*)(unsigned *, unsigned *, unsigned *);
    using get_text = std::string (*)();
    unsigned major = 0;
    unsigned minor;
    unsigned patch;
    if (const auto version = (get_version)dlsym(RTLD_DEFAULT, "LLVMGetVersion")) {
        version(&major, &minor, &patch);
    } else if (const auto text =
                   (get_text)dlsym(RTLD_DEFAULT, "_ZN5clang22getClangFullCPPVersionB5cxx11Ev")) {
        const std::string full = text(); /* "Clang 14.0.6", a vendor may stand in front */
        const size_t at = full.find_first_of("0123456789");
        major = at == std::string::npos ? 0 : (unsigned)strtoul(full.c_str() + at, nullptr, 10);
    }
    return major;
}

/* Before anything of LLVM is touched: in another version it looks different. */
__attribute__((constructor)) void check_and_register() {
    const unsigned major = host_version();
    if (major != 0 && major != LLVM_VERSION_MAJOR) {
        fprintf(stderr, "memtrace: this plugin is for Clang %d, not for Clang %u\n",
                LLVM_VERSION_MAJOR, major);
        exit(EXIT_FAILURE);
    }
    options_register();
}

void add_pass(ModulePassManager &passes) {
    passes.addPass(frame_word_pass());
}

void at_the_end(PassBuilder &builder) {
    builder.registerOptimizerLastEPCallback(
        [](ModulePassManager &passes, auto, auto...) { add_pass(passes); });
}

/* Clang registers sanitizers for the end of the pipeline after us. At its start they are there, so
 * the pass is registered then; a pipeline without start (after linking) has no sanitizers. */
void register_callbacks(PassBuilder &builder) {
    const auto registered = std::make_shared<bool>(false);
    builder.registerPipelineStartEPCallback(
        [](ModulePassManager &passes, auto) { passes.addPass(named_pass()); });
    builder.registerPipelineStartEPCallback([&builder, registered](ModulePassManager &, auto) {
        if (!*registered) {
            *registered = true;
            at_the_end(builder);
        }
    });
    builder.registerOptimizerLastEPCallback([registered](ModulePassManager &passes, auto, auto...) {
        if (!*registered) {
            add_pass(passes);
        }
    });
#if LLVM_VERSION_MAJOR >= 15
    builder.registerFullLinkTimeOptimizationLastEPCallback(
        [](ModulePassManager &passes, auto) { add_pass(passes); });
#endif
    builder.registerPipelineParsingCallback(
        [](StringRef name, ModulePassManager &passes, ArrayRef<PassBuilder::PipelineElement>) {
            if (name != "memtrace") {
                return false;
            }
            add_pass(passes);
            return true;
        });
}

} // namespace

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo llvmGetPassPluginInfo() {
    PassPluginLibraryInfo info = {};
    info.APIVersion = LLVM_PLUGIN_API_VERSION;
    info.PluginName = "memtrace";
    info.PluginVersion = LLVM_VERSION_STRING;
    info.RegisterPassBuilderCallbacks = register_callbacks;
    return info;
}

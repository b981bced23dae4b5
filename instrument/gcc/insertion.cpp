/* SPDX-License-Identifier: MIT */
/*
 * insertion.cpp: gives a function its frame word and the stores to it. See frame_word.h for what
 * must hold.
 *
 * The pass runs just before register allocation: calls, tail calls and calls of the compiler's own
 * routines are all visible, and no optimisation that a volatile statement could hinder is left.
 */
#include "instrument/gcc/insertion.h"

#include "instrument/gcc/machine.h"
#include "instrument/gcc/placement.h"
#include "instrument/gcc/reach.h"
#include "instrument/gcc/settings.h"

namespace {

pass_report report;

rtx call_target(const rtx_insn *insn) {
    rtx call = get_call_rtx_from(const_cast<rtx_insn *>(insn));
    return call ? XEXP(call, 0) : NULL_RTX; /* a MEM of the address */
}

std::string reach_of_call(const rtx_insn *insn) {
    rtx target = call_target(insn);
    if (target && MEM_P(target) && GET_CODE(XEXP(target, 0)) == SYMBOL_REF) {
        rtx symbol = XEXP(target, 0);
        tree function = SYMBOL_REF_DECL(symbol);
        return function && TREE_CODE(function) == FUNCTION_DECL ? reach_of(function)
                                                                : reach_of_symbol(XSTR(symbol, 0));
    }
    return "indirect call";
}

/* The text of an assembler statement, with operands or plain; NULL: `body` is none. */
const char *asm_text(rtx body) {
    if (GET_CODE(body) == PARALLEL && XVECLEN(body, 0) > 0) {
        body = XVECEXP(body, 0, 0); /* the rest are outputs and clobbers */
    }
    if (GET_CODE(body) == ASM_INPUT) {
        return XSTR(body, 0);
    }
    rtx operands = extract_asm_operands(body);
    return operands ? ASM_OPERANDS_TEMPLATE(operands) : NULL;
}

/* What `insn` may run into while the frame is there; empty: it never allocates. */
std::string reach_of_insn(const rtx_insn *insn) {
    if (CALL_P(insn)) {
        return SIBLING_CALL_P(insn) ? "" : reach_of_call(insn);
    }
    if (!NONDEBUG_INSN_P(insn)) {
        return "";
    }
    const char *text = asm_text(PATTERN(insn));
    return text ? reach_of_asm(text) : "";
}

/* The function's calls that may allocate. */
struct uncovered {
    std::vector<char> blocks; /* by index: has such a call */
    unsigned calls = 0;
    std::string reason;     /* what the first runs into */
    bool has_frame = false; /* a call that the compiler sees, so the red zone is not in use */
};

uncovered find_uncovered(function *fun) {
    uncovered found;
    basic_block block;
    rtx_insn *insn;
    found.blocks.resize(last_basic_block_for_fn(fun));
    FOR_EACH_BB_FN(block, fun) {
        FOR_BB_INSNS(block, insn) {
            const std::string reason = reach_of_insn(insn);
            found.has_frame |= CALL_P(insn) && !SIBLING_CALL_P(insn);
            if (!reason.empty()) {
                found.blocks[block->index] = 1;
                if (found.calls++ == 0) {
                    found.reason = reason;
                }
            }
        }
    }
    return found;
}

/* A statement with a form that no optimisation changes: volatile assembler, nothing clobbered. */
rtx make_store(rtx word) {
    rtx store =
        gen_rtx_ASM_OPERANDS(SImode, ggc_strdup(machine_store_text().c_str()), "=m", 0,
                             rtvec_alloc(0), rtvec_alloc(0), rtvec_alloc(0), UNKNOWN_LOCATION);
    MEM_VOLATILE_P(store) = 1;
    return gen_rtx_SET(word, store);
}

/* Why the function cannot have a frame word; NULL: it can. */
const char *unfit(const function *fun, const uncovered &found) {
    const char *reason = settings_excluded(fun->decl);
    if (reason) {
        return reason;
    }
    if (found.calls == 0) {
        return "no call may allocate";
    }
    if (!found.has_frame) {
        return "calls in assembly only"; /* they would write over a word in the red zone */
    }
    if (crtl->calls_eh_return) {
        return "unwinds by itself";
    }
    if (!flag_asynchronous_unwind_tables) {
        return "no unwind tables";
    }
    /* Its variables have no fixed distance from the CFA. */
    return crtl->stack_alignment_needed > INCOMING_STACK_BOUNDARY ? "realigns its stack" : NULL;
}

void describe(const function *fun, unsigned stores, unsigned calls, const std::string &reason) {
    expanded_location place = expand_location(DECL_SOURCE_LOCATION(fun->decl));
    report.add(settings_symbol(fun->decl),
               std::string(place.file ? place.file : "?") + ':' + std::to_string(place.line),
               stores, calls, reason);
}

class insertion_pass : public rtl_opt_pass {
  public:
    insertion_pass(gcc::context *context);

    unsigned int execute(function *fun) final override {
        const uncovered found = find_uncovered(fun);
        const char *reason = unfit(fun, found);
        if (reason) {
            describe(fun, 0, found.calls, reason);
            return 0;
        }
        rtx word = assign_stack_local(SImode, GET_MODE_SIZE(SImode), GET_MODE_ALIGNMENT(SImode));
        const std::vector<basic_block> blocks = placement_choose(fun, found.blocks);
        for (basic_block block : blocks) {
            emit_insn_after_noloc(make_store(copy_rtx(word)), bb_note(block), block);
        }
        describe(fun, blocks.size(), found.calls, found.reason);
        return 0;
    }
};

const pass_data insertion_pass_data = {
    RTL_PASS, "memtrace", OPTGROUP_NONE, TV_NONE, 0, 0, 0, 0, TODO_df_finish,
};

insertion_pass::insertion_pass(gcc::context *context) : rtl_opt_pass(insertion_pass_data, context) {
}

} // namespace

rtl_opt_pass *insertion_make_pass(gcc::context *context) {
    return new insertion_pass(context);
}

void insertion_end_unit(void *, void *) {
    if (!report.write_out()) {
        warning(0, "cannot write the pass report %qs: %m", pass_report::path());
    }
}

/* SPDX-License-Identifier: MIT */
/*
 * no_alloc.h: library functions that never allocate and never call back. Both compiler plugins ask
 * it; a call to one of these needs no fresh frame word before it. C++17.
 *
 * A wrong entry makes contexts wrong, a missing one costs an instruction, so a function is only
 * here if it is plain in every C library and under every allocator. Not here, for that reason:
 *  - printf, scanf and stdio: buffers, long numbers, fopencookie;
 *  - strerror, strsignal, localtime, gmtime, mktime, strftime, strcoll, strxfrm, setlocale, iconv
 *    and the multibyte conversions: they load translations, zones or converters on first use;
 *  - qsort, bsearch, pthread_once, exit, call_once: they call back;
 *  - read, write, open, sem_wait and the other cancellation points: cleanup handlers run there;
 *  - free and operator delete: some allocators map memory there, and delete may be the program's;
 *  - pthread_setspecific, pthread_create, setenv, dlsym: they allocate themselves;
 *  - _Unwind_Resume, __cxa_throw, __cxa_end_catch: tables are sorted, destructors run.
 * Signal handlers and the dynamic loader, which may allocate anywhere, are the runtime's business.
 * A program may have a function of its own by such a name: what is defined in the unit is judged by
 * its definition, and a plugin that can see it wants the declaration to be the library's.
 */
#ifndef INSTRUMENT_NO_ALLOC_H
#define INSTRUMENT_NO_ALLOC_H

#include <iterator>
#include <string>
#include <string_view>
#include <unordered_set>

/* Names as the linker sees them. */
static const char *const no_alloc_names[] = {
    /* memory and strings */
    "memcpy", "memmove", "mempcpy", "memccpy", "memset", "memcmp", "memchr", "memrchr", "rawmemchr",
    "memmem", "memfrob", "explicit_bzero", "bcmp", "bcopy", "bzero", "swab", "ffs", "ffsl", "ffsll",
    "strlen", "strnlen", "strcpy", "strncpy", "stpcpy", "stpncpy", "strlcpy", "strlcat", "strcat",
    "strncat", "strcmp", "strncmp", "strcasecmp", "strncasecmp", "strcasecmp_l", "strncasecmp_l",
    "strchr", "strrchr", "strchrnul", "index", "rindex", "strstr", "strcasestr", "strspn",
    "strcspn", "strpbrk", "strtok", "strtok_r", "__strtok_r", "strsep", "strverscmp", "basename",
    "__xpg_basename", "dirname", "__memcpy_chk", "__memmove_chk", "__mempcpy_chk", "__memset_chk",
    "__explicit_bzero_chk", "__strcpy_chk", "__strncpy_chk", "__stpcpy_chk", "__stpncpy_chk",
    "__strcat_chk", "__strncat_chk", "__strlcpy_chk", "__strlcat_chk", "__rawmemchr", "__stpcpy",
    "__mempcpy",
    /* wide strings */
    "wmemcpy", "wmemmove", "wmempcpy", "wmemset", "wmemcmp", "wmemchr", "wcslen", "wcsnlen",
    "wcscpy", "wcsncpy", "wcpcpy", "wcpncpy", "wcscat", "wcsncat", "wcscmp", "wcsncmp",
    "wcscasecmp", "wcsncasecmp", "wcschr", "wcsrchr", "wcschrnul", "wcsstr", "wcsspn", "wcscspn",
    "wcspbrk", "wcstok", "__wmemcpy_chk", "__wmemmove_chk", "__wmempcpy_chk", "__wmemset_chk",
    "__wcscpy_chk", "__wcsncpy_chk", "__wcscat_chk", "__wcsncat_chk",
    /* characters */
    "isalnum", "isalpha", "isascii", "isblank", "iscntrl", "isdigit", "isgraph", "islower",
    "isprint", "ispunct", "isspace", "isupper", "isxdigit", "tolower", "toupper", "toascii",
    "isalnum_l", "isalpha_l", "isdigit_l", "islower_l", "isprint_l", "isspace_l", "isupper_l",
    "tolower_l", "toupper_l", "iswalnum", "iswalpha", "iswblank", "iswcntrl", "iswdigit",
    "iswgraph", "iswlower", "iswprint", "iswpunct", "iswspace", "iswupper", "iswxdigit", "iswctype",
    "towlower", "towupper", "towlower_l", "towupper_l", "__ctype_b_loc", "__ctype_tolower_loc",
    "__ctype_toupper_loc", "__ctype_get_mb_cur_max",
    /* numbers and random numbers */
    "abs", "labs", "llabs", "imaxabs", "div", "ldiv", "lldiv", "imaxdiv", "atoi", "atol", "atoll",
    "atof", "strtol", "strtoul", "strtoll", "strtoull", "strtoimax", "strtoumax", "strtoq",
    "strtouq", "strtof", "strtod", "strtold", "strtol_l", "strtoul_l", "strtoll_l", "strtoull_l",
    "strtof_l", "strtod_l", "strtold_l", "__isoc23_strtol", "__isoc23_strtoul", "__isoc23_strtoll",
    "__isoc23_strtoull", "__isoc23_strtoimax", "__isoc23_strtoumax", "wcstol", "wcstoul", "wcstoll",
    "wcstoull", "wcstof", "wcstod", "wcstold", "a64l", "l64a", "rand", "srand", "rand_r", "random",
    "srandom", "random_r", "srandom_r", "drand48", "erand48", "lrand48", "nrand48", "mrand48",
    "jrand48", "srand48", "drand48_r", "erand48_r", "lrand48_r", "htonl", "htons", "ntohl", "ntohs",
    "feclearexcept", "feraiseexcept", "fetestexcept", "fegetexceptflag", "fesetexceptflag",
    "fegetround", "fesetround", "fegetenv", "fesetenv", "feholdexcept", "feupdateenv",
    "feenableexcept", "fedisableexcept", "fegetexcept",
    /* the process, without entering anything that could call out */
    "__errno_location", "__h_errno_location", "getenv", "secure_getenv", "abort", "_exit", "_Exit",
    "getpid", "getppid", "gettid", "getuid", "geteuid", "getgid", "getegid", "getpgrp", "getpgid",
    "getsid", "getpagesize", "getrlimit", "getrlimit64", "getrusage", "time", "times", "clock",
    "clock_gettime", "clock_getres", "gettimeofday", "difftime", "sched_yield", "sched_getcpu",
    "stat", "stat64", "lstat", "lstat64", "fstat", "fstat64", "fstatat", "fstatat64", "__xstat",
    "__xstat64", "__lxstat", "__lxstat64", "__fxstat", "__fxstat64", "access", "lseek", "lseek64",
    "isatty", "readlink", "unlink", "ftruncate", "ftruncate64", "umask", "uname", "sigemptyset",
    "sigfillset", "sigaddset", "sigdelset", "sigismember", "sigprocmask", "pthread_sigmask",
    "sigaction", "raise", "kill", "localeconv", "nl_langinfo", "uselocale", "feof", "ferror",
    "clearerr", "fileno", "feof_unlocked", "ferror_unlocked", "fileno_unlocked", "__stack_chk_fail",
    "__chk_fail", "__fdelt_chk", "__sched_cpucount", "mcount", "_mcount", "__fentry__",
    /* jumps and other stacks */
    "setjmp", "_setjmp", "__setjmp", "sigsetjmp", "__sigsetjmp", "longjmp", "_longjmp",
    "siglongjmp", "__longjmp_chk", "getcontext", "setcontext", "swapcontext", "makecontext",
    /* threads: what neither waits to be cancelled nor allocates */
    "pthread_self", "pthread_equal", "pthread_getspecific", "pthread_kill", "pthread_mutex_init",
    "pthread_mutex_destroy", "pthread_mutex_lock", "pthread_mutex_trylock",
    "pthread_mutex_timedlock", "pthread_mutex_unlock", "pthread_mutexattr_init",
    "pthread_mutexattr_destroy", "pthread_mutexattr_settype", "pthread_mutexattr_setpshared",
    "pthread_rwlock_init", "pthread_rwlock_destroy", "pthread_rwlock_rdlock",
    "pthread_rwlock_wrlock", "pthread_rwlock_tryrdlock", "pthread_rwlock_trywrlock",
    "pthread_rwlock_unlock", "pthread_spin_init", "pthread_spin_destroy", "pthread_spin_lock",
    "pthread_spin_trylock", "pthread_spin_unlock", "pthread_cond_init", "pthread_cond_destroy",
    "pthread_cond_signal", "pthread_cond_broadcast", "sem_init", "sem_destroy", "sem_post",
    "sem_trywait", "sem_getvalue", "mtx_lock", "mtx_trylock", "mtx_unlock",
    /* libgcc: wide integers, floating point in software, complex numbers */
    "__multi3", "__divti3", "__udivti3", "__modti3", "__umodti3", "__divmodti4", "__udivmodti4",
    "__ashlti3", "__ashrti3", "__lshrti3", "__negti2", "__cmpti2", "__ucmpti2", "__absvsi2",
    "__absvdi2", "__absvti2", "__addvsi3", "__addvdi3", "__addvti3", "__subvsi3", "__subvdi3",
    "__subvti3", "__mulvsi3", "__mulvdi3", "__mulvti3", "__negvsi2", "__negvdi2", "__negvti2",
    "__clzdi2", "__clzti2", "__ctzdi2", "__ctzti2", "__ffsdi2", "__ffsti2", "__clrsbdi2",
    "__clrsbti2", "__paritydi2", "__parityti2", "__popcountdi2", "__popcountti2", "__bswapsi2",
    "__bswapdi2", "__powihf2", "__powisf2", "__powidf2", "__powixf2", "__powitf2", "__mulhc3",
    "__mulsc3", "__muldc3", "__mulxc3", "__multc3", "__divhc3", "__divsc3", "__divdc3", "__divxc3",
    "__divtc3", "__addtf3", "__subtf3", "__multf3", "__divtf3", "__negtf2", "__eqtf2", "__netf2",
    "__lttf2", "__letf2", "__gttf2", "__getf2", "__cmptf2", "__unordtf2", "__extendhfsf2",
    "__extendhfdf2", "__extendhftf2", "__extendhfxf2", "__extendsftf2", "__extenddftf2",
    "__extendxftf2", "__trunctfhf2", "__truncsfhf2", "__truncdfhf2", "__truncxfhf2", "__trunctfsf2",
    "__trunctfdf2", "__trunctfxf2", "__fixtfsi", "__fixtfdi", "__fixtfti", "__fixunstfsi",
    "__fixunstfdi", "__fixunstfti", "__floatsitf", "__floatditf", "__floattitf", "__floatunsitf",
    "__floatunditf", "__floatuntitf", "__fixsfti", "__fixdfti", "__fixxfti", "__fixunssfti",
    "__fixunsdfti", "__fixunsxfti", "__floattisf", "__floattidf", "__floattixf", "__floatuntisf",
    "__floatuntidf", "__floatuntixf", "__fixsfdi", "__fixdfdi", "__fixxfdi", "__fixunssfdi",
    "__fixunsdfdi", "__fixunsxfdi", "__cpu_indicator_init",
    /* libatomic: spinning or a private lock */
    "__atomic_load", "__atomic_store", "__atomic_exchange", "__atomic_compare_exchange",
    "__atomic_load_16", "__atomic_store_16", "__atomic_exchange_16", "__atomic_compare_exchange_16",
    "__atomic_fetch_add_16", "__atomic_fetch_sub_16", "__atomic_fetch_and_16",
    "__atomic_fetch_or_16", "__atomic_fetch_xor_16", "__atomic_is_lock_free",
    "__atomic_test_and_set_1",
    /* the C++ library: trees, lists, hashes, clocks, searches in strings */
    "__cxa_begin_catch", "__cxa_get_exception_ptr", "__cxa_get_globals_fast", "__cxa_guard_release",
    "__cxa_guard_abort", "__dynamic_cast", "_ZNKSt9type_infoeqERKS_",
    "_ZNKSt9type_info6beforeERKS_", "_ZSt18uncaught_exceptionv", "_ZSt19uncaught_exceptionsv",
    "_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base",
    "_ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base",
    "_ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base",
    "_ZSt18_Rb_tree_decrementPKSt18_Rb_tree_node_base",
    "_ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_",
    "_ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_",
    "_ZNSt8__detail15_List_node_base7_M_hookEPS0_", "_ZNSt8__detail15_List_node_base9_M_unhookEv",
    "_ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_",
    "_ZNSt8__detail15_List_node_base10_M_reverseEv", "_ZNSt8__detail15_List_node_base4swapERS0_S1_",
    "_ZSt11_Hash_bytesPKvmm", "_ZSt15_Fnv_hash_bytesPKvmm",
    "_ZNKSt8__detail20_Prime_rehash_policy14_M_need_rehashEmmm",
    "_ZNKSt8__detail20_Prime_rehash_policy11_M_next_bktEm", "_ZNSt6chrono3_V212steady_clock3nowEv",
    "_ZNSt6chrono3_V212system_clock3nowEv",
    "_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE7compareEPKc",
    "_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE7compareERKS4_",
    "_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE4findEPKcm",
    "_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE4findEPKcmm",
    "_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE4findERKS4_m",
    "_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE4findEcm",
    "_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE5rfindEPKcm",
    "_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE5rfindEPKcmm",
    "_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE5rfindERKS4_m",
    "_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE5rfindEcm",
    "_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE13find_first_ofEPKcmm",
    "_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE12find_last_ofEPKcmm",
    "_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE17find_first_not_ofEPKcmm",
    "_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE16find_last_not_ofEPKcmm",
    /* the Fortran library: strings and powers */
    "_gfortran_string_len_trim", "_gfortran_compare_string", "_gfortran_string_index",
    "_gfortran_string_scan", "_gfortran_string_verify", "_gfortran_adjustl", "_gfortran_adjustr",
    "_gfortran_pow_i4_i4", "_gfortran_pow_i8_i4", "_gfortran_pow_i4_i8", "_gfortran_pow_i8_i8",
    "_gfortran_pow_r4_i8", "_gfortran_pow_r8_i8", "_gfortran_pow_c4_i4", "_gfortran_pow_c8_i4"};

/* libm: each also with f, l and f128. */
static const char *const no_alloc_math[] = {
    "acos",    "acosh",     "asin",      "asinh",       "atan",    "atan2",     "atanh",
    "cbrt",    "ceil",      "copysign",  "cos",         "cosh",    "drem",      "erf",
    "erfc",    "exp",       "exp10",     "exp2",        "expm1",   "fabs",      "fdim",
    "finite",  "floor",     "fma",       "fmax",        "fmin",    "fmod",      "frexp",
    "gamma",   "hypot",     "ilogb",     "isinf",       "isnan",   "j0",        "j1",
    "jn",      "ldexp",     "lgamma",    "lgamma_r",    "llrint",  "llround",   "log",
    "log10",   "log1p",     "log2",      "logb",        "lrint",   "lround",    "modf",
    "nan",     "nearbyint", "nextafter", "nexttoward",  "pow",     "remainder", "remquo",
    "rint",    "round",     "roundeven", "scalb",       "scalbln", "scalbn",    "significand",
    "sin",     "sincos",    "sinh",      "sqrt",        "tan",     "tanh",      "tgamma",
    "trunc",   "y0",        "y1",        "yn",          "cabs",    "cacos",     "cacosh",
    "carg",    "casin",     "casinh",    "catan",       "catanh",  "ccos",      "ccosh",
    "cexp",    "cimag",     "clog",      "clog10",      "conj",    "cpow",      "cproj",
    "creal",   "csin",      "csinh",     "csqrt",       "ctan",    "ctanh",     "__finite",
    "__isinf", "__isnan",   "__signbit", "__fpclassify"};

/* Whether the linker's `name` is in the table. */
static inline bool no_alloc_listed(std::string_view name) {
    static const std::unordered_set<std::string> listed = [] {
        std::unordered_set<std::string> names(std::begin(no_alloc_names), std::end(no_alloc_names));
        for (const std::string base : no_alloc_math) {
            /* The suffix stands before _r: lgammaf_r. */
            size_t end = base.size() > 2 && base.substr(base.size() - 2) == "_r" ? base.size() - 2
                                                                                 : base.size();
            for (const char *suffix : {"", "f", "l", "f128"}) {
                names.insert(base.substr(0, end) + suffix + base.substr(end));
            }
        }
        return names;
    }();
    return listed.count(std::string(name)) != 0;
}

#endif

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""generate.py --seed N --language c|c++: a random program that ends, allocates under every kind of
stack, and prints a checksum which no compiler and no option may change.

A program is a set of functions that call each other. Each has a shape (how it is called) and a body
of random statements; each kind of statement is a method below that returns lines. `x` and `y` are
the two variables of every body.
"""

import argparse
import random

# How often each kind of statement is chosen: (method, weight, languages).
STATEMENTS = [
    ("assign", 6, "c c++"), ("allocate", 8, "c c++"), ("call", 14, "c c++"), ("branch", 8, "c c++"),
    ("switch", 3, "c c++"), ("loop", 4, "c c++"), ("leave_loops", 2, "c c++"),
    ("computed_goto", 2, "c c++"), ("early_return", 3, "c c++"), ("pure_call", 5, "c c++"),
    ("local_alloca", 2, "c c++"), ("local_vla", 2, "c c++"), ("local_aligned", 2, "c c++"),
    ("local_large", 1, "c c++"), ("jump", 2, "c c++"), ("signal", 1, "c c++"),
    ("sort_c", 2, "c c++"), ("cleanup_c", 2, "c"),
    ("attempt", 6, "c++"), ("throw", 5, "c++"), ("guard", 4, "c++"), ("virtual_call", 4, "c++"),
    ("lambda_call", 4, "c++"), ("sort_cxx", 2, "c++"), ("containers", 3, "c++"),
    ("static_object", 1, "c++"),
]
SHAPES = ["plain"] * 8 + ["jumper", "variadic", "large", "many", "tail", "tail"]
DEEPEST = 3  # statements within statements
PARAMETERS = {
    "plain": "uint32_t a, uint32_t b, int depth", "jumper": "uint32_t a, uint32_t b, int depth",
    "tail": "uint32_t a, uint32_t b, int depth", "inline": "uint32_t a, uint32_t b, int depth",
    "variadic": "int depth, uint32_t a, ...", "large": "struct large in, int depth",
    "many": "uint32_t a, double d1, uint32_t b, uint32_t c3, uint32_t c4, uint32_t c5, double d2,"
            " uint32_t c6, uint32_t c7, uint32_t c8, int depth",
}


class Function:
    def __init__(self, name, shape, attribute):
        self.name, self.shape, self.attribute = name, shape, attribute
        self.result = "struct large" if shape == "large" else "uint32_t"
        self.has_computed_goto = False

    def head(self):
        return "%s %s %s(%s)" % (self.attribute, self.result, self.name, PARAMETERS[self.shape])

    def can_be_pointed_to(self):
        return self.shape in ("plain", "jumper", "tail")


def indent(lines):
    return ["    " + line for line in lines]


def block(head, lines):
    return [head + " {"] + indent(lines) + ["}"]


class Program:
    def __init__(self, seed, language):
        self.random = random.Random("%s %d" % (language, seed))
        self.seed, self.language = seed, language
        self.unique = 0
        self.depth = 0  # of statements
        self.current = None
        self.top_level = []  # comparators and the like, written before the functions
        count = self.random.randint(6, 14)
        self.functions = [self.new_function(number) for number in range(count)]
        self.helpers = [Function("helper%d" % number, "inline", "static ALWAYS_INLINE")
                        for number in range(self.random.randint(0, 3))]
        self.pure = self.random.randint(2, 5)
        self.classes = self.random.randint(2, 4) if language == "c++" else 0
        self.threads = self.random.randint(1, 3) if self.chance(25) else 0

    def new_function(self, number):
        shape = self.random.choice(SHAPES)
        attribute = self.random.choice(["static"] * 3 + ["static NOINLINE"] * 3
                                       + ["NOINLINE"] * 2 + ["static COLD", ""])
        if shape in ("jumper", "tail") and self.chance(70):
            attribute = "static NOINLINE"
        return Function("f%d" % number, shape, attribute)

    # --- small things --------------------------------------------------------------------------

    def chance(self, percent):
        return self.random.randrange(100) < percent

    def name(self, stem):
        self.unique += 1
        return "%s%d" % (stem, self.unique)

    def number(self):
        return "%du" % self.random.randrange(self.random.choice([8, 256, 1 << 32]))

    def value(self):
        """An expression without calls: its order of evaluation does not matter."""
        term = lambda: self.random.choice(["x", "y", "a", "x", "y", self.number()])
        shape = self.random.choice(["%s + %s", "%s ^ %s", "%s * %s", "(%s >> 3) - %s", "%s | %s",
                                    "%s", "~%s", "(%s << 5) + %s"])
        return shape % tuple(term() for _ in range(shape.count("%s")))

    def condition(self):
        bits = self.random.choice([1, 1, 3, 3, 7, 12])
        return "((%s) & %du) == %du" % (self.value(), bits, self.random.randrange(bits + 1) & bits)

    def target(self):
        return self.random.choice(["x", "y"])

    def size(self):
        return "%d + (%s & 15)" % (self.random.randrange(1, 3000), self.target())

    # --- calls ----------------------------------------------------------------------------------

    def call_of(self, function, depth="depth - 1"):
        one, two = self.value(), self.value()
        if function.shape == "variadic":
            return "%s(%s, %s, 1.5, %s, \"text\")" % (function.name, depth, one, two)
        if function.shape == "large":
            return "%s(make_large(%s), %s).word[%d]" % (function.name, one, depth,
                                                         self.random.randrange(40))
        if function.shape == "many":
            return "%s(%s, 0.5, %s, x, y, 1, 2.5, 2, 3, x, %s)" % (function.name, one, two, depth)
        return "%s(%s, %s, %s)" % (function.name, one, two, depth)

    def random_call(self):
        if self.chance(20):
            return "table[(%s) %% TABLE](%s, %s, depth - 1)" % (self.value(), self.value(),
                                                                self.value())
        if self.helpers and self.chance(20) and self.current.shape != "inline":
            return self.call_of(self.random.choice(self.helpers))
        if self.chance(15) and self.current in self.functions:
            return self.call_of(self.current)
        return self.call_of(self.random.choice(self.functions))

    # --- statements -----------------------------------------------------------------------------

    def statements(self, count=None):
        self.depth += 1
        lines = []
        kinds = [(name, weight) for name, weight, languages in STATEMENTS
                 if self.language in languages.split()]
        for _ in range(count if count is not None else self.random.randint(1, 3)):
            name = self.random.choices([kind for kind, _ in kinds],
                                       [weight for _, weight in kinds])[0]
            if self.depth > DEEPEST:
                name = self.random.choice(["assign", "allocate", "call", "pure_call", "allocate"])
            lines += getattr(self, name)()
        self.depth -= 1
        return lines

    def assign(self):
        return ["%s %s %s;" % (self.target(), self.random.choice(["=", "+=", "^=", "-="]),
                               self.value())]

    def allocate(self):
        size = self.name("size")
        how = ["malloc(%s)", "malloc(%s)", "calloc(1, %s)", "realloc(give_back(), %s)",
               "allocate_aligned(%s)"]
        if self.language == "c++":
            how += ["::operator new(%s)"]
        return ["{"] + indent(["size_t %s = %s;" % (size, self.size()),
                               "hold(%s, %s);" % (self.random.choice(how) % size, size)]) + ["}"]

    def call(self):
        return ["%s %s %s;" % (self.target(), self.random.choice(["=", "+=", "^="]),
                               self.random_call())]

    def pure_call(self):
        return ["%s += pure%d(%s, %s);" % (self.target(), self.random.randrange(self.pure),
                                           self.value(), self.value())]

    def branch(self):
        lines = block("if (%s)" % self.condition(), self.statements())
        if self.chance(50):
            lines[-1:] = block("} else", self.statements())
        return lines

    def switch(self):
        lines = []
        for number in range(self.random.randint(3, 6)):
            lines += block("case %d:" % number, self.statements(1))
            lines += [] if self.chance(25) else ["break;"]
        lines += ["default:", "    x += 3;"]
        return block("switch ((%s) %% 8)" % self.value(), lines)

    def loop(self):
        i = self.name("i")
        lines = self.statements()
        if self.chance(30):
            lines += block("if (%s)" % self.condition(),
                           [self.random.choice(["break;", "continue;"])])
        if self.chance(50):
            return block("for (uint32_t %s = 0; %s < %d; %s++)" % (i, i, self.random.randint(2, 5), i),
                         lines)
        return ["{", "    uint32_t %s = 0;" % i] + indent(
            ["do {"] + indent(lines) + ["} while (++%s < %d);" % (i, self.random.randint(2, 4))]) \
            + ["}"]

    def leave_loops(self):
        out, i, j = self.name("out"), self.name("i"), self.name("j")
        inner = self.statements(1) + ["if (%s) goto %s;" % (self.condition(), out)]
        return block("for (uint32_t %s = 0; %s < 3; %s++)" % (i, i, i), block(
            "for (uint32_t %s = 0; %s < 3; %s++)" % (j, j, j), inner)) + ["%s:;" % out]

    def computed_goto(self):
        # One a function: every label of a function is a possible target of its every indirect goto.
        if self.current.shape in ("inline", "callback") or self.current.has_computed_goto:
            return self.assign()
        self.current.has_computed_goto = True
        places = [self.name("place") for _ in range(3)]
        out, n = self.name("out"), self.name("n")
        lines = ["static void *const go[] = {%s};" % ", ".join("&&" + place for place in places),
                 "uint32_t %s = 0;" % n, "goto *go[x % 3];"]
        for place in places:
            lines += block("%s:" % place, self.statements(1))
            lines += ["if (++%s > 4) goto %s;" % (n, out), "goto *go[(%s) %% 3];" % self.value()]
        return ["{"] + indent(lines + ["%s:;" % out]) + ["}"]

    def result(self):
        if self.current.result == "struct large":
            return "make_large(%s)" % self.value()
        return self.value()

    def early_return(self):
        if self.current.shape in ("callback", "jumper"):
            return self.assign()
        return ["if (%s) return %s;" % (self.condition(), self.result())]

    def with_local(self, declaration, name, size):
        lines = [declaration, "memset(%s, (int)x & 127, %s);" % (name, size), "use(%s);" % name]
        lines += self.statements() + ["%s += %s[(%s) / 2];" % (self.target(), name, size)]
        return ["{"] + indent(lines) + ["}"]

    def local_alloca(self):
        if self.current.shape == "inline":
            return self.allocate()
        p, n = self.name("p"), self.name("n")
        return self.with_local("size_t %s = 16 + (x & 255); unsigned char *%s = (unsigned char *)"
                               "alloca(%s);" % (n, p, n), p, n)

    def local_vla(self):
        p, n = self.name("p"), self.name("n")
        return self.with_local("size_t %s = 1 + (y & 127); unsigned char %s[%s];" % (n, p, n), p, n)

    def local_aligned(self):
        p = self.name("p")
        return self.with_local("unsigned char %s[96] __attribute__((aligned(%d)));" % (
            p, self.random.choice([32, 64, 256])), p, "sizeof %s" % p)

    def local_large(self):
        p = self.name("p")
        return self.with_local("unsigned char %s[%d];" % (p, self.random.choice([700, 5000, 9000])),
                               p, "sizeof %s" % p)

    def jump(self):
        return ["if (may_jump() && %s) longjmp(my.jump->place, 1 + (int)(x & 3));"
                % self.condition()]

    def signal(self):
        return block("if (may_leave() && %s)" % self.condition(),
                     ["my.level = depth - 3;", "raise(SIGUSR1);"])

    def sort_c(self):
        compare, p, i = self.name("compare"), self.name("p"), self.name("i")
        saved, self.depth = self.depth, DEEPEST - 1
        current, self.current = self.current, Function(compare, "callback", "")
        body = ["uint32_t a = *(const uint32_t *)left, x = a, y = 5;", "int depth = my.level;",
                "if (spent(depth)) return compare_words(left, right);"] + self.statements(2) + [
                    "mix(x ^ y);", "return compare_words(left, right);"]
        self.depth, self.current = saved, current
        self.top_level.append(block("static int %s(const void *left, const void *right)" % compare,
                                    body))
        return ["{", "    uint32_t %s[%d];" % (p, self.random.choice([5, 12]))] + indent(
            block("for (uint32_t %s = 0; %s < sizeof %s / 4; %s++)" % (i, i, p, i),
                  ["%s[%s] = (x + %s) * 40503u;" % (p, i, i)])
            + ["my.level = depth - 3;", "qsort(%s, sizeof %s / 4, 4, %s);" % (p, p, compare),
               "x += %s[1];" % p]) + ["}"]

    def cleanup_c(self):
        return ["{", "    uint32_t %s __attribute__((cleanup(clean_up))) = x;" % self.name("owned")] \
            + indent(self.statements()) + ["}"]

    # --- statements of C++ only -------------------------------------------------------------------

    def attempt(self):
        jump = self.name("jump")
        lines = ["struct jump *%s = my.jump;" % jump] + block("try", self.statements())
        for kind in self.random.sample(["int value", "const fault &value", "const std::exception &"],
                                       self.random.randint(0, 2)):
            handler = ["alive here;", "my.jump = %s;" % jump] + self.statements(1)
            handler += ["if (%s) throw;" % self.condition()] if self.chance(30) else []
            lines += block("catch (%s)" % kind, handler)
        handler = ["alive here;", "my.jump = %s;" % jump] + self.statements(1)
        lines += block("catch (...)", handler + (["throw;"] if self.chance(15) else []))
        return ["{"] + indent(lines) + ["}"]

    def throw(self):
        what = self.random.choice(["(int)(x & 1023)", "fault(y)", "std::string(40, 'z')"])
        return ["if (may_leave() && %s) throw %s;" % (self.condition(), what)]

    def guard(self):
        kind = self.name("guard")
        saved, self.depth = self.depth, DEEPEST - 1
        current, self.current = self.current, Function(kind, "callback", "")
        body = ["calm quiet;", "uint32_t x = a, y = 7;", "int depth = my.level;", "my.guards--;",
                "if (spent(depth)) return;"] + self.statements(2) + ["mix(x + y);"]
        self.depth, self.current = saved, current
        self.top_level.append(block("struct %s" % kind, ["uint32_t a;"] + block(
            "explicit %s(uint32_t value) : a(value)" % kind, ["my.guards++;"])
            + block("~%s()" % kind, body))[:-1] + ["};"])
        return ["{", "    my.level = depth - 3;", "    %s owner(x);" % kind, "    use(&owner);"] \
            + indent(self.statements()) + ["}"]

    def virtual_call(self):
        return ["%s ^= objects[(%s) %% CLASSES]->run(%s, %s, depth - 1);" % (
            self.target(), self.value(), self.value(), self.value())]

    def lambda_call(self):
        name = self.name("lambda")
        current, self.current = self.current, Function(name, "callback", "")
        body = self.statements(2)
        self.current = current
        how = self.random.choice(["%s(%s)", "apply(%s, %s)", "apply_inline(%s, %s)",
                                  "std::function<uint32_t(uint32_t)>(%s)(%s)"])
        return ["{", "    alive here;"] + indent(block(
            "auto %s = [&](uint32_t b) -> uint32_t" % name,
            ["if (spent(depth)) return b;"] + body + ["return x ^ b;"])[:-1]) + [
                "    };", "    y += %s;" % (how % (name, self.value())), "}"]

    def sort_cxx(self):
        p, i = self.name("p"), self.name("i")
        current, self.current = self.current, Function(p, "callback", "")
        body = self.statements(1)
        self.current = current
        return ["{", "    uint32_t %s[20];" % p] + indent(
            block("for (uint32_t %s = 0; %s < 20; %s++)" % (i, i, i),
                  ["%s[%s] = (x + %s) * 2654435761u;" % (p, i, i)])
            + ["std::sort(%s, %s + 20, [&](uint32_t left, uint32_t right) {" % (p, p)]
            + indent(body + ["return left < right;"]) + ["});", "x += %s[2];" % p]) + ["}"]

    def containers(self):
        name = self.name("items")
        kind = self.random.choice([
            ["std::vector<uint32_t> %s;" % name, "for (uint32_t i = 0; i < 9; i++) %s.push_back(x + i);" % name],
            ["std::string %s(20 + x %% 50, 'k');" % name, "%s += \"and more of it\";" % name],
            ["std::map<uint32_t, std::string> %s;" % name, "%s[x & 7] = std::string(30, 'm');" % name],
            ["auto %s = std::make_shared<std::vector<uint32_t>>(x %% 20 + 1);" % name,
             "%s->resize(40);" % name]])
        size = "%s->size()" % name if "make_shared" in kind[0] else "%s.size()" % name
        return ["{"] + indent(["alive here;"] + kind + self.statements()
                              + ["mix((uint32_t)%s);" % size]) + ["}"]

    def static_object(self):
        name = self.name("once")
        return ["{", "    static __thread uint32_t *%s;" % name] + indent(
            ["if (%s == nullptr) %s = new uint32_t[%d]();" % (name, name, self.random.randint(5, 500)),
             "x += ++%s[1];" % name]) + ["}"]

    # --- functions --------------------------------------------------------------------------------

    def body(self, function):
        self.current, self.depth = function, 0
        stop = ["if (spent(depth)) return %s;" % self.result()]
        begin = ["uint32_t x = a * 2654435761u + %s, y = b ^ %s;" % (self.number(), self.number())]
        if function.shape == "variadic":
            begin = ["va_list list;", "va_start(list, a);", "double d = va_arg(list, double);",
                     "uint32_t b = va_arg(list, uint32_t);",
                     "size_t n = strlen(va_arg(list, const char *));", "va_end(list);"] + begin \
                + ["x += (uint32_t)d + (uint32_t)n;"]
        elif function.shape == "large":
            begin = ["uint32_t a = in.word[3], b = in.word[39];"] + begin
        elif function.shape == "many":
            begin += ["x += (uint32_t)(d1 + d2) + c3 + c4 + c5;", "y += c6 + c7 + c8;"]
        elif function.shape == "jumper":
            return self.jumper_body()
        if self.chance(50):  # an early path before anything else
            begin += self.early_return() if self.chance(50) else self.pure_call()
        end = ["mix(x + y);", "return %s;" % self.result()]
        if function.shape == "tail":
            callee = self.random.choice([f for f in self.functions if f.can_be_pointed_to()]
                                        or [function])
            end = ["mix(x);", "return %s;" % self.call_of(callee)]
            return begin + stop + self.statements(self.random.randint(1, 2)) + end
        return begin + stop + self.statements(self.random.randint(2, 5)) + end

    def jumper_body(self):
        """setjmp: what is changed after it must be volatile."""
        inside = self.statements(self.random.randint(2, 3))
        landed = self.statements(1)
        return ["volatile uint32_t x = a + 3, y = b;", "struct jump *volatile outer = my.jump;",
                "struct jump here;", "if (spent(depth)) return a;", "here.guards = my.guards;"] \
            + block("if (setjmp(here.place) == 0)", ["my.jump = &here;"] + inside) \
            + block("else", ["my.jump = outer;"] + landed) \
            + ["my.jump = outer;", "mix(x ^ y);", "return x + y;"]

    def pure_function(self, number):
        kind = self.random.choice(["arithmetic", "libc", "recursion"])
        if kind == "libc":
            lines = ["char text[64];", "memset(text, 'a' + (int)(a % 20), 40);",
                     "text[10 + b % 30] = 0;", "use(text);", "return (uint32_t)strlen(text) + b;"]
        elif kind == "recursion":
            lines = ["return (a & 15) == 0 ? b : pure%d(a - 1, b * 3 + a) + 1;" % number]
        else:
            lines = ["uint32_t x = a, y = b;"] + self.assign() + self.assign() + ["return x ^ y;"]
        return block("static %s uint32_t pure%d(uint32_t a, uint32_t b)" % (
            self.random.choice(["", "NOINLINE"]), number), lines)

    def main(self):
        each_round = ["uint32_t a = seed * 7 + i, x = a, y = i;"]
        for function in self.functions:
            call = ["begin_call();", "x += %s;" % self.call_of(function, "DEPTH")]
            if self.language == "c++":
                call = block("try", call) + block("catch (...)", ["mix(77);"])
            each_round += call
        rounds = ["begin_thread(seed);"] + block("for (uint32_t i = 0; i < 3; i++)", each_round + [
            "mix(x ^ y);"]) + ["return end_thread();"]
        lines = block("static NOINLINE uint32_t rounds(uint32_t seed)", rounds)
        lines += block("static void *thread_main(void *place)", [
            "uint32_t *result = (uint32_t *)place;", "*result = rounds(*result);", "return NULL;"])
        body = ["uint32_t sum;", "signal(SIGUSR1, on_signal);"]
        if self.threads:
            body += ["pthread_t thread[%d];" % self.threads, "uint32_t result[%d];" % self.threads]
            each = "for (uint32_t i = 0; i < %d; i++)" % self.threads
            body += block(each, ["result[i] = i + 100;",
                                 "pthread_create(&thread[i], NULL, thread_main, &result[i]);"])
        body += ["sum = rounds(%d);" % (self.seed & 0xffff)]
        if self.threads:
            body += block(each, ["pthread_join(thread[i], NULL);", "sum = sum * 31 + result[i];"])
        return lines + block("int main(void)", body + ["printf(\"checksum %08x\\n\", sum);",
                                                       "return (int)(sum & 63);"])

    def handler(self):
        self.current, self.depth = Function("on_signal", "callback", ""), DEEPEST - 1
        body = ["uint32_t a = (uint32_t)number, x = a, y = 1;", "int depth = my.level;",
                "my.calm++;"] + block("if (!spent(depth))", self.statements(2)) + ["my.calm--;",
                                                                                "mix(x + y);"]
        return block("static void on_signal(int number)", body)

    def text(self):
        order = self.functions[:]
        self.random.shuffle(order)
        pointed = [f.name for f in self.functions if f.can_be_pointed_to()] or ["stub"]
        bodies = []
        for function in self.helpers + order:
            bodies += [""] + block(function.head(), self.body(function))
        for number in range(self.classes):
            method = Function("run", "plain", "")
            self.current, self.depth = method, 1
            lines = ["uint32_t x = a + %d, y = b;" % number, "if (spent(depth)) return x;"] \
                + self.statements(2) + ["return x ^ y;"]
            bodies += [""] + block("struct derived%d : base" % number, block(
                "uint32_t run(uint32_t a, uint32_t b, int depth) override", lines))[:-1] + ["};"]
        handler = self.handler()
        pure = [line for number in range(self.pure) for line in [""] + self.pure_function(number)]
        head = ["/* generate.py --seed %d --language %s */" % (self.seed, self.language),
                '#include "prelude.h"', "", "enum { TABLE = %d };" % len(pointed),
                "extern function *const table[TABLE];", ""]
        head += [function.head() + ";" for function in self.functions + self.helpers]
        head += ["", "static struct large make_large(uint32_t seed) {", "    struct large made;",
                 "    for (uint32_t i = 0; i < 40; i++) {", "        made.word[i] = seed + i * seed;",
                 "    }", "    return made;", "}"]
        head += ["", "static uint32_t stub(uint32_t a, uint32_t b, int depth) {",
                 "    return a + b + (uint32_t)depth;", "}"] if pointed == ["stub"] else []
        if self.classes:
            head += ["enum { CLASSES = %d };" % self.classes, "extern base *const objects[CLASSES];"]
        else:
            head += ["", "static void clean_up(uint32_t *owned) {", "    my.level -= 2;",
                     "    mix(*owned);", "    hold(malloc(33), 33);", "}"]
        tail = ["", "function *const table[TABLE] = {%s};" % ", ".join(pointed)]
        if self.classes:
            tail += ["static derived%d object%d;" % (n, n) for n in range(self.classes)]
            tail += ["base *const objects[CLASSES] = {%s};" % ", ".join(
                "&object%d" % n for n in range(self.classes))]
        top = [line for lines in self.top_level for line in [""] + lines]
        return "\n".join(head + pure + top + bodies + [""] + handler + tail + [""] + self.main()) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--language", choices=("c", "c++"), required=True)
    options = parser.parse_args()
    print(Program(options.seed, options.language).text(), end="")


if __name__ == "__main__":
    main()

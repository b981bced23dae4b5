# SPDX-License-Identifier: MIT
"""Small errors in C text, of the usual kinds: scripts/mutants makes them. The text is read as tokens; only the bodies of
functions are changed, never comments, strings or lines of the preprocessor, and no line is added or removed."""

import bisect
import collections
import re

# Of the text from `start` to `end`, which is inside of `function`, `new` is made. `line` counts from 1.
Mutation = collections.namedtuple("Mutation", "line start end new kind function")
Token = collections.namedtuple("Token", "text start kind")

TOKENS = re.compile(r"""
    (?P<space>\s+ | //(?:[^\n\\]|\\.|\\\n)* | /\*.*?\*/)
  | (?P<text>[LuU]?"(?:\\.|[^"\\])*" | [LuU]?'(?:\\.|[^'\\])*')
  | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<sign><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
    """, re.VERBOSE | re.DOTALL)
PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE | re.DOTALL)

COMPARISONS = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",)}
SIGNS = {"+": "-", "-": "+", "+=": "-=", "-=": "+="}
LOGIC = {"&&": "||", "||": "&&"}
RETURNED = {"true": "false", "false": "true", "0": "1", "1": "0", "NULL": None}
STATEMENTS = set("return break continue goto if else for while do switch case default sizeof".split())
TYPES = set("""auto char const double enum extern float inline int long register short signed static struct typedef union
    unsigned void volatile bool _Bool _Alignas _Atomic _Static_assert _Thread_local static_assert""".split())


def tokens_of(text):
    """The tokens that compilers see between the lines of the preprocessor."""
    plain = PREPROCESSOR.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
    return [Token(found.group(), found.start(), found.lastgroup)
            for found in TOKENS.finditer(plain) if found.lastgroup != "space"]


def pairs_of(tokens):
    """For each bracket's place that of the other one; and for each token the place of the bracket it stands in, or -1."""
    others = {"(": ")", "[": "]", "{": "}"}
    pairs, stack, around = {}, [], []
    for place, token in enumerate(tokens):
        around.append(stack[-1] if stack else -1)
        if token.kind == "sign" and token.text in others:
            stack.append(place)
        elif token.kind == "sign" and token.text in others.values():
            if stack and others[tokens[stack[-1]].text] == token.text:
                pairs[place] = stack.pop()
                pairs[pairs[place]] = place
    return pairs, around


def functions_of(tokens, pairs):
    """(name, place of the body's first bracket) of each function."""
    place = 0
    while place < len(tokens):
        if tokens[place].text == "{" and place in pairs:
            before = pairs.get(place - 1, 0) - 1
            if tokens[place - 1].text == ")" and before >= 0 and tokens[before].kind == "name":
                yield tokens[before].text, place
            place = pairs[place]
        place += 1


class Body:
    """One function's mutations."""

    def __init__(self, text, tokens, brackets, name):
        self.text, self.tokens, self.name = text, tokens, name
        self.pairs, self.around = brackets
        self.found = []

    def end(self, place):
        return self.tokens[place].start + len(self.tokens[place].text)

    def change(self, first, last, new, kind):
        """Tokens first to last become `new`, with as many ends of lines."""
        start, end = self.tokens[first].start, self.end(last)
        new += "\n" * (self.text.count("\n", start, end) - new.count("\n"))
        self.found.append(Mutation(0, start, end, new, kind, self.name))

    def is_operand(self, place):
        token = self.tokens[place]
        return token.kind in ("number", "text") or token.text in (")", "]") or \
            token.kind == "name" and token.text not in STATEMENTS

    def signs(self, place):
        token = self.tokens[place]
        for new in COMPARISONS.get(token.text, ()):
            self.change(place, place, new, "comparison")
        if token.text in LOGIC:
            self.change(place, place, LOGIC[token.text], "logic")
        if token.text in SIGNS and self.is_operand(place - 1):
            self.change(place, place, SIGNS[token.text], "sign")

    def number(self, place):
        text = self.tokens[place].text
        if re.fullmatch(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)[uUlL]*", text):
            for step in "+-":
                self.change(place, place, "(%s %s 1)" % (text, step), "constant")

    def condition(self, place):
        first, last = place + 2, self.pairs.get(place + 1, 0) - 1
        if self.tokens[place + 1].text != "(" or last < first:
            return
        inside = self.text[self.tokens[first].start:self.end(last)]
        self.change(first, last, "!(%s)" % inside, "condition negated")
        if self.tokens[place].text == "if":
            self.change(first, last, "(%s) || 1" % inside, "condition dropped")
            self.change(first, last, "(%s) && 0" % inside, "condition dropped")

    def end_of_statement(self, place):
        """The place of the semicolon that ends the statement which begins at `place`, or -1."""
        while place < len(self.tokens) and self.tokens[place].text != ";":
            if self.tokens[place].text in ("}", ")", "]"):
                return -1
            place = self.pairs[place] + 1 if place in self.pairs else place + 1
        return place if place < len(self.tokens) else -1

    def returned(self, place):
        end = self.end_of_statement(place)
        if end <= place + 1:
            return
        old = self.text[self.tokens[place + 1].start:self.end(end - 1)]
        new = RETURNED.get(old, "0")
        if new is not None:
            self.change(place + 1, end - 1, new, "return value")

    def begins_statement(self, place):
        before = self.tokens[place - 1].text
        if before == ")":
            opened = self.pairs.get(place - 1, 0)
            return self.tokens[opened - 1].text in ("if", "for", "while")
        return before in (";", "{", "}", "else", "do", ":")

    def is_declaration(self, place):
        first, second = self.tokens[place], self.tokens[place + 1]
        if first.text in TYPES or first.kind == "name" and second.kind == "name":
            return True
        while second.text == "*":
            place += 1
            second = self.tokens[place + 1]
        return first.kind == "name" and self.tokens[place].text == "*" and second.kind == "name"

    def statement(self, place):
        token = self.tokens[place]
        if token.text in STATEMENTS or not (token.kind == "name" or token.text in ("*", "(", "++", "--")):
            return
        end = self.end_of_statement(place)
        in_head = self.tokens[self.around[place]].text != "{" # between the semicolons of a for, or among values
        if end > place + 1 and not in_head and not self.is_declaration(place) and self.tokens[place + 1].text != ":":
            self.change(place, end - 1, "(void)0", "statement removed")

    def all(self, first, last):
        for place in range(first + 1, last):
            token = self.tokens[place]
            if token.kind == "sign":
                self.signs(place)
            elif token.kind == "number":
                self.number(place)
            elif token.text in ("if", "while"):
                self.condition(place)
            elif token.text == "return":
                self.returned(place)
            elif token.text == "break":
                self.change(place, place, "", "break removed")
            if self.begins_statement(place):
                self.statement(place)
        return self.found


def mutations_of(text):
    """All mutations of a C file's text, in its order."""
    tokens = tokens_of(text)
    pairs, around = pairs_of(tokens)
    starts = [0] + [found.end() for found in re.finditer("\n", text)]
    found = []
    for name, place in functions_of(tokens, pairs):
        found += Body(text, tokens, (pairs, around), name).all(place, pairs[place])
    return [one._replace(line=bisect.bisect_right(starts, one.start)) for one in found]


def mutated(text, mutation):
    return text[:mutation.start] + mutation.new + text[mutation.end:]


def chosen(mutations, count, source):
    """Up to `count` of the pairs (file, mutation), one a line, in the order of the random `source`: each line is as likely as
    each other, and each kind in it, however much there is to change."""
    lines = {}
    for file, mutation in mutations:
        lines.setdefault((file, mutation.line), []).append(mutation)
    places = sorted(lines)
    source.shuffle(places)
    picked = []
    for place in places[:count]:
        kind = source.choice(sorted({one.kind for one in lines[place]}))
        picked.append((place[0], source.choice([one for one in lines[place] if one.kind == kind])))
    return picked

// SPDX-License-Identifier: MIT
// highlight.ts: colours source text, line by line: comments, strings, numbers, keywords, types, preprocessor. Pieces are
// text with a class, never markup. Fetched when a file is first shown.
//
// A tokenizer that knows six languages roughly, instead of a library that knows 190: highlight.js with these six takes
// 16 kB, and writes markup.

export type PieceKind = "" | "comment" | "string" | "number" | "keyword" | "type" | "preprocessor";
export interface Piece {
    kind: PieceKind;
    text: string;
}

interface Language {
    keywords: ReadonlySet<string>;
    types: ReadonlySet<string>;
    line: readonly string[]; // what begins a comment to the end of the line
    block: readonly [string, string][];
    nested?: boolean; // block comments within each other
    quotes: string; // of strings
    long?: readonly [string, string][]; // strings over several lines
    preprocessor?: boolean;
    lifetimes?: boolean; // 'a is no character
    anyCase?: boolean;
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(" "));
const C_WORDS = "auto break case const continue default do else enum extern for goto if inline register restrict return sizeof " +
    "static struct switch typedef union volatile while _Alignas _Alignof _Atomic _Generic _Noreturn _Static_assert _Thread_local " +
    "true false NULL nullptr alignas alignof thread_local static_assert constexpr typeof";
const C_TYPES = "void char short int long float double signed unsigned bool _Bool size_t ssize_t ptrdiff_t intptr_t uintptr_t " +
    "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t FILE wchar_t char8_t char16_t char32_t";

const LANGUAGES: Record<string, Language> = {
    c: { keywords: words(C_WORDS), types: words(C_TYPES), line: ["//"], block: [["/*", "*/"]], quotes: "\"'", preprocessor: true },
    cpp: {
        keywords: words(C_WORDS + " and asm catch class co_await co_return co_yield concept const_cast consteval constinit decltype " +
            "delete dynamic_cast explicit export final friend mutable namespace new noexcept not operator or override private " +
            "protected public reinterpret_cast requires static_cast template this throw try typeid typename using virtual"),
        types: words(C_TYPES + " string string_view vector map set unordered_map unordered_set pair tuple unique_ptr shared_ptr " +
            "optional variant span array"),
        line: ["//"], block: [["/*", "*/"]], quotes: "\"'", preprocessor: true, long: [['R"(', ')"']],
    },
    rust: {
        keywords: words("as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod " +
            "move mut pub ref return self Self static struct super trait true type union unsafe use where while"),
        types: words("bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize String Vec Box Option Result Rc Arc"),
        line: ["//"], block: [["/*", "*/"]], nested: true, quotes: "\"'", long: [['r#"', '"#'], ['"', '"']], lifetimes: true,
    },
    go: {
        keywords: words("break case chan const continue default defer else fallthrough for func go goto if import interface map " +
            "package range return select struct switch type var true false nil iota"),
        types: words("bool byte complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune string uint uint8 uint16 " +
            "uint32 uint64 uintptr any"),
        line: ["//"], block: [["/*", "*/"]], quotes: "\"'", long: [["`", "`"]],
    },
    d: {
        keywords: words("abstract alias align asm assert auto body break case cast catch class const continue debug default delegate " +
            "delete deprecated do else enum export extern final finally for foreach foreach_reverse function goto if immutable " +
            "import in inout interface invariant is lazy mixin module new nothrow null out override package pragma private " +
            "protected public pure ref return scope shared static struct super switch synchronized template this throw true " +
            "false try typeid typeof union unittest version while with __gshared"),
        types: words("bool byte ubyte short ushort int uint long ulong char wchar dchar string wstring float double real void size_t ptrdiff_t"),
        line: ["//"], block: [["/*", "*/"], ["/+", "+/"]], nested: true, quotes: "\"'", long: [["`", "`"]],
    },
    fortran: {
        keywords: words("allocatable allocate associate block call case class close contains continue cycle deallocate do elemental " +
            "else elseif end enddo endif exit forall format function go goto if implicit import in inout intent interface " +
            "module none nullify only open optional out parameter pointer private procedure program public pure read " +
            "recursive result return save select stop subroutine target then to type use where while write"),
        types: words("integer real complex character logical double precision"),
        line: ["!"], block: [], quotes: "\"'", anyCase: true,
    },
};
const NAMES: Record<string, string> = { "c++": "cpp", cxx: "cpp", objc: "c", cuda: "cpp", rs: "rust", golang: "go", f90: "fortran", dlang: "d" };

export function knowsLanguage(name: string): boolean {
    return (NAMES[name] ?? name) in LANGUAGES;
}

/* What goes on in the next line: a comment or a string that is not closed. */
interface Open {
    kind: "comment" | "string";
    begin: string;
    end: string;
    depth: number;
}

/* By line its pieces; together they are the line. */
export function highlight(lines: readonly string[], name: string): Piece[][] {
    const language = LANGUAGES[NAMES[name] ?? name];
    if (language === undefined) return lines.map((text) => [{ kind: "", text }]);
    let open: Open | undefined;
    return lines.map((line) => {
        const pieces: Piece[] = [];
        let at = 0;
        const put = (kind: PieceKind, end: number): void => {
            const text = line.slice(at, end);
            const last = pieces.at(-1);
            if (last !== undefined && last.kind === kind) last.text += text;
            else pieces.push({ kind, text });
            at = end;
        };
        const directive = open === undefined && language.preprocessor === true ? /^\s*#\s*\w+(\s*<[^>]*>)?/.exec(line) : null;
        if (directive !== null) put("preprocessor", directive[0].length);
        while (at < line.length) {
            if (open === undefined) {
                const [kind, end, begun] = pieceAt(language, line, at);
                put(kind, end);
                open = begun;
            } else {
                const { kind } = open;
                const end = closeOf(language, open, line, at);
                if (open.depth === 0) open = undefined;
                put(kind, end);
            }
        }
        return pieces;
    });
}

/* Where a comment or string that began before ends, or all of the line; its depth is 0 then. */
function closeOf(language: Language, open: Open, line: string, from: number): number {
    for (let i = from; i < line.length; i++) {
        if (open.kind === "string" && open.end === '"' && line[i] === "\\") i++;
        else if (line.startsWith(open.end, i)) {
            if (--open.depth === 0) return i + open.end.length;
            i += open.end.length - 1;
        } else if (open.kind === "comment" && language.nested === true && line.startsWith(open.begin, i)) {
            open.depth++;
            i += open.begin.length - 1;
        }
    }
    return line.length;
}

const NUMBER = /(0[xX][\da-fA-F_']+|\d[\d_']*(\.\d[\d_]*)?([eE][+-]?\d+)?)\w*/y;
const WORD = /[A-Za-z_$\u0080-\uffff][\w$\u0080-\uffff]*/y;
const CHARACTER = /'(\\.[^']*|[^\\'])'/y; // not a lifetime

function textAt(pattern: RegExp, line: string, at: number): string | undefined {
    pattern.lastIndex = at;
    return pattern.exec(line)?.[0];
}

/* What begins at this place: its kind, where it ends, and what is open then. */
function pieceAt(language: Language, line: string, at: number): [PieceKind, number, Open?] {
    const begins = ([begin]: readonly [string, string]) => line.startsWith(begin, at);
    if (language.line.some((begin) => line.startsWith(begin, at))) return ["comment", line.length];
    const block = language.block.find(begins);
    const opened = block ?? language.long?.find(begins);
    if (opened !== undefined) {
        const kind = block === undefined ? "string" : "comment";
        return [kind, at + opened[0].length, { kind, begin: opened[0], end: opened[1], depth: 1 }];
    }
    const quote = line[at]!;
    const isLifetime = quote === "'" && language.lifetimes === true && textAt(CHARACTER, line.slice(0, at + 12), at) === undefined;
    if (language.quotes.includes(quote) && !isLifetime) {
        let end = at + 1;
        while (end < line.length && line[end] !== quote) end += line[end] === "\\" && language.anyCase !== true ? 2 : 1;
        return ["string", Math.min(end + 1, line.length)];
    }
    const number = textAt(NUMBER, line, at);
    if (number !== undefined) return ["number", at + number.length];
    const word = textAt(WORD, line, at);
    if (word === undefined) return ["", at + 1];
    const text = language.anyCase === true ? word.toLowerCase() : word;
    return [language.keywords.has(text) ? "keyword" : language.types.has(text) ? "type" : "", at + word.length];
}

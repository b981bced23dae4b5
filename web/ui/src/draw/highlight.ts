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
    let open: Open | null = null;
    return lines.map((line) => {
        const scanner: Scanner = new Scanner(language, line, open);
        scanner.run();
        open = scanner.open;
        return scanner.pieces;
    });
}

class Scanner {
    readonly pieces: Piece[] = [];
    private at = 0;

    constructor(private readonly language: Language, private readonly line: string, public open: Open | null) {}

    run(): void {
        if (this.open === null && this.language.preprocessor === true) this.directive();
        while (this.at < this.line.length) {
            if (this.open !== null) this.goOn(this.open);
            else if (!this.comment() && !this.string() && !this.number() && !this.word()) this.put("", this.at + 1);
        }
    }

    /* Takes the line up to `end`. */
    private put(kind: PieceKind, end: number): void {
        const text = this.line.slice(this.at, end);
        const last = this.pieces[this.pieces.length - 1];
        if (last !== undefined && last.kind === kind) last.text += text;
        else this.pieces.push({ kind, text });
        this.at = end;
    }

    private directive(): void {
        const found = /^\s*#\s*\w+(\s*<[^>]*>)?/.exec(this.line);
        if (found !== null) this.put("preprocessor", found[0].length);
    }

    /* A comment or string that began before: up to its end, or all of the line. */
    private goOn(open: Open): void {
        for (let i = this.at; i < this.line.length; i++) {
            if (open.kind === "string" && open.end === '"' && this.line[i] === "\\") i++;
            else if (this.line.startsWith(open.end, i)) {
                if (--open.depth === 0) {
                    this.open = null;
                    return this.put(open.kind, i + open.end.length);
                }
                i += open.end.length - 1;
            } else if (open.kind === "comment" && this.language.nested === true && this.line.startsWith(open.begin, i)) {
                open.depth++;
                i += open.begin.length - 1;
            }
        }
        this.put(open.kind, this.line.length);
    }

    private begin(kind: Open["kind"], [begin, end]: readonly [string, string]): boolean {
        this.open = { kind, begin, end, depth: 1 };
        this.put(kind, this.at + begin.length);
        return true;
    }

    private comment(): boolean {
        if (this.language.line.some((begin) => this.line.startsWith(begin, this.at))) {
            this.put("comment", this.line.length);
            return true;
        }
        const block = this.language.block.find(([begin]) => this.line.startsWith(begin, this.at));
        return block !== undefined && this.begin("comment", block);
    }

    private string(): boolean {
        const long = this.language.long?.find(([begin]) => this.line.startsWith(begin, this.at));
        if (long !== undefined) return this.begin("string", long);
        const quote = this.line[this.at]!;
        if (!this.language.quotes.includes(quote)) return false;
        if (quote === "'" && this.language.lifetimes === true && !/^'(\\.[^']*|[^\\'])'/.test(this.line.slice(this.at, this.at + 12))) return false;
        let end = this.at + 1;
        while (end < this.line.length && this.line[end] !== quote) end += this.line[end] === "\\" && this.language.anyCase !== true ? 2 : 1;
        this.put("string", Math.min(end + 1, this.line.length));
        return true;
    }

    private number(): boolean {
        const found = /^(0[xX][\da-fA-F_']+|\d[\d_']*(\.\d[\d_]*)?([eE][+-]?\d+)?)\w*/.exec(this.line.slice(this.at));
        if (found !== null) this.put("number", this.at + found[0].length);
        return found !== null;
    }

    private word(): boolean {
        const found = /^[A-Za-z_$\u0080-\uffff][\w$\u0080-\uffff]*/.exec(this.line.slice(this.at));
        if (found === null) return false;
        const text = this.language.anyCase === true ? found[0].toLowerCase() : found[0];
        const kind = this.language.keywords.has(text) ? "keyword" : this.language.types.has(text) ? "type" : "";
        this.put(kind, this.at + found[0].length);
        return true;
    }
}

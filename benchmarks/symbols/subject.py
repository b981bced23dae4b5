# SPDX-License-Identifier: MIT
"""Makes a program with hundreds of megabytes of debug information: C++ with many instances of the
standard library's templates, compiled once for each of a few variants; the other parts are the same
object files under other names (as long as the first, in symbols, strings and debug information
alike). Used by figures.py."""

import concurrent.futures
import os
import subprocess

VARIANTS = "abcd"
COPIES = 24  # of each variant: about 5.4 MB of debug information each

HEADERS = ("algorithm", "functional", "iostream", "map", "memory", "regex", "set", "string",
           "unordered_map", "vector")
TEMPLATES = """
template <int N> struct node {
    int value[N + 1];
    std::string name;
    std::vector<node<N - 1>> below;
    bool operator<(const node &other) const { return name < other.name; }
};
template <> struct node<0> { int value; };

template <int N> struct shop {
    std::map<std::string, node<N>> shelf;
    std::unordered_map<int, std::vector<node<N>>> bins;
    std::set<node<N>> all;
    std::function<void(node<N> &)> sell;
    void fill(int i) {
        node<N> one;
        one.name = std::to_string(i);
        shelf[one.name] = one;
        bins[i].push_back(one);
        all.insert(one);
        sell = [this](node<N> &sold) { bins[sold.value[0]].emplace_back(sold); };
        sell(one);
        std::vector<node<N>> sorted(all.begin(), all.end());
        std::sort(sorted.begin(), sorted.end());
        auto shared = std::make_shared<node<N>>(one);
        sell(*shared);
    }
};
"""


def part_source(name, variant):
    """One translation unit in a namespace of its own; each variant has other instances."""
    first = 1 + VARIANTS.index(variant)
    fills = "\n".join(f"    {{ shop<{n}> one; one.fill(i); sum += one.shelf.size(); }}"
                      for n in range(first, first + 8))
    includes = "\n".join(f"#include <{header}>" for header in HEADERS)
    return (f"{includes}\nnamespace {name} {{\n{TEMPLATES}\nint run(int i) {{\n"
            f"    std::regex some(\"a(b|c)*d\");\n"
            f"    int sum = std::regex_match(std::to_string(i), some);\n{fills}\n"
            f"    return sum;\n}}\n}}\n")


def name_of(variant, number):
    return f"part_{variant}{number:03}"


def compile_variant(folder, variant):
    name = name_of(variant, 0)
    source, made = (os.path.join(folder, name + end) for end in (".cpp", ".o"))
    with open(source, "w", encoding="utf-8") as file:
        file.write(part_source(name, variant))
    subprocess.run(["g++", "-g", "-O1", "-c", source, "-o", made], check=True)
    with open(made, "rb") as file:
        return variant, file.read()


def write_parts(folder):
    """The object files of all parts; their names."""
    names = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for variant, made in pool.map(lambda one: compile_variant(folder, one), VARIANTS):
            for number in range(COPIES):
                name = name_of(variant, number)
                names.append(name)
                with open(os.path.join(folder, name + ".o"), "wb") as file:
                    file.write(made.replace(name_of(variant, 0).encode(), name.encode()))
    return names


def write_main(path, names):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"namespace {name} {{ int run(int); }}\n" for name in names)
        file.write("int main(int count, char **) {\n    int sum = 0;\n")
        file.writelines(f"    sum += {name}::run(count);\n" for name in names)
        file.write("    return sum == 0;\n}\n")


def make(folder):
    """The program, made if it is not there."""
    program = os.path.join(folder, "subject")
    if os.path.exists(program):
        return program
    os.makedirs(folder, exist_ok=True)
    names = write_parts(folder)
    main = os.path.join(folder, "main.cpp")
    write_main(main, names)
    objects = [os.path.join(folder, name + ".o") for name in names]
    subprocess.run(["g++", "-g", "-Wl,--build-id", main, *objects, "-o", program + ".new"],
                   check=True)
    for path in objects:
        os.unlink(path)
    os.rename(program + ".new", program)
    return program


def compressed(program):
    """The same with compressed debug information, as distributions ship it."""
    packed = program + ".packed"
    if not os.path.exists(packed):
        subprocess.run(["objcopy", "--compress-debug-sections=zlib", program, packed + ".new"],
                       check=True)
        os.rename(packed + ".new", packed)
    return packed


def debug_bytes(program):
    """Bytes of its debug information, unpacked."""
    sizes = subprocess.run(["size", "-A", program], check=True, capture_output=True,
                           text=True).stdout
    return sum(int(line.split()[1]) for line in sizes.splitlines() if line.startswith(".debug_"))

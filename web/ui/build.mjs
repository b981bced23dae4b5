// SPDX-License-Identifier: MIT
// build.mjs: makes dist/ (the page of memtrace serve, and in onefile.html the same as one file, of memtrace export),
// or with `test DIR` the unit tests as plain JavaScript in DIR.
//
// The same bytes on each machine: names are hashes of what is in the files, nothing depends on the time,
// the folder or the order of a directory. Called by scripts/web.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
process.chdir(here);

const common = {
    bundle: true,
    format: "esm",
    target: ["chrome109", "firefox115", "safari16"],
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "none",
    logLevel: "warning",
    charset: "utf8",
    absWorkingDir: here,
    define: { SAVED: "false" },
};

/* What runs first, in a file of its own: shares nothing with the page, so that it needs nothing else. */
async function boot() {
    const { outputFiles } = await build({ ...common, entryPoints: { boot: "src/boot.ts" }, outdir: "dist", minify: true, entryNames: "[name]-[hash]", write: false });
    return outputFiles[0];
}

/* The first screen in one file, what a view needs beside it in chunks that are fetched when it is opened. */
async function page() {
    const first = await boot();
    const result = await build({
        ...common,
        entryPoints: { app: "src/main.ts" },
        outdir: "dist",
        splitting: true,
        minify: true,
        entryNames: "[name]-[hash]",
        chunkNames: "[name]-[hash]",
        assetNames: "[name]-[hash]",
        metafile: true,
        write: false,
    });
    const outputs = Object.keys(result.metafile.outputs).map((path) => basename(path));
    const one = (pattern) => {
        const found = outputs.filter((name) => pattern.test(name));
        if (found.length !== 1) throw new Error(`${pattern}: ${found.length} files`);
        return found[0];
    };
    rmSync("dist", { recursive: true, force: true });
    mkdirSync("dist");
    for (const file of [first, ...result.outputFiles]) writeFileSync(join("dist", relative("dist", file.path)), file.contents);
    const script = one(/^app-.*\.js$/);
    const needed = firstLoad(result.metafile.outputs, `dist/${script}`);
    const parts = needed.slice(1).map((name) => `<link rel="part" href="/${name}">\n`).join("");
    const html = readFileSync("src/index.html", "utf8")
        .replace("%STYLE%", one(/^app-.*\.css$/))
        .replace("%SCRIPT%", script)
        .replace("%BOOT%", basename(first.path))
        .replace("%PARTS%\n", () => parts);
    writeFileSync("dist/index.html", html);
    writeFileSync("dist/NOTICE.txt", notice(result.metafile.inputs));
    return ["index.html", one(/^app-.*\.css$/), basename(first.path), ...needed];
}

/* The licences of what is in the bundle, which want to be with each copy. */
function notice(inputs) {
    const packages = new Set();
    for (const path of Object.keys(inputs)) {
        const found = /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path);
        if (found !== null) packages.add(found[1]);
    }
    const texts = [...packages].sort().map((name) => {
        const folder = join("node_modules", name);
        const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
        const file = readdirSync(folder).sort().find((one) => /^licen[cs]e/i.test(one));
        if (file === undefined) throw new Error(`${name}: no licence file`);
        return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
    });
    return `The page of memtrace serve has these libraries in it.\n\n${texts.join(`\n${"-".repeat(72)}\n\n`)}`;
}

/* What the browser needs before anything is on screen: the script, and what it cannot do without. */
function firstLoad(outputs, script) {
    const seen = new Set([script]);
    for (const path of seen) {
        for (const { path: other, kind } of outputs[path].imports) if (kind === "import-statement") seen.add(other);
    }
    return [...seen].map((path) => basename(path));
}

/* One file: no part is fetched later. Its policy names its own style and script by their hashes: nothing that is in the
 * data could ever run. %DATA% is filled by web/server/onefile.c, with what saved/answers.ts reads. */
async function savedPage() {
    const { outputFiles, metafile } = await build({
        ...common,
        define: { SAVED: "true" },
        entryPoints: { page: "src/saved/main.ts" },
        outdir: "dist",
        format: "iife",
        minify: true,
        metafile: true,
        write: false,
    });
    const text = (ending) => outputFiles.find((file) => file.path.endsWith(ending)).text.trim();
    const hash = (what) => `sha256-${createHash("sha256").update(what).digest("base64")}`;
    const [style, script] = [text(".css"), text(".js")];
    const licences = notice(metafile.inputs);
    // Two hyphens would end the comment that it is in.
    const parts = { NOTICE: licences.replaceAll("--", "- -"), STYLEHASH: hash(style), SCRIPTHASH: hash(script), STYLE: style, SCRIPT: script };
    const html = readFileSync("src/saved.html", "utf8").replace(/%(NOTICE|STYLEHASH|SCRIPTHASH|STYLE|SCRIPT)%/g, (_, name) => parts[name]);
    for (const [what, wrong] of [[style, "</style"], [script, "</script"], [licences + style + script, "%DATA%"]]) {
        if (what.includes(wrong)) throw new Error(`${wrong} in the saved page`);
    }
    writeFileSync("dist/onefile.html", html);
}

function sizes(names) {
    const rows = readdirSync("dist")
        .sort()
        .filter((name) => name !== "onefile.html")
        .map((name) => {
            const bytes = readFileSync(join("dist", name));
            return { name, bytes: bytes.length, gz: gzipSync(bytes, { level: 9 }).length };
        });
    for (const row of rows) console.log(`${String(row.bytes).padStart(9)} ${String(row.gz).padStart(8)} gz  ${row.name}`);
    const first = rows.filter((row) => names.includes(row.name)).reduce((sum, row) => sum + row.gz, 0);
    const all = rows.reduce((sum, row) => sum + row.gz, 0);
    const hash = createHash("sha256");
    for (const row of rows) hash.update(row.name).update(readFileSync(join("dist", row.name)));
    const saved = readFileSync("dist/onefile.html");
    hash.update("onefile.html").update(saved);
    console.log(`${String(saved.length).padStart(9)} ${String(gzipSync(saved, { level: 9 }).length).padStart(8)} gz  onefile.html`);
    console.log(`first load ${first} gz, all ${all} gz, sha256 ${hash.digest("hex").slice(0, 16)}`);
}

async function tests(folder) {
    const entryPoints = readdirSync("test")
        .filter((name) => /\.test\.tsx?$/.test(name))
        .sort()
        .map((name) => join("test", name));
    await build({
        ...common,
        entryPoints,
        outdir: folder,
        outExtension: { ".js": ".mjs" },
        platform: "node",
        target: "node18",
        loader: { ".css": "empty" },
    });
}

const [what, folder] = process.argv.slice(2);
if (what === "test") await tests(folder);
else {
    const first = await page();
    await savedPage();
    sizes(first);
}

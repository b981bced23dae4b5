// SPDX-License-Identifier: MIT
// shots.mjs: pictures of the page that are the same on each machine: of the recordings in tests/web/data, with one font,
// at one time of day. pictures.spec.mjs compares them, pictures.mjs (scripts/web-pictures) keeps them.
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';
import pixelmatch from 'pixelmatch';
import { PNG } from 'pngjs';
import { chrome, memtrace, open, openAt, run, scratch, serveIn, settled } from './harness.mjs';

export const here = process.env.WEB_TESTS; // tests/web of the sources
export const kept = path.join(here, 'pictures');
const FONTS = '/usr/share/fonts/truetype/dejavu';
const RECORDED = new Date('2026-11-02T09:00:00Z'); // what the recordings' files say, and the source
const SEEN = new Date('2026-11-04T12:00:00Z');

const key = (...keys) => async (page) => {
    for (const one of keys) {
        await page.keyboard.press(one);
        await settled(page);
    }
};
const compile = 'function=compile_filter';
const lastHalf = 'to=mark:evening&base=1&base-to=50%25';

/**
 * Each picture: the view's address, and what is done there before it is taken; or that with another window (options).
 * The view of a running program is not among them: it is another one each time (running.spec.mjs).
 * Sources: 1 newsdesk, a recording; 2 printshop, one of four threads; 3 a run of five processes, profiles.
 */
export const SHOTS = {
    'summary': ['summary'],
    'summary-profile': ['summary?r=3&process=indexer'],
    'window': ['flame?r=2&from=mark:rush%20hour&to=mark:packing&metric=allocations'],
    'flame': ['flame'],
    'flame-leaked': [`flame?metric=leaked&${compile}`, async (page) => {
        await page.getByRole('tree', { name: 'Flame graph' }).click({ position: { x: 12, y: 110 } });
    }],
    'flame-search': ['flame?metric=allocations&search=basic_string'],
    'flame-difference': [`flame?${lastHalf}`],
    'tree': ['tree?metric=allocations'],
    'sandwich': ['sandwich?focus=render_page&r=2&metric=cumulative'],
    'functions': ['functions?metric=cumulative'],
    'paths': ['paths', async (page) => {
        await page.getByRole('grid', { name: 'Call paths' }).getByRole('row').nth(2).click();
    }],
    'source': [`source?metric=leaked&${compile}`, async (page) => {
        await page.getByRole('row', { name: /new Filter/ }).first().click();
    }],
    'source-missing': ['source?r=2'],
    'blocks': [`blocks?${compile}`, async (page) => {
        await page.getByRole('grid', { name: 'Blocks' }).getByRole('row').nth(4).click();
    }],
    'lifetimes': ['lifetimes?r=2'],
    'sizes': ['sizes?r=2'],
    'heap': ['heap?at=mark:night'],
    'mappings': ['mappings?r=2'],
    'threads': ['threads?r=2'],
    'compare': ['compare?metric=leaked&to=mark:evening&base=1&base-to=50%25'],
    'compare-choose': ['compare'],
    'sql': ['sql', async (page) => {
        await page.getByRole('textbox', { name: /SQL|question/i }).first().focus();
        await page.keyboard.press('Control+Enter');
    }],
    'processes': ['processes?r=3'],
    'files': ['files', async (page) => {
        // What runs with MemTrace on this machine is no part of the picture.
        await page.route('**/api/v1/sources*', async (route) => {
            const response = await route.fetch();
            const answer = await response.json();
            answer.found = answer.found.filter((one) => one.kind !== 'live' && one.pid === undefined);
            await route.fulfill({ response, json: answer });
        });
        await page.getByRole('button', { name: 'Look again' }).click();
    }],
    'help': ['summary', key('?')],
    'palette': ['summary', async (page) => {
        await page.keyboard.press('Control+k');
        await page.getByRole('combobox', { name: /^Search actions/ }).fill('compile');
        await page.getByRole('option', { name: /compile_filter/ }).waitFor();
    }],
    'filters': ['paths?r=2', async (page) => {
        await page.getByRole('combobox', { name: /filter/i }).first().fill('size:');
        await page.getByRole('option', { name: /1K\.\.64K/ }).waitFor();
    }],
    'narrow': ['paths?chosen=function:main', undefined, { viewport: { width: 1000, height: 700 } }],
    'enlarged': ['summary', undefined, { viewport: { width: 700, height: 450 }, deviceScaleFactor: 2 }],
    'saved': ['flame?metric=allocations', undefined, { isSaved: true }],
};
export const THEMES = ['light', 'dark'];

/** Of how many of the pixels a picture differs from the kept one. */
export const MOST_DIFFERENT = 0.001;

/** How far a picture is from another one: {share, difference}; a share of 1 where there is no other or it has another size. */
export function compare(picture, other) {
    const { width, height } = picture;
    if (other === undefined || other.width !== width || other.height !== height) {
        return { share: 1, difference: picture };
    }
    const difference = new PNG({ width, height });
    const pixels = pixelmatch(picture.data, other.data, difference.data, width, height, { threshold: 0.1 });
    return { share: pixels / (width * height), difference };
}

/** The picture that is kept, or undefined. */
export function keptPicture(name) {
    const file = path.join(kept, `${name}.png`);
    return fs.existsSync(file) ? PNG.sync.read(fs.readFileSync(file)) : undefined;
}

/** Why pictures of this machine cannot be the kept ones, or undefined. */
export async function otherMachine() {
    if (!fs.existsSync(FONTS)) {
        return `pictures are made with the fonts of fonts-dejavu-core: no ${FONTS}`;
    }
    const made = fs.readFileSync(path.join(kept, 'chromium'), 'utf8').trim();
    const major = (await browserVersion()).split('.')[0];
    return made === major ? undefined
        : `pictures were made with Chromium ${made}, this is ${major}: not compared (scripts/web-pictures makes them anew)`;
}
export const browserVersion = async () => (await chrome()).version();

/** Only one font, drawn alike, whatever else is installed and set. To be called before the browser starts. */
function useOneFont() {
    const file = path.join(scratch, 'fonts.conf');
    fs.writeFileSync(file, `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig><dir>${FONTS}</dir>
<cachedir>${path.join(scratch, 'fonts')}</cachedir>
<match target="pattern"><test name="family"><string>monospace</string></test>
<edit name="family" mode="assign" binding="strong"><string>DejaVu Sans Mono</string></edit></match>
<match target="pattern"><edit name="family" mode="append_last"><string>DejaVu Sans</string></edit></match></fontconfig>`);
    process.env.FONTCONFIG_FILE = file;
}

/** The recordings in a folder of their own, with the times that they have everywhere; what is asked of `serve`. */
function desk() {
    const folder = path.join(scratch, `desk.${process.pid}`);
    fs.cpSync(path.join(here, 'data'), folder, { recursive: true, filter: (file) => !/record$|\.c$/.test(file) });
    fs.mkdirSync(path.join(folder, 'sources'));
    fs.cpSync(path.join(here, '../../examples/newsdesk/newsdesk.cpp'), path.join(folder, 'sources', 'newsdesk.cpp'));
    for (const name of fs.readdirSync(folder, { recursive: true })) {
        fs.utimesSync(path.join(folder, name), RECORDED, RECORDED);
    }
    return folder;
}

/** Takes each picture: `take(name, {width, height, data})`. */
export async function shoot(t, take) {
    useOneFont();
    const folder = desk();
    t.after(() => fs.rmSync(folder, { recursive: true, force: true }));
    const server = await serveIn(t, folder, '--debug-folders', `${folder}/absent`, '--source-map', `/newsdesk=${folder}/sources`,
        'day.mtr', 'shop.mtr', 'index.mtp');
    const saved = path.join(folder, 'day.html');
    for (const [name, [address, prepare, { isSaved = false, ...options } = {}]] of Object.entries(SHOTS)) {
        if (isSaved) {
            run(memtrace, ['export', '--output', saved, 'day.mtr'], { cwd: folder });
        }
        const look = { timezoneId: 'UTC', locale: 'en-GB', reducedMotion: 'reduce', colorScheme: 'light', now: SEEN, ...options };
        const page = isSaved ? await openAt(t, `file://${saved}#/${address}`, look) : await open(t, server, address, look);
        await prepare?.(page);
        await page.mouse.move(0, 0);
        for (const colorScheme of THEMES) {
            await page.emulateMedia({ colorScheme });
            await page.waitForFunction((theme) => document.documentElement.dataset.theme === theme, colorScheme);
            await settled(page);
            await take(`${name}-${colorScheme}`, PNG.sync.read(await page.screenshot({ caret: 'hide', animations: 'disabled' })));
        }
        await page.context().close();
    }
}

/**
 * A picture as a small PNG: of at most 256 colours. The colours of areas stay as they are; shades of letters' edges,
 * which are many and rare, become the nearest of some.
 */
const EXACT = 48;
export function packed({ width, height, data }) {
    const colours = new Uint32Array(width * height);
    const count = (counts, colour) => counts.set(colour, (counts.get(colour) ?? 0) + 1);
    const common = (counts, most) => [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, most).map(([colour]) => colour);
    const seen = new Map();
    for (let i = 0; i < colours.length; i++) {
        colours[i] = data[4 * i] << 16 | data[4 * i + 1] << 8 | data[4 * i + 2];
        count(seen, colours[i]);
    }
    const exact = new Set(common(seen, EXACT));
    const rounded = (colour) => [16, 8, 0].reduce((sum, shift) => sum | Math.round((colour >> shift & 255) / 17) * 17 << shift, 0);
    const shades = new Map();
    for (const [colour, pixels] of seen) {
        if (!exact.has(colour)) {
            shades.set(rounded(colour), (shades.get(rounded(colour)) ?? 0) + pixels);
        }
    }
    const palette = [...new Set([...exact, ...common(shades, 256 - EXACT)])];
    const parts = (colour) => [colour >> 16, colour >> 8 & 255, colour & 255];
    const distance = (one, other) => parts(one).reduce((sum, part, i) => sum + (part - parts(other)[i]) ** 2, 0);
    const places = new Map(palette.map((colour, place) => [colour, place]));
    for (const colour of seen.keys()) {
        if (!exact.has(colour)) {
            const shade = rounded(colour);
            const near = places.has(shade) ? shade : palette.reduce((best, other) => (distance(other, shade) < distance(best, shade) ? other : best));
            places.set(shade, places.get(near));
            places.set(colour, places.get(near));
        }
    }
    const lines = Buffer.alloc((width + 1) * height); // a line begins with its filter: none
    for (let y = 0, i = 0; y < height; y++) {
        for (let x = 0; x < width; x++, i++) {
            lines[y * (width + 1) + 1 + x] = places.get(colours[i]);
        }
    }
    const head = Buffer.alloc(13);
    head.writeUInt32BE(width, 0);
    head.writeUInt32BE(height, 4);
    head.set([8, 3], 8); // bits, colours of a palette
    return Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), chunk('IHDR', head), chunk('PLTE', Buffer.from(palette.flatMap(parts))),
        chunk('IDAT', zlib.deflateSync(lines, { level: 9, memLevel: 9 })), chunk('IEND', Buffer.alloc(0))]);
}

function chunk(kind, content) {
    const body = Buffer.concat([Buffer.from(kind, 'latin1'), content]);
    const whole = Buffer.alloc(body.length + 8);
    whole.writeUInt32BE(content.length, 0);
    body.copy(whole, 4);
    whole.writeUInt32BE(crc(body), body.length + 4);
    return whole;
}
function crc(bytes) {
    let sum = ~0;
    for (const byte of bytes) {
        sum ^= byte;
        for (let bit = 0; bit < 8; bit++) {
            sum = sum >>> 1 ^ (sum & 1 ? 0xedb88320 : 0);
        }
    }
    return ~sum >>> 0;
}

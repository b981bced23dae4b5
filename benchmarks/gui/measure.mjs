// SPDX-License-Identifier: MIT
// measure.mjs: drives the page of `memtrace serve` in real Chromium and prints what it took, as JSON. Run by figures.py:
//
//   node measure.mjs WHAT FILE|PID [MORE]     WHAT: load, opening, brush, passes, flame, upward, table, memory, live
//
// MEMTRACE is the command. Times are taken inside the page: from the event that the user made to the frame in which all
// that it asked for is drawn. Passes are asked for without a page.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { chromium } from 'playwright-core';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memtrace-gui-'));
const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync',
    '--no-first-run', '--disable-default-apps', '--enable-precise-memory-info', '--js-flags=--expose-gc'];

/* ---- The server and the page ---- */

async function serve(file, settings = {}) {
    const child = spawn(process.env.MEMTRACE, ['serve', '--no-open', file],
        { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...settings } });
    let said = '';
    const address = await new Promise((resolve, reject) => {
        const look = (data) => {
            said += data;
            const found = /http:\/\/127\.0\.0\.1:\d+\/#\S*/.exec(said);
            if (found !== null) {
                resolve(new URL(found[0]));
            }
        };
        child.stdout.on('data', look);
        child.stderr.on('data', look);
        child.on('exit', (code) => reject(new Error(`memtrace serve ended with ${code}: ${said}`)));
    });
    child.removeAllListeners('exit');
    const stop = () => new Promise((resolve) => {
        child.on('exit', resolve);
        child.kill('SIGINT');
    });
    return { child, stop, origin: address.origin, token: address.hash.replace(/^#(token=)?/, ''), at: (view) => `${address.origin}/${view}${address.hash}` };
}

let browser;
async function fresh() {
    browser ??= await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: FLAGS });
    const context = await browser.newContext({ viewport: { width: 1400, height: 900 } });
    const page = await context.newPage();
    page.setDefaultTimeout(120_000);
    await page.addInitScript(instrument);
    return page;
}

/* In the page. An action begins with an event that the user made; it is done with the last frame before the page was
 * settled (data-busy), which is told some quiet frames later. */
function instrument() {
    const watch = { began: 0, drawn: 0, frames: [], draws: [], blank: 0, longestBlank: 0 };
    window.watch = watch;
    const begin = (event) => {
        if (watch.waits === event.type) {
            watch.waits = undefined;
            watch.began = event.timeStamp;
        }
    };
    for (const type of ['pointermove', 'pointerup', 'keydown', 'click']) {
        window.addEventListener(type, begin, true);
    }
    // What changes on screen: canvases draw in callbacks of frames, all else is in the document.
    const changed = () => { watch.drawn = performance.now(); };
    document.addEventListener('DOMContentLoaded', () => {
        new MutationObserver((records) => {
            if (records.some(({ target, attributeName }) => target !== document.documentElement || attributeName !== 'data-busy')) {
                requestAnimationFrame(() => setTimeout(() => {
                    changed();
                    if (watch.progress === undefined && document.querySelector('.opening progress[max]') !== null) {
                        watch.progress = watch.drawn;
                    }
                }));
            }
        }).observe(document.documentElement, { subtree: true, childList: true, characterData: true, attributes: true });
    });
    const paint = CanvasRenderingContext2D.prototype.fillRect;
    CanvasRenderingContext2D.prototype.fillRect = function (...box) {
        if (watch.painted !== true) {
            watch.painted = true;
            requestAnimationFrame(() => setTimeout(() => {
                watch.painted = false;
                changed();
            }));
        }
        return paint.apply(this, box);
    };
    // How long callbacks of frames take together, and how far frames are from each other.
    const request = window.requestAnimationFrame.bind(window);
    let at = 0, spent = 0;
    window.requestAnimationFrame = (callback) => request((time) => {
        const before = performance.now();
        callback(time);
        const took = performance.now() - before;
        if (time !== at) {
            if (watch.counting) {
                watch.draws.push(spent);
            }
            at = time;
            spent = 0;
        }
        spent += took;
    });
    const beat = (time) => {
        if (watch.counting) {
            watch.frames.push(time);
        }
        const awaited = document.querySelector('.awaited') !== null;
        if (awaited && watch.blank === 0) {
            watch.blank = time;
        } else if (!awaited && watch.blank !== 0) {
            watch.longestBlank = Math.max(watch.longestBlank, time - watch.blank);
            watch.blank = 0;
        }
        request(beat);
    };
    request(beat);
}

const settled = (page) => page.waitForFunction(() => document.documentElement.dataset.busy === '0');

/** Milliseconds from the event that `act` makes to the last change on screen. */
async function timed(page, type, act) {
    await page.evaluate((waits) => Object.assign(window.watch, { waits, began: 0, drawn: 0 }), type);
    await act();
    await page.waitForFunction(() => window.watch.began > 0 && window.watch.drawn > window.watch.began);
    await settled(page);
    return page.evaluate(() => window.watch.drawn - window.watch.began);
}

const sorted = (values) => [...values].sort((a, b) => a - b);
const quantile = (values, share) => sorted(values)[Math.min(values.length - 1, Math.floor(values.length * share))];
const summary = (values) => ({ median: quantile(values, 0.5), p95: quantile(values, 0.95), most: Math.max(...values), count: values.length });

/** A request as the page makes it. */
const ask = (server, place, { signal, ...headers } = {}) => fetch(`${server.origin}/api/v1${place}`,
    { signal, headers: { Authorization: `Bearer ${server.token}`, ...headers } });

/* How many calls a tree has that the page is answered. */
async function countCalls(server, query) {
    const answer = await ask(server, `/r/1/tree?${query}&limit=4000000`, { Accept: 'application/vnd.memtrace.columns' });
    const bytes = Buffer.from(await answer.arrayBuffer());
    return JSON.parse(bytes.subarray(8, 8 + bytes.readUInt32LE(4)).toString()).data.nodes.parent.length;
}

/* ---- What is measured ---- */

/** A cold page of a server that has just begun: until the first tree is drawn. */
async function load(file) {
    const times = [];
    for (let round = 0; round < 5; round++) {
        const began = performance.now();
        const server = await serve(file);
        const started = performance.now() - began;
        const page = await fresh();
        await page.goto(server.at('flame'));
        await page.waitForSelector('canvas');
        await settled(page);
        times.push(started + await page.evaluate(() => window.watch.drawn));
        await page.context().close();
        await server.stop();
    }
    return { first: summary(times) };
}

/** A recording without slices and index, which has to be read whole: until a cold page says how far that is. */
async function opening(file) {
    const progress = [], all = [];
    for (let round = 0; round < 5; round++) {
        const server = await serve(file, { MEMTRACE_CACHE: '' });
        const page = await fresh();
        await page.goto(server.at('flame'));
        await page.waitForSelector('.flame canvas');
        await settled(page);
        const told = await page.evaluate(() => window.watch);
        progress.push(Math.min(told.progress ?? Infinity, told.drawn)); // what is there before needs no progress
        all.push(told.drawn);
        await page.context().close();
        await server.stop();
    }
    return { progress: summary(progress), all: summary(all) };
}

async function opened(server) {
    while (!(await ask(server, '/r/1')).ok) {
        await pause(50);
    }
}

/** What a server makes in the background after it has opened a file (finer slices, sums of groups) is not to be counted
 * with what somebody asked for: the thread that opens files ends when all that is made. */
async function prepared(server) {
    const tasks = `/proc/${server.child.pid}/task`;
    const names = () => fs.readdirSync(tasks).map((task) => {
        try {
            return fs.readFileSync(`${tasks}/${task}/comm`, 'utf8').trim();
        } catch {
            return ''; // it has ended meanwhile
        }
    });
    while (names().includes('opener')) {
        await pause(50);
    }
}

/** Passes over all events: until the first word of how far they are, what is spent on them after whoever asked is gone,
 * and how long the same takes a second time. */
async function passes(file) {
    const server = await serve(file);
    await opened(server);
    const found = { progress: [], cancel: [], second: [] };
    for (const [number, name] of ['sizes', 'blocks', 'lifetimes', 'heap'].entries()) {
        for (let round = 0; round < 3; round++) {
            // Another window each time: nothing is known of it yet.
            const place = `/r/1/${name}?from=${number + 1}.${round + 1}%25`;
            found.progress.push((await startAndCancel(server, place, `${name}${round}`)).first);
        }
    }
    await prepared(server);
    for (const [number, name] of ['sizes', 'blocks', 'lifetimes', 'heap'].entries()) {
        for (let round = 0; round < 3; round++) {
            const place = `/r/1/${name}?from=${number + 5}.${round + 1}%25`;
            found.cancel.push((await startAndCancel(server, place, `again${name}${round}`)).spent);
        }
        const place = `/r/1/${name}?from=0.${number + 1}%25`;
        await (await ask(server, place)).arrayBuffer();
        const began = performance.now();
        await (await ask(server, place)).arrayBuffer();
        found.second.push(performance.now() - began);
    }
    await server.stop();
    return { progress: summary(found.progress), cancel: summary(found.cancel), second: summary(found.second) };
}

/* Milliseconds until the first progress, and those of a processor (in steps of 10) that the server spent after it was
 * given up. */
async function startAndCancel(server, place, job) {
    const listening = new AbortController(), asking = new AbortController();
    const events = (await ask(server, `/r/1/events?job=${job}`, { signal: listening.signal })).body.getReader();
    const began = performance.now();
    const answer = ask(server, `${place}&job=${job}`, { signal: asking.signal }).catch(() => undefined);
    for (let told = ''; !/event: progress/.test(told);) {
        const { value, done } = await events.read();
        if (done) {
            throw new Error(`${place} ended without a word of progress: there are too few events`);
        }
        told += Buffer.from(value).toString();
    }
    const first = performance.now() - began;
    const before = ticks(server.child.pid);
    asking.abort();
    await answer;
    let spent = before;
    for (let quiet = 0; quiet < 5; quiet++) {
        await pause(50);
        const now = ticks(server.child.pid);
        quiet = now > spent ? 0 : quiet;
        spent = now;
    }
    listening.abort();
    return { first, spent: (spent - before) * TICK_MS };
}

/* A view's drags end then, so that a machine that is busy with something else ends, too. */
const LONGEST_MS = 100_000;

/** Windows dragged on the timeline: the answer while the pointer is down, and the exact one when it is let go. At once, or when
 * what the server makes of a recording that it has not seen before is there. */
async function brush(file, drags, isPrepared) {
    const server = await serve(file);
    if (isPrepared) {
        await opened(server);
        await prepared(server);
    }
    const page = await fresh();
    const found = { snapped: [], exact: [], views: {} };
    for (const view of ['summary', 'flame', 'tree', 'functions']) {
        await page.goto(server.at(view));
        await settled(page);
        const box = await page.locator('.brush').boundingBox();
        const mine = { snapped: [], exact: [] };
        const until = performance.now() + LONGEST_MS;
        for (let drag = 0; drag < drags / 4 && (drag < 5 || performance.now() < until); drag++) {
            // From anywhere, at least a twentieth of all time: less than some pixels would be a click.
            const from = Math.random(), to = (from + 0.05 + 0.9 * Math.random()) % 1;
            const at = (share) => [box.x + 2 + share * (box.width - 4), box.y + 30];
            await page.mouse.move(...at(from));
            await page.mouse.down();
            mine.snapped.push(await timed(page, 'pointermove', () => page.mouse.move(...at(to))));
            mine.exact.push(await timed(page, 'pointerup', () => page.mouse.up()));
            await page.mouse.dblclick(box.x + box.width / 2, box.y + 30);
            await settled(page);
        }
        found.snapped.push(...mine.snapped);
        found.exact.push(...mine.exact);
        found.views[view] = { snapped: summary(mine.snapped), exact: summary(mine.exact) };
    }
    await server.stop();
    return { snapped: summary(found.snapped), exact: summary(found.exact), views: found.views };
}

/** A flame graph of all calls: frames while it is moved by the wheel, and how long a zoom takes. */
async function flame(file, frames) {
    const server = await serve(file);
    const page = await fresh();
    // The page asks for what can be seen; here all of it is to be drawn.
    await page.route('**/tree?*', (route) => route.continue({ url: route.request().url().replace(/limit=\d+/, 'limit=4000000') }));
    await page.goto(server.at('flame?metric=allocations'));
    await page.waitForSelector('.flame canvas');
    await settled(page);
    const box = await page.locator('.flame').boundingBox();
    const middle = [box.x + box.width / 2, box.y + box.height / 2];
    await page.mouse.move(...middle);
    await page.evaluate(() => Object.assign(window.watch, { counting: true, frames: [], draws: [] }));
    while (await page.evaluate((wanted) => window.watch.frames.length < wanted, frames)) {
        await page.mouse.move(box.x + Math.random() * box.width, box.y + Math.random() * box.height);
        await page.mouse.wheel(0, Math.random() < 0.5 ? 60 : -60);
    }
    const told = await page.evaluate(() => {
        window.watch.counting = false;
        return { frames: window.watch.frames, draws: window.watch.draws };
    });
    const apart = told.frames.slice(1).map((time, index) => time - told.frames[index]);
    // A zoom is shown on its way for as long as it pleases the eye: what counts is how soon it could be there.
    await page.emulateMedia({ reducedMotion: 'reduce' });
    const zooms = [];
    for (let round = 0; round < 20; round++) {
        await page.mouse.click(box.x + box.width * (0.1 + 0.8 * Math.random()), box.y + 65);
        await settled(page);
        zooms.push(await timed(page, 'keydown', () => page.keyboard.press('Enter')));
        await page.keyboard.press('Escape');
        await settled(page);
    }
    const nodes = await countCalls(server, 'metric=allocations');
    await server.stop();
    return { nodes, draw: summary(told.draws), apart: summary(apart), zoom: summary(zooms) };
}

/** From main to the allocating functions turned around, each time with another answer. */
async function upward(file) {
    const server = await serve(file);
    const page = await fresh();
    const times = [];
    for (const metric of ['cumulative', 'allocations']) {
        await page.goto(server.at(`flame?metric=${metric}`));
        await page.waitForSelector('.flame canvas');
        await settled(page);
        times.push(await timed(page, 'click', () => page.getByText('Bottom-up', { exact: true }).click()));
    }
    const calls = await countCalls(server, 'metric=allocations&direction=up');
    await server.stop();
    return { calls, time: summary(times) };
}

/** All blocks that there ever were, scrolled by jumps and by the wheel: how long rows stay blank. */
async function table(file) {
    const server = await serve(file);
    const page = await fresh();
    await page.goto(server.at('blocks?all'));
    await page.waitForSelector('.table-row');
    await settled(page);
    const rows = await page.evaluate(() => Number(document.querySelector('[role=grid]').getAttribute('aria-rowcount')));
    await page.evaluate(() => Object.assign(window.watch, { counting: true, frames: [], longestBlank: 0 }));
    const box = await page.locator('.table').boundingBox();
    await page.mouse.move(box.x + 100, box.y + 200);
    for (let step = 0; step < 200; step++) {
        await page.mouse.wheel(0, 300);
        await page.waitForTimeout(16);
    }
    const wheel = await page.evaluate(() => window.watch.longestBlank);
    const jumps = [];
    for (let jump = 0; jump < 40; jump++) {
        await page.evaluate((share) => {
            window.watch.longestBlank = 0;
            const scrolled = document.querySelector('.table');
            scrolled.scrollTop = share * scrolled.scrollHeight;
        }, Math.random());
        await page.waitForTimeout(50);
        await page.waitForFunction(() => document.querySelector('.awaited') === null);
        await page.waitForTimeout(50);
        jumps.push(await page.evaluate(() => window.watch.longestBlank));
    }
    await server.stop();
    return { rows, wheel, jump: summary(jumps) };
}

const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

const rss = (pid) => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;

/** What page and server hold after so many changes of view. */
async function memory(file, changes) {
    const server = await serve(file);
    const page = await fresh();
    await page.goto(server.at('flame'));
    await page.waitForSelector('canvas');
    await settled(page);
    const held = rss(server.child.pid);
    const views = ['summary', 'flame', 'tree', 'functions', 'paths', 'source', 'sandwich', 'threads', 'mappings', 'flame'];
    const metrics = ['maximum', 'leaked', 'cumulative', 'allocations', 'temporary'];
    for (let change = 0; change < changes; change++) {
        const to = `/${views[change % views.length]}?metric=${metrics[Math.floor(change / views.length) % metrics.length]}`;
        await page.evaluate((address) => {
            history.pushState(null, '', address);
            dispatchEvent(new PopStateEvent('popstate'));
        }, to);
        await page.waitForTimeout(30);
        await settled(page);
    }
    const session = await page.context().newCDPSession(page);
    await session.send('HeapProfiler.collectGarbage');
    const bytes = await page.evaluate(() => performance.memory.usedJSHeapSize);
    const after = rss(server.child.pid);
    await server.stop();
    return { page: bytes / 2 ** 20, server: held, after };
}

/* Processor time of all threads, also of those that ended, in hundredths of a second. */
const TICK_MS = 10;
const ticks = (pid) => {
    const fields = fs.readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /, '').split(' ');
    return Number(fields[11]) + Number(fields[12]);
};

/** A running program, looked at: what the server needs of a core, and how many of its states it tells a second. */
async function live(pid, seconds) {
    const server = await serve(pid);
    const page = await fresh();
    await page.goto(server.at('flame'));
    await page.waitForSelector('.flame canvas');
    await settled(page);
    await page.waitForTimeout(2000);
    const generation = async () => (await (await ask(server, '/session')).json()).sources[0].generation;
    const first = await generation();
    const before = ticks(server.child.pid);
    const began = performance.now();
    await page.waitForTimeout(seconds * 1000);
    const used = (ticks(server.child.pid) - before) / 100;
    const took = (performance.now() - began) / 1000;
    const states = await generation() - first;
    await server.stop();
    return { core: used / took, states: states / took };
}

const [what, file, more, whether] = process.argv.slice(2);
try {
    const found = await ({
        load: () => load(file), opening: () => opening(file), passes: () => passes(file), brush: () => brush(file, Number(more ?? 200), whether === 'prepared'), flame: () => flame(file, Number(more ?? 240)),
        upward: () => upward(file), table: () => table(file), memory: () => memory(file, Number(more ?? 100)),
        live: () => live(file, Number(more ?? 20)),
    })[what]();
    console.log(JSON.stringify(found));
} finally {
    await browser?.close();
    fs.rmSync(folder, { recursive: true, force: true });
}
process.exit(0);

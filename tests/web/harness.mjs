// SPDX-License-Identifier: MIT
// harness.mjs: what the specs share: recordings of example programs, a server, a browser, and the
// command line as the judge of every number.
import { execFileSync, spawn } from 'node:child_process';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import { chromium } from 'playwright-core';

export const build = process.env.TEST_BUILD;
export const memtrace = path.join(build, 'bin', 'memtrace');

// One folder for all specs of a run, so that a recording is made once.
export const scratch = process.env.WEB_SCRATCH ?? fs.mkdtempSync(path.join(os.tmpdir(), 'memtrace-web-'));
fs.mkdirSync(scratch, { recursive: true });
if (process.env.WEB_SCRATCH === undefined) {
    process.on('exit', () => fs.rmSync(scratch, { recursive: true, force: true }));
}

export const environment = { ...process.env, NO_COLOR: '1', LC_ALL: 'C.UTF-8', HOME: scratch,
    XDG_CACHE_HOME: path.join(scratch, '.cache') };
delete environment.DISPLAY;
delete environment.SSH_CONNECTION;

/** What a command prints to stdout. */
export function run(command, args, options = {}) {
    return execFileSync(command, args, { encoding: 'utf8', cwd: scratch, env: environment,
        maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'pipe'], ...options });
}

/** `memtrace ARGUMENT...` */
export const cli = (...args) => run(memtrace, args);

/** `memtrace report --json` of a file, with filters. */
export const report = (file, ...filters) => JSON.parse(cli('report', '--json', ...filters, file));

/** The rows of a statement, as objects. */
export const query = (file, sql, ...filters) => JSON.parse(cli('query', '--format', 'json', ...filters, file, sql));

/** Path of a recording of a program, made when it is first asked for. */
export function recording(name, command, ...options) {
    return recordUntil(() => true, name, command, options);
}

function recordUntil(isEnough, name, command, options = []) {
    const file = path.join(scratch, name + '.mtr');
    if (!fs.existsSync(file)) {
        const made = file + '.' + process.pid + '.mtr';
        for (let tries = 0; tries === 0 || (!isEnough(made) && tries < 20); tries++) {
            fs.rmSync(made, { force: true });
            run(memtrace, ['record', '-o', made, ...options, '--', ...command]);
        }
        fs.renameSync(made, file);
    }
    return file;
}

/** The tutorial's program: a leak, a hot temporary, a fragmented heap. */
export const newsdesk = () => recordUntil(hasResident, 'newsdesk', [path.join(build, 'tests', 'web', 'newsdesk')]);

/** On a busy machine a short program may be over before anyone has looked at its resident set. */
const hasResident = (file) => report(file).timeline.some((point) => point.resident_bytes !== 0);

/** Numbers as people read them, from the rules of docs/report.md and not from the page's code. */
export const spell = {
    bytes(size) {
        const units = ['B', 'KiB', 'MiB', 'GiB'];
        let unit = 0;
        for (; size >= 1023.95 && unit < units.length - 1; unit++) {
            size /= 1024;
        }
        return `${unit === 0 ? size : size.toFixed(1)} ${units[unit]}`;
    },
    count: (number) => number.toLocaleString('en-US'),
    share(part, whole) {
        const percent = 100 * part / whole;
        return percent !== 0 && percent < 0.05 ? '<0.1%' : `${percent.toFixed(1)}%`;
    },
};

/** What call paths through a line cost, of the contexts of report(). */
export const lineCost = (told, file, line, field) => told.contexts
    .filter(({ frames }) => frames.some((frame) => frame.file?.endsWith(file) && frame.line === line))
    .reduce((sum, context) => sum + context[field], 0);

/** A program in whose recording each name is a script. */
export const scriptNames = () => recording('scriptnames', [path.join(build, 'tests', 'web', 'scriptnames')]);

export const grower = path.join(build, 'tests', 'web', 'grower');

/** tests/web/grower.c under a command: holds so many blocks of 64 KiB more for each line that it reads, and says so. */
export function grow(t, command, args, options = {}) {
    const child = spawn(command, args, { cwd: scratch, env: environment, stdio: ['pipe', 'pipe', 'pipe'], detached: true, ...options });
    const lines = readline.createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const ended = new Promise((resolve) => { child.on('exit', resolve); });
    child.stderr.resume();
    // It ends with its input; killed alone, memtrace would leave it, and its open pipe would keep this process. The
    // command may serve what a page still asks for.
    t.after(async () => {
        await Promise.all([...contexts.keys()].map(leave));
        child.stdin.end();
        try {
            process.kill(-child.pid, 'SIGKILL');
        } catch {
            // It has ended.
        }
    });
    const said = async () => (await lines.next()).value;
    return {
        child, ended,
        /** Its PID, which is the first thing that it says. */
        pid: async () => Number(/^pid (\d+)$/.exec(await said())[1]),
        async more(blocks) {
            child.stdin.write(`${blocks}\n`);
            assert.equal(await said(), `held ${blocks}`);
        },
    };
}

/** The programs of this test alone, not whatever else runs on this machine with MemTrace. */
export function ownPrograms(t) {
    const regions = fs.mkdtempSync(path.join(scratch, 'regions-'));
    environment.MEMTRACE_REGION_DIR = regions;
    t.after(() => {
        delete environment.MEMTRACE_REGION_DIR;
        fs.rmSync(regions, { recursive: true, force: true });
    });
}

/** The views of the page, by their id (web/ui/src/views/index.ts): those that a recording has. */
export const VIEW_IDS = ['summary', 'flame', 'tree', 'sandwich', 'functions', 'paths', 'source', 'blocks', 'lifetimes', 'sizes', 'heap',
    'mappings', 'threads', 'compare', 'sql', 'files'];

/** A server of these files; stopped at the end of the test. */
export const serve = (t, ...args) => serveIn(t, scratch, ...args);
export const serveIn = (t, cwd, ...args) => serving(t, spawn(memtrace, ['serve', '--no-open', ...args],
    { cwd, env: environment, stdio: ['ignore', 'pipe', 'pipe'] }));

/** The server that a command starts; stopped at the end of the test. */
export async function serving(t, child, interrupt = () => child.kill('SIGINT')) {
    let said = '';
    const address = await new Promise((resolve, reject) => {
        const look = (data) => {
            said += data;
            const found = /http:\/\/127\.0\.0\.1:\d+\/\S*(?=\s)/.exec(said);
            if (found !== null) {
                resolve(new URL(found[0]));
            }
        };
        child.stdout.on('data', look);
        child.stderr.on('data', look);
        child.on('exit', (code) => reject(new Error(`${child.spawnfile} ended with ${code}: ${said}`)));
    });
    const token = address.hash.replace(/^#(token=)?/, '');
    const server = {
        child, token, address, origin: address.origin, said: () => said,
        /** A request as the page makes it. */
        fetch: (place, options = {}) => fetch(address.origin + '/api/v1' + place, {
            ...options, headers: { Authorization: 'Bearer ' + token, ...options.headers } }),
        /** The whole answer of an endpoint; fails where it is no success. */
        async get(place) {
            const answer = await server.fetch(place);
            const text = await answer.text();
            assert.equal(answer.status, 200, `${place}: ${text}`);
            return JSON.parse(text);
        },
        /** Sources are opened in the background: the first one, when it is there. */
        async opened() {
            for (;;) {
                const { sources } = await server.get('/session');
                assert.notEqual(sources[0].state, 'failed', sources[0].error);
                if (sources[0].state === 'open') {
                    return sources[0];
                }
                await new Promise((resolve) => { setTimeout(resolve, 50); });
            }
        },
        stop() {
            return new Promise((resolve) => {
                if (child.exitCode !== null || child.signalCode !== null) {
                    resolve(child.exitCode);
                    return;
                }
                child.removeAllListeners('exit');
                child.on('exit', resolve);
                interrupt();
            });
        },
    };
    t.after(async () => {
        await leave(server.origin);
        await server.stop();
    });
    await server.opened();
    return server;
}

export const flags = ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update',
    '--disable-sync', '--no-first-run', '--disable-quic', '--disable-default-apps', '--font-render-hinting=none',
    '--force-color-profile=srgb'];
let browser;

/** Chromium, the same for all tests of a file. */
export async function chrome() {
    browser ??= await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: flags });
    return browser;
}
export async function closeChrome() {
    await browser?.close();
    browser = undefined;
}

/**
 * A page of the server at a view ("flame?metric=leaked"), when it has its answers. What the console, the
 * policy or an exception complains of, and each request to anybody else, fails the test at its end.
 */
export const open = (t, server, view = '', options = {}) =>
    openAt(t, `${server.origin}/${view}#${server.address.hash.slice(1)}`, options);

/* What is shown of each server. A page that still asks while its server ends would complain, rightly. */
const contexts = new Map();
export async function leave(origin) {
    const shown = contexts.get(origin) ?? [];
    contexts.delete(origin); // the next server may have the same address
    await Promise.all(shown.map((context) => context.close()));
}

/** The same of any address: a saved page's, say. `now`: the time that the page's clock shows, and stands still. */
export async function openAt(t, address, { now, ...options } = {}) {
    const { origin } = new URL(address);
    const context = await (await chrome()).newContext({ viewport: { width: 1400, height: 900 },
        permissions: ['clipboard-read', 'clipboard-write'], ...options });
    contexts.set(origin, [...contexts.get(origin) ?? [], context]);
    context.setDefaultTimeout(120000); // a busy machine is no fault
    const page = await context.newPage();
    page.complaints = [];
    page.on('console', (message) => {
        if (['error', 'warning'].includes(message.type())) {
            page.complaints.push(`${message.text()} ${message.location().url ?? ''}`.trim());
        }
    });
    page.on('pageerror', (error) => page.complaints.push(String(error)));
    page.on('dialog', (dialog) => { page.complaints.push('dialog: ' + dialog.message()); dialog.dismiss(); });
    page.on('request', (request) => {
        if (!/^(data|blob):/.test(request.url()) && new URL(request.url()).origin !== origin) {
            page.complaints.push('request to ' + request.url());
        }
    });
    t.after(async () => {
        await context.close();
        assert.deepEqual(page.complaints, []);
    });
    if (now !== undefined) {
        await page.clock.setFixedTime(now);
    }
    await page.goto(address);
    await settled(page);
    return page;
}

/** Until the page waits for no answer and draws nothing more. */
export async function settled(page) {
    // What a click or key has just changed is known to the page in its next frame.
    await page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); }));
    await page.waitForFunction(() => document.documentElement.dataset.busy === '0', undefined, { timeout: 60000 });
}

/** A person at the page who counts what it takes. */
export class Reader {
    steps = 0;
    constructor(page) {
        this.page = page;
    }
    async click(locator, options) {
        this.steps++;
        await locator.click(options);
        await settled(this.page);
    }
    async press(...keys) {
        for (const key of keys) {
            this.steps++;
            await this.page.keyboard.press(key);
            await settled(this.page);
        }
    }
    /** Clicks the first call of a level of the flame graph, of level 1 for what all begins with. */
    async clickCall(level) {
        const graph = this.page.getByRole('tree', { name: 'Flame graph' });
        await this.click(graph, { position: { x: 12, y: level * 20 - 10 } });
    }
    /** The address says where one is. */
    view() {
        return new URL(this.page.url()).pathname.slice(1) || 'summary';
    }
}

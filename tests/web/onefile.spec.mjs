// SPDX-License-Identifier: MIT
// onefile.spec.mjs: what a saved page makes of the sums that it has inside is what the server answers: trees from both
// sides, callers and callees, functions, call paths, lines, searches, of each metric, with and without filters.
import { execFileSync } from 'node:child_process';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { build, cli, newsdesk, recording, scratch, serve } from './harness.mjs';

const METRICS = ['maximum', 'leaked', 'cumulative', 'allocations', 'temporary'];
const ui = process.env.WEB_UI;

/** The page's own code that answers from its data, as a module. */
async function embedded() {
    const module = path.join(scratch, `embedded.${process.pid}.mjs`);
    execFileSync(path.join(ui, 'node_modules', '.bin', 'esbuild'),
        ['src/saved/answers.ts', '--define:SAVED=true', '--bundle', '--format=esm', '--platform=node', `--outfile=${module}`, '--log-level=error'], { cwd: ui });
    const loaded = await import(module);
    fs.rmSync(module);
    return loaded;
}

/** Answers of the page that `memtrace export` makes of a file. */
async function saved(file, ...options) {
    const page = path.join(scratch, `saved.${process.pid}.html`);
    cli('export', '--output', page, ...options, file);
    const text = fs.readFileSync(page, 'utf8');
    fs.rmSync(page);
    const { embeddedTransport, unpack } = await embedded();
    const transport = embeddedTransport(await unpack(/id="data">([^<]*)</.exec(text)[1]));
    return { get: (place) => transport.get(place, new AbortController().signal), bytes: text.length };
}

/* A tree as {path of functions: costs}: the order of siblings that are alike does not matter. */
function flat(tree, byLine = false) {
    const names = ['/'];
    const found = {};
    tree.nodes.parent.forEach((parent, node) => {
        const frame = tree.frames[tree.nodes.frame[node]];
        if (node > 0) {
            names[node] = `${names[parent]}/${frame.function}|${frame.module}${byLine ? `:${frame.file}:${frame.line}` : ''}`;
        }
        const { main, side, self } = tree.nodes;
        (found[names[node]] ??= []).push([main[node], side[node], self[node]].join());
    });
    // Instances of a template have one short name.
    Object.values(found).forEach((alike) => alike.sort());
    return found;
}

/* Rows with their frames in place of numbers, sorted. */
function rows({ columns, rows: cells, frames, paths }) {
    const told = cells.map((row) => Object.fromEntries(row.map((cell, place) => {
        const { name, kind } = columns[place];
        if (kind === 'frame') {
            return [name, `${frames[cell].function}|${frames[cell].module}|${frames[cell].kind}`];
        }
        if (kind === 'percent') {
            return [name, '%']; // the server's have six digits: looked at by compareShares()
        }
        return [name, kind === 'path' ? paths[cell].map((frame) => frames[frame]) : cell];
    })));
    return told.map((row) => JSON.stringify(row)).sort();
}

async function compareTrees(page, server, filters) {
    for (const metric of METRICS) {
        for (const direction of ['down', 'up']) {
            const place = `/r/1/tree?metric=${metric}&direction=${direction}${filters}`;
            const [mine, its] = [await page.get(place), await server.get(place)];
            assert.deepEqual(flat(mine.data), flat(its.data), place);
            assert.deepEqual([mine.data.unit, mine.data.side_unit, mine.data.metric], [its.data.unit, its.data.side_unit, metric]);
            if (filters === '') {
                assert.deepEqual([mine.command, mine.exact, mine.data.total], [its.command, its.exact, its.data.total], place);
            }
        }
    }
}

async function compareTables(page, server, filters) {
    for (const metric of METRICS) {
        for (const endpoint of ['functions', 'paths']) {
            const place = `/r/1/${endpoint}?metric=${metric}&limit=100000${filters}`;
            const [mine, its] = [await page.get(place), await server.get(place)];
            assert.deepEqual(mine.data.columns, its.data.columns, place);
            assert.equal(mine.data.total, its.data.total, place);
            assert.deepEqual(rows(mine.data), rows(its.data), place);
        }
    }
}

async function compareShares(page, server) {
    const place = '/r/1/functions?metric=cumulative&limit=100000&sort=function';
    const shares = ({ data }) => data.rows.map((row) => row[data.columns.findIndex(({ kind }) => kind === 'percent')]).sort((a, b) => a - b);
    const [mine, its] = [shares(await page.get(place)), shares(await server.get(place))];
    mine.forEach((share, index) => assert.ok(Math.abs(share - its[index]) <= 1e-5 * share, `${share} ${its[index]}`));
}

/* Sorted the same way, page by page, where no two rows are alike. */
async function compareOrder(page, server) {
    const place = '/r/1/paths?metric=cumulative&sort=hash&order=asc&limit=7&cursor=3';
    assert.deepEqual(rows((await page.get(place)).data), rows((await server.get(place)).data));
}

async function compareFunctions(page, server, names) {
    for (const metric of METRICS) {
        for (const name of names) {
            const place = `/r/1/callers?metric=${metric}&focus=${encodeURIComponent(name)}`;
            const [mine, its] = [(await page.get(place)).data, (await server.get(place)).data];
            for (const side of ['callers', 'callees']) {
                assert.deepEqual(flat(mine[side]), flat(its[side]), `${side}: ${place}`);
            }
            assert.deepEqual([mine.main, mine.side, mine.self], [its.main, its.side, its.self], place);
        }
        const place = `/r/1/search?metric=${metric}&regex=${encodeURIComponent(names[0].slice(0, 5))}`;
        const [mine, its] = [(await page.get(place)).data, (await server.get(place)).data];
        assert.deepEqual([mine.functions.sort(), mine.main, mine.total], [its.functions.sort(), its.main, its.total], place);
    }
}

async function compareFiles(page, server) {
    const files = await server.get('/r/1/files?limit=20000');
    assert.deepEqual(rows((await page.get('/r/1/files?limit=20000')).data), rows(files.data));
    for (const [number] of files.data.rows.slice(0, 30)) {
        const place = `/r/1/files/${number}`;
        assert.deepEqual((await page.get(place)).data, (await server.get(place)).data, place);
        assert.equal((await page.get(place + '/text')).data.text, null, 'no source text goes into the file');
    }
}

async function compare(t, file, names) {
    const server = await serve(t, file);
    const page = await saved(file);
    await compareTrees(page, server, '');
    await compareTables(page, server, '');
    await compareShares(page, server);
    await compareOrder(page, server);
    await compareFunctions(page, server, names);
    await compareFiles(page, server);
    for (const place of ['', '/threads', '/marks', '/foreign', '/modules', '/findings?limit=12',
        '/timeline?points=700&series=live,resident,swap,virtual,rate,frees']) {
        const [mine, its] = [await page.get('/r/1' + place), await server.get('/r/1' + place)];
        assert.deepEqual(its.data.has === undefined ? mine.data : { ...mine.data, has: its.data.has }, its.data, place);
    }
    return { server, page };
}

test('the tutorial\'s program', async (t) => {
    const { server, page } = await compare(t, newsdesk(), ['main', 'operator new']);
    // Filters by what stands on a path: all sums but the maximum, which a part has at another moment.
    for (const filters of ['&function=main', '&not-function=std', '&file=newsdesk', '&module=newsdesk&not-file=/usr']) {
        for (const metric of METRICS.slice(1)) {
            const place = `/r/1/tree?metric=${metric}${filters}`;
            assert.deepEqual(flat((await page.get(place)).data), flat((await server.get(place)).data), place);
        }
        assert.equal((await page.get('/r/1/tree?metric=maximum' + filters)).exact, 'bound', 'it says so');
        const [mine, its] = [await page.get('/r/1?' + filters.slice(1)), await server.get('/r/1?' + filters.slice(1))];
        for (const name of ['live_bytes', 'live_blocks', 'total_bytes', 'allocations', 'frees', 'temporary']) {
            assert.equal(mine.data.totals[name], its.data.totals[name], `${filters}: ${name}`);
        }
        assert.ok(mine.data.totals.peak_bytes <= its.data.totals.peak_bytes, filters);
    }
});

test('what needs more than sums says which command has it', async (t) => {
    const file = newsdesk();
    const page = await saved(file);
    for (const place of ['/r/1/blocks', '/r/1/tree?from=1s', '/r/1/tree?size=1K..', '/r/1/tree?metric=shutdown', '/r/1/heap',
        '/r/1/tree?base=1', '/r/1/lifetimes?over=time', '/r/1/nonsense', '/r/1/timeline?function=main']) {
        await assert.rejects(() => page.get(place), new RegExp(`memtrace serve .*${path.basename(file)}`), place);
    }
    await assert.rejects(() => page.get('/r/1/tree?function=('), /regular expression/);
    await assert.rejects(() => page.get('/r/1/paths/0123456789abcdef'), /no call path/);
});

test('how names are shown, and which part, is the command\'s to say', async (t) => {
    const file = newsdesk();
    const server = await serve(t, file);
    const page = await saved(file, '--by', 'line', '--all-frames', '--full-names', '--cost', 'allocations', '--function', 'main');
    const names = 'by=line&all-frames&full-names&function=main';
    for (const metric of METRICS.filter((one) => one !== 'maximum')) {
        const [mine, its] = [await page.get(`/r/1/tree?metric=${metric}`), await server.get(`/r/1/tree?metric=${metric}&${names}`)];
        assert.deepEqual(flat(mine.data, true), flat(its.data, true), metric);
    }
    const session = await page.get('/session');
    assert.deepEqual([session.view, session.selected], ['summary?metric=allocations', '--function main']);
    const [mine, its] = [await page.get('/r/1'), await server.get('/r/1?function=main')];
    assert.deepEqual(mine.data.totals, its.data.totals);
});

test('15,000 call paths fit into a megabyte', async (t) => {
    const file = recording('paths14', [path.join(build, 'tests', 'web', 'paths'), '14']);
    const server = await serve(t, file);
    const page = await saved(file);
    const count = (await server.get('/r/1')).data.totals.contexts;
    assert.ok(count > 15_000, `${count} call paths`);
    assert.ok(page.bytes < 1_000_000, `${page.bytes} bytes`);
    await compareTrees(page, server, '');
    await compareTables(page, server, '');
});

test('sums of a file that leaves paths out are whole', async (t) => {
    const file = recording('paths17', [path.join(build, 'tests', 'web', 'paths'), '17']);
    const server = await serve(t, file);
    const page = await saved(file);
    const [whole, its] = [await page.get('/r/1'), await server.get('/r/1')];
    assert.deepEqual(whole.data.totals, its.data.totals);
    assert.match(whole.notes.join(), /smallest call paths are added up/);
    for (const metric of METRICS) {
        const [tree, other] = [await page.get('/r/1/tree?metric=' + metric), await server.get(`/r/1/tree?metric=${metric}&limit=1000`)];
        assert.deepEqual([tree.data.nodes.main[0], tree.data.nodes.side[0]], [other.data.nodes.main[0], other.data.nodes.side[0]], metric);
        const [mine, shown] = [flat(tree.data), flat(other.data)];
        for (const [name, costs] of Object.entries(shown)) {
            assert.deepEqual(mine[name]?.map((one) => one.split(',')[0]), costs.map((one) => one.split(',')[0]), name);
        }
    }
    assert.ok(page.bytes < 5_000_000, `${page.bytes} bytes`);
});

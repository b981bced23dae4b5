// SPDX-License-Identifier: MIT
// processes.spec.mjs: a run of several processes, as a folder and while it grows: who started whom, one process alone and
// the sum of all, each number that of the command line; what appears later comes without a reload, by its name.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { build, closeChrome, grow, grower, memtrace, open, ownPrograms, report, run, scratch, serve, serving,
    settled, spell } from './harness.mjs';

const tools = path.join(build, 'tests', 'web');
const GROWS = `${grower} <<'.'\n48\n.\n`;

after(closeChrome);

const cellsOf = async (row) => (await row.getByRole('gridcell').allInnerTexts()).map((text) => text.trim());
const figures = (told) => [spell.bytes(told.peak_bytes), spell.bytes(told.live_bytes - told.suppressed_bytes), spell.count(told.allocations)];
const nameOf = (file) => path.basename(file);

async function shows(page, told) {
    await settled(page);
    const text = await page.locator('main').innerText();
    for (const figure of figures(told)) {
        assert.ok(text.includes(figure), `the page does not say ${figure}: ${text}`);
    }
}

test('a run of several processes', async (t) => {
    const folder = path.join(scratch, `several-${process.pid}.mtp`);
    run(memtrace, ['run', '--no-summary', '--output', folder, '--', 'sh', '-c',
        `${path.join(tools, 'newsdesk')} >/dev/null & ${path.join(tools, 'paths')} 4 >/dev/null; wait; exec ${GROWS}`]);
    const told = report(folder).run;
    const server = await serve(t, folder);
    const page = await open(t, server, 'processes');
    const grid = page.getByRole('grid', { name: 'Processes' });

    await t.test('lists them with their numbers', async () => {
        const count = new Set(told.processes.map((one) => one.pid)).size;
        await page.getByText(`${count} processes`).waitFor();
        const rows = await Promise.all((await grid.getByRole('row').all()).map(cellsOf));
        const shown = rows.filter((cells) => cells.length !== 0);
        assert.equal(shown.length, told.processes.length);
        for (const one of told.processes) {
            const found = shown.filter((cells) => cells[1] === String(one.pid) &&
                new RegExp(`^([↳└] ?)?${nameOf(one.program)}\\b`).test(cells[0]));
            assert.equal(found.length, 1, `${one.pid} ${one.program}: ${shown.join('\n')}`);
            assert.equal(found[0][3], spell.bytes(one.peak_bytes), found[0].join());
            assert.equal(found[0][4], spell.bytes(one.live_bytes), found[0].join());
        }
        // What a process became by exec stands below what it was, with the same number.
        const images = told.processes.filter((one) => one.image === 2 && nameOf(one.program) === 'grower');
        assert.equal(images.length, 1);
        assert.match(shown.find((cells) => cells[0].startsWith('↳ grower'))[0], /by exec/);
    });

    await t.test('shows one of them alone', async () => {
        const one = told.processes.find((each) => nameOf(each.program) === 'newsdesk');
        await grid.getByRole('row').filter({ has: page.locator('b', { hasText: /^newsdesk$/ }) }).dblclick();
        await page.waitForURL((url) => url.searchParams.get('process') === String(one.pid));
        await shows(page, report(folder, '--process', String(one.pid)));
        await page.getByRole('combobox', { name: 'process' }).selectOption({ label: `${told.processes.find(
            (each) => nameOf(each.program) === 'grower').pid} grower` });
        await shows(page, report(folder, '--process', 'grower'));
    });

    await t.test('shows the sum of all', async () => {
        await page.getByRole('combobox', { name: 'process' }).selectOption('all together');
        await page.waitForURL((url) => url.searchParams.has('all-processes'));
        await shows(page, report(folder, '--all-processes'));
        const { command } = await server.get('/r/1?all-processes');
        assert.equal(command, `memtrace report --all-processes ${folder}`);
    });
});

test('a run that grows', async (t) => {
    ownPrograms(t);
    const folder = path.join(scratch, `growing-${process.pid}.mtp`);
    const later = path.join(fs.mkdtempSync(path.join(scratch, 'tools-')), 'latecomer');
    fs.copyFileSync(grower, later);
    // The shell says its own number, starts a program when it is told to, and becomes another one at last.
    const shell = grow(t, memtrace, ['run', '--serve', '--output', folder, '--', 'sh', '-c',
        `echo pid $$; read line; sleep 6 | ${later} >/dev/null & read line; exec ${grower}`]);
    const server = await serving(t, shell.child);
    const pid = await shell.pid();
    const page = await open(t, server, 'live');
    const programs = page.getByRole('navigation', { name: 'Programs that run with MemTrace' });

    await t.test('names those that come later', async () => {
        assert.match(await page.locator('header').innerText(), /sh/);
        shell.child.stdin.write('start\n');
        await programs.getByRole('button', { name: /^latecomer \(\d+\), running: open$/ }).waitFor();
        await programs.getByRole('button', { name: /^latecomer/ }).waitFor({ state: 'detached' }); // it has ended
    });

    await t.test('shows what a process becomes by exec', async () => {
        shell.child.stdin.write('become another\n');
        assert.equal(await shell.pid(), pid);
        await shell.more(24);
        await page.locator('header').getByText('became another program').waitFor();
        await page.getByText('The process became another program: these are its last numbers.').waitFor();
        await page.locator('header').getByRole('link', { name: `Now grower (${pid})` }).click();
        await page.locator('.live-tiles').or(page.getByText('hold_blocks')).first().waitFor();
        await page.waitForFunction((least) => document.querySelector('main').textContent.includes(least), spell.bytes(24 << 16));
    });

    await t.test('is there as a whole at its end', async () => {
        shell.child.stdin.end();
        await page.locator('header').getByRole('link', { name: `The whole run: ${nameOf(folder)}` }).click();
        await settled(page);
        await shows(page, report(folder));
        assert.ok(report(folder).run.processes.some((one) => nameOf(one.program) === 'latecomer'));
    });
});

test('what all hold that run', async (t) => {
    ownPrograms(t);
    for (const how of ['run', 'record']) {
        await t.test(how, (t) => holdTogether(t, how));
    }
});

/** A shell and two programs that it starts; each grows when it is told to, by a pipe of its own. */
async function holdTogether(t, how) {
    const [first, second] = ['first', 'second'].map((name) => path.join(scratch, `${name}-${how}-${process.pid}.pipe`));
    run('mkfifo', [first, second]);
    const shell = grow(t, memtrace, [how, '--serve', ...(how === 'record' ? ['--children', 'all'] : []), '--output',
        path.join(scratch, `together-${how}-${process.pid}`), '--', 'sh', '-c',
        `echo pid $$; ${grower} <>${first} >/dev/null & a=$!; ${grower} <>${second} >/dev/null & read line; kill $a $!; wait`]);
    const server = await serving(t, shell.child);
    const pid = await shell.pid();
    const page = await open(t, server, 'live');
    const together = page.getByRole('region', { name: 'All processes that run now' });
    const held = async () => Number(/^([\d,]+) bytes$/.exec(await together.locator('h2 b').getAttribute('title'))[1].replaceAll(',', ''));
    const holdAtLeast = async (bytes) => {
        for (let now = 0; now < bytes;) {
            await new Promise((resolve) => { setTimeout(resolve, 100); });
            now = await held();
        }
    };
    await together.getByText('3 processes run and hold').waitFor();

    // It moves on with each of them, and is more than the shell's own.
    fs.writeFileSync(first, '32\n');
    await holdAtLeast(32 << 16);
    fs.writeFileSync(second, '64\n');
    await holdAtLeast(96 << 16);
    assert.ok(await held() < 97 << 16, `${await held()} bytes: nothing counts twice`);

    // Each one's own number stands beside the sum, and they add up to it.
    const told = (await server.get('/r/1/running')).data;
    const bytes = told.rows.map((row) => row[told.columns.findIndex((column) => column.name === 'live_bytes')]);
    const sum = (await server.get('/r/1?all-processes')).data;
    assert.equal(bytes.length, 3);
    assert.equal(bytes.reduce((all, one) => all + one, 0), sum.totals.live_bytes);
    const rows = await together.getByRole('grid', { name: 'Processes that run' }).getByRole('row').allInnerTexts();
    assert.ok(rows.some((row) => /grower \(\d+\)/.test(row) && row.includes('4.0 MiB')), rows.join('\n'));
    assert.ok(rows.some((row) => new RegExp(`\\(${pid}\\)`).test(row)), rows.join('\n'));
    await together.getByRole('grid', { name: 'Functions that hold most of all' }).getByText('hold_blocks').waitFor();

    // The command line says the same.
    assert.equal(report(String(pid), '--all-processes').live_bytes, sum.totals.live_bytes);

    // All views are about them together.
    await together.getByRole('link', { name: 'All views of them together' }).click();
    await page.waitForURL((url) => url.searchParams.has('all-processes'));
    const tiles = page.locator('.live-tiles .tile-value');
    await tiles.getByText(spell.bytes(sum.totals.live_bytes), { exact: true }).first().waitFor();
    assert.equal(await tiles.nth(1).innerText(), '0 B', 'the mark is of them all, too');
    shell.child.stdin.write('end\n');
    await together.waitFor({ state: 'detached' });
}

// SPDX-License-Identifier: MIT
// states.spec.mjs: what a page says that has little to show: of files that are damaged, cut, foreign or empty, of a program
// that leaked or allocated nothing, of code without line numbers, of filters that nothing fits, and of a server that ended.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { closeChrome, memtrace, open, recording, report, run, scratch, serve, settled, spell } from './harness.mjs';

const data = path.join(process.env.WEB_TESTS, 'data');
const made = (name) => path.join(scratch, `${name}.${process.pid}`);
after(closeChrome);

/** A program of these lines of main(), without line numbers. */
function program(name, lines) {
    const file = made(name);
    fs.writeFileSync(`${file}.c`, `#include <stdlib.h>\nint main(void) { ${lines} return 0; }\n`);
    run('cc', ['-O0', '-s', '-o', file, `${file}.c`]);
    return recording(`${name}-${process.pid}`, [file]);
}

const text = (page) => page.locator('main').innerText();
async function says(t, server, address, ...wanted) {
    const page = await open(t, server, address);
    const shown = await text(page);
    for (const one of wanted) {
        assert.ok(shown.includes(one), `${address} does not say ${one}: ${shown}`);
    }
    return page;
}

test('files that are not whole', async (t) => {
    const whole = fs.readFileSync(path.join(data, 'shop.mtr'));
    const [cut, broken, foreign, empty] = ['cut.mtr', 'broken.mtr', 'foreign.mtr', 'empty.mtr'].map(made);
    fs.writeFileSync(cut, whole.subarray(0, Math.floor(whole.length * 0.3)));
    const bytes = Buffer.from(whole);
    bytes.fill('garbage', 8192, 8400);
    fs.writeFileSync(broken, bytes);
    fs.writeFileSync(foreign, Buffer.alloc(3000, 'no recording '));
    fs.writeFileSync(empty, '');
    const server = await serve(t, path.join(data, 'shop.mtr'), cut, broken, foreign, empty);
    t.after(() => [cut, broken, foreign, empty].forEach((file) => fs.rmSync(file, { force: true })));
    while ((await server.get('/session')).sources.some((one) => one.state === 'opening')) {
        await new Promise((resolve) => { setTimeout(resolve, 50); });
    }
    // What is damaged is said where one looks first, and all that can be read is shown.
    const { data: { warnings, totals } } = await server.get('/r/3');
    assert.ok(warnings.length > 0 && totals.allocations > 0);
    const page = await says(t, server, 'summary?r=3', warnings[0], spell.count(totals.allocations));
    const box = await page.getByRole('region', { name: 'Warnings' }).boundingBox();
    assert.ok(box.y + box.height < 450, JSON.stringify(box));
    await says(t, server, 'summary?r=2', spell.count(report(cut).allocations));
    await says(t, server, 'summary?r=4', 'is not a MemTrace profile');
    await says(t, server, 'summary?r=5', 'is empty');
});

test('nothing to show', async (t) => {
    const nothing = program('nothing', '');
    const clean = program('clean', 'for (int i = 0; i < 1000; i++) { free(malloc(100)); }');
    const kept = program('kept', 'static void *volatile all[10]; for (int i = 0; i < 10; i++) { all[i] = malloc(100); }');
    const killed = made('killed.mtr');
    run('/bin/sh', ['-c', `${memtrace} record --no-summary -o ${killed} -- sh -c 'kill -9 $$'; true`]);
    const server = await serve(t, nothing, clean, kept, killed);
    await says(t, server, 'summary?r=4', 'killed, or ended abruptly');
    await says(t, server, 'summary', 'allocated nothing.', 'Nothing was held.', 'Nothing looks wrong');
    for (const view of ['flame', 'tree']) {
        await says(t, server, `${view}?r=1`, 'Nothing was allocated.');
        await says(t, server, `${view}?r=2&metric=leaked`, 'Everything was freed.');
        await says(t, server, `${view}?r=2&function=no_such_function`, 'Nothing that matches all filters has a cost in this metric.');
        await says(t, server, `${view}?r=3&metric=temporary`, 'Nothing was freed before its thread\'s next allocation.');
    }
    await says(t, server, 'summary?r=2', 'and freed all of it.', '0 B');
    await says(t, server, 'blocks?r=2', 'Everything was freed.');
    await says(t, server, 'blocks?r=2&size=1G..', 'No block that fits all filters is left.');
    await says(t, server, 'source?r=2', 'No source file is known: the programs were built without -g.');
    await says(t, server, 'heap?r=1', 'Nothing was held at this moment.');
    await says(t, server, 'mappings?r=1', 'before the kernel was first asked about its mappings');
    await says(t, server, 'live?r=2', 'Needs a running program');
    const page = await says(t, server, 'sandwich?r=2&focus=no_such_function', 'No call path with such a cost goes through this function.');
    // What was not looked at is not told as 0.
    const resident = page.getByRole('region', { name: 'Timeline', exact: true }).locator('.strip-series').filter({ hasText: 'resident' });
    const told = (await server.get('/r/2/timeline?series=resident')).data;
    assert.equal((await resident.innerText()).includes('not recorded'), told.missing.includes('resident'));
});

test('a server that has ended', async (t) => {
    const server = await serve(t, path.join(data, 'day.mtr'));
    const page = await open(t, server);
    await server.stop();
    for (const view of ['Call tree', 'Functions']) {
        await page.getByRole('link', { name: view, exact: true }).click();
        await page.getByText('memtrace serve does not answer: it has ended, or the connection is gone').first().waitFor();
    }
    // What has been read stays.
    await page.getByRole('link', { name: 'Summary', exact: true }).click();
    await settled(page);
    assert.match(await text(page), /newsdesk held at most/);
    page.complaints.length = 0; // the browser tells of each refused connection
});

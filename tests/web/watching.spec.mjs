// SPDX-License-Identifier: MIT
// watching.spec.mjs: the view of a running program: what grew since a mark, to the byte; a page that is paused stays while
// the program is counted; after a SIGKILL the last numbers stay, and the page says what ended it. A page of a recording
// follows when the server has made finer slices of it.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { build, chrome, closeChrome, environment, grow, grower, memtrace, open, ownPrograms, recording, report, scratch, serve, settled, spell } from './harness.mjs';

const BLOCK = 64 << 10;

after(closeChrome);

/** A figure of the view, as it is written. */
const figure = (page, name) => page.locator('.live-tiles li').filter({ hasText: name }).locator('.tile-value');
const says = (page, name, text) => figure(page, name).filter({ hasText: new RegExp(`^${text.replace(/[+.]/g, '\\$&')}$`) }).waitFor();

for (const [how, ending] of [['run', 'mtp'], ['record', 'mtr']]) {
    test(`a program under memtrace ${how}`, async (t) => {
        ownPrograms(t);
        const file = path.join(scratch, `watched-${process.pid}.${ending}`);
        const program = grow(t, memtrace, [how, '--output', file, '--', grower]);
        const pid = await program.pid();
        await program.more(16);
        const server = await serve(t, String(pid));
        const page = await open(t, server, 'live');
        const held = async () => (await server.get('/r/1')).data.totals.live_bytes;
        // A recording gets its events some time after they came.
        for (const end = Date.now() + 20000; await held() < 16 * BLOCK && Date.now() < end;) {
            await new Promise((resolve) => { setTimeout(resolve, 50); });
        }

        await t.test('marks', async () => {
            await says(page, 'Holds now', spell.bytes(await held()));
            await settled(page); // paths and sums are two answers
            await page.keyboard.press('Space');
            await program.more(32);
            await says(page, 'Grew since the mark', `+${spell.bytes(32 * BLOCK)}`);
            const row = page.getByRole('grid', { name: 'Call paths that grew' }).getByRole('row').filter({ hasText: 'hold_blocks' });
            const cells = (await row.getByRole('gridcell').allInnerTexts()).map((text) => text.trim());
            assert.deepEqual(cells.slice(0, 2), [`+${spell.bytes(32 * BLOCK)}`, '32'], cells.join());
            await page.keyboard.press('Space');
            await says(page, 'Grew since the mark', '0 B');
            await page.getByText('No call path allocated or freed anything since the mark.').waitFor();
        });

        await t.test('is paused', async () => {
            const before = await figure(page, 'Holds now').innerText();
            await page.keyboard.press('Shift+P');
            await page.getByText('Paused: the program goes on, and is counted.').waitFor();
            await program.more(64);
            const end = Date.now() + 20000;
            while (await held() < (16 + 32 + 64) * BLOCK && Date.now() < end) {
                await new Promise((resolve) => { setTimeout(resolve, 100); });
            }
            await new Promise((resolve) => { setTimeout(resolve, 1500); });
            assert.equal(await figure(page, 'Holds now').innerText(), before);
            await page.keyboard.press('Shift+P');
            await says(page, 'Grew since the mark', `+${spell.bytes(64 * BLOCK)}`);
            await says(page, 'Holds now', spell.bytes(await held()));
        });

        await t.test('is killed', async () => {
            process.kill(pid, 'SIGKILL');
            await program.ended;
            await page.getByText('A signal ended the program: these are its last numbers.').waitFor();
            await page.locator('header').getByText('killed by a signal').waitFor();
            const told = report(file);
            assert.ok(told.live_bytes >= (16 + 32 + 64) * BLOCK);
            await says(page, 'Held at its end', spell.bytes(told.live_bytes));
            await says(page, 'Grew since the mark', `+${spell.bytes(64 * BLOCK)}`);
            assert.equal((await server.get('/r/1')).data.totals.live_bytes, told.live_bytes);
        });
    });
}

/** A server that has not made finer slices yet when its page is there: it waits for a second, a busy machine may not. */
async function coarsePage(t, file) {
    await chrome();
    for (let attempt = 0; ; attempt++) {
        environment.MEMTRACE_CACHE = fs.mkdtempSync(path.join(scratch, 'coarse-'));
        const server = await serve(t, file);
        const page = await open(t, server);
        const rate = page.locator('.strip-series').filter({ hasText: 'allocations' });
        const coarse = await rate.innerText();
        if ((await server.get('/session')).sources[0].refines === true) {
            return { server, page, rate, coarse };
        }
        assert.ok(attempt < 20, 'slices are always refined before the page is there');
    }
}

test('slices that become finer', async (t) => {
    t.after(() => { delete environment.MEMTRACE_CACHE; });
    const file = recording('crowded', [path.join(build, 'tests', 'web', 'crowded'), '450000', '11']);
    const { server, page, rate, coarse } = await coarsePage(t, file);
    while ((await server.get('/session')).sources[0].refines === true) {
        await new Promise((resolve) => { setTimeout(resolve, 100); });
    }
    await page.waitForFunction((before) => [...document.querySelectorAll('.strip-series')]
        .some((one) => /allocations/.test(one.textContent) && one.innerText !== before), coarse);
    const fine = await rate.innerText();
    await page.reload();
    await settled(page);
    assert.equal(await rate.innerText(), fine);
});

// SPDX-License-Identifier: MIT
// running.spec.mjs: the page of a running program: it moves on by itself, and after a SIGKILL the last numbers stay.
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, test } from 'node:test';
import { closeChrome, grow, grower, leave, memtrace, open, scratch, serve, serving, settled, spell } from './harness.mjs';

after(closeChrome);

/** Until the tile of what is held now says at least so much. */
async function heldAtLeast(page, bytes) {
    await page.waitForFunction((least) => {
        const tile = [...document.querySelectorAll('main a')].find((one) => /^(Held now|Leaked)/.test(one.textContent.trim()));
        return tile !== undefined && Number(/([\d,]+) bytes/.exec(tile.title)?.[1].replaceAll(',', '') ?? 0) >= least;
    }, bytes);
}
const heldNow = async (page) => Number(/([\d,]+) bytes/.exec(
    await page.getByRole('link', { name: /^(Held now|Leaked)/ }).getAttribute('title'))[1].replaceAll(',', ''));

test('a running program', async (t) => {
    const program = grow(t, memtrace, ['run', '--output', path.join(scratch, `grower-${process.pid}.mtp`), '--', grower]);
    const pid = await program.pid();
    await program.more(16);
    const server = await serve(t, String(pid));
    const page = await open(t, server);
    await heldAtLeast(page, 16 << 16);
    assert.match(await page.locator('header').innerText(), new RegExp(`running program, process ${pid}`));

    await t.test('the page moves on with it', async () => {
        await program.more(64);
        await heldAtLeast(page, (16 + 64) << 16);
        assert.match(await page.getByRole('heading', { level: 1 }).innerText(), /holds .* now/);
    });

    await t.test('the view of what grows', async (t) => {
        const growing = await open(t, server, 'live');
        await program.more(160);
        await growing.locator('main').getByText(/hold_blocks/).first().waitFor();
    });

    await t.test('its last numbers stay after SIGKILL', async () => {
        const before = await heldNow(page);
        assert.ok(before >= (16 + 64) << 16, spell.bytes(before));
        process.kill(pid, 'SIGKILL');
        await program.ended;
        await page.waitForFunction(() => !/has run/.test(document.querySelector('main')?.textContent ?? ''));
        await heldAtLeast(page, (16 + 64 + 160) << 16);
        assert.ok(!/does not answer|no longer/.test(await page.locator('main').innerText()));
    });
});

test('run --serve', async (t) => {
    // A group of its own, as a shell makes it.
    const program = grow(t, memtrace, ['run', '--serve', '--output', path.join(scratch, `served-${process.pid}.mtp`), '--', grower]);
    const server = await serving(t, program.child);
    await program.pid();
    await program.more(32);
    const page = await open(t, server);
    await heldAtLeast(page, 32 << 16);
    await program.more(32);
    await heldAtLeast(page, 64 << 16);
    // The program ends, the page stays until Ctrl-C.
    program.child.stdin.end();
    await page.waitForFunction(() => !/has run/.test(document.querySelector('main')?.textContent ?? ''));
    await heldAtLeast(page, 64 << 16);
    while (!server.said().includes('until Ctrl-C')) {
        await new Promise((resolve) => { program.child.stderr.once('data', resolve); });
    }
    await settled(page);
    await leave(server.origin); // it looks for news, which nobody would answer
    program.child.kill('SIGINT');
    assert.equal(await program.ended, 0);
});

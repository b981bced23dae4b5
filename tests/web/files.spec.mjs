// SPDX-License-Identifier: MIT
// files.spec.mjs: what is open and what can be: files of a folder, running and killed programs; one click opens them, and
// two files are compared. Each number is that of the command line.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { build, closeChrome, grow, grower, memtrace, newsdesk, open, ownPrograms, report, run, scratch, serve, settled, spell } from './harness.mjs';

after(closeChrome);

const lists = (page, name) => page.locator('section.card').filter({ has: page.getByRole('heading', { name, exact: true }) });
const idOf = (page) => new URL(page.url()).searchParams.get('r') ?? '1';

async function says(page, told) {
    await settled(page);
    const text = await page.locator('main').innerText();
    for (const figure of [spell.bytes(told.peak_bytes), spell.bytes(told.live_bytes - (told.suppressed_bytes ?? 0)), spell.count(told.allocations)]) {
        assert.ok(text.includes(figure), `the page does not say ${figure}: ${text}`);
    }
}

test('files', async (t) => {
    ownPrograms(t);
    const folder = fs.mkdtempSync(path.join(scratch, 'folder-'));
    const file = path.join(folder, 'day.mtr');
    fs.copyFileSync(newsdesk(), file);
    for (const [name, depth] of [['small.mtp', '3'], ['large.mtp', '9']]) {
        run(memtrace, ['run', '--no-summary', '--output', path.join(folder, name), '--', path.join(build, 'tests', 'web', 'paths'), depth]);
    }
    fs.writeFileSync(path.join(folder, 'notes.txt'), 'no profile');
    // One runs, the other one was killed with its collector, so that its numbers lie where they were.
    const programs = ['runs', 'killed'].map((name) => grow(t, memtrace,
        ['run', '--no-summary', '--output', path.join(folder, `${name}.later.mtp`), '--', grower]));
    const [running, killed] = await Promise.all(programs.map((one) => one.pid()));
    await Promise.all(programs.map((one) => one.more(20)));
    const server = await serve(t, file, folder);
    const page = await open(t, server, 'files');
    const others = lists(page, 'Running programs, and those that left no file');

    await t.test('lists what can be opened', async () => {
        const opened = lists(page, 'Open').getByRole('listitem');
        assert.equal(await opened.count(), 1);
        assert.match(await opened.innerText(), /day\.mtr[\s\S]*recording/);
        const files = lists(page, 'Files').getByRole('listitem');
        const names = (await files.allInnerTexts()).map((text) => text.split('\n')[0]);
        assert.deepEqual(names.sort(), ['large.mtp', 'small.mtp']);
        const large = await files.filter({ hasText: 'large.mtp' }).innerText();
        assert.ok(large.includes(spell.bytes(fs.statSync(path.join(folder, 'large.mtp')).size)), large);
        await others.getByRole('button', { name: `grower (${running})` }).waitFor();
        await others.getByRole('button', { name: `grower (${killed})` }).waitFor();
    });

    await t.test('tells of a program that is killed meanwhile', async () => {
        programs[1].child.kill('SIGSTOP'); // its collector, which would bring its profile to its place
        process.kill(killed, 'SIGKILL');
        programs[1].child.kill('SIGKILL');
        await programs[1].ended;
        await others.getByRole('listitem').filter({ hasText: `grower (${killed})` }).getByText('killed').waitFor();
        await others.getByRole('listitem').filter({ hasText: `grower (${running})` }).getByText('running', { exact: true }).waitFor();
    });

    await t.test('opens another file', async () => {
        await lists(page, 'Files').getByRole('button', { name: /^small\.mtp/ }).click();
        await page.waitForURL((url) => url.searchParams.get('r') === '2');
        await says(page, report(path.join(folder, 'small.mtp')));
        await page.goBack();
        await lists(page, 'Files').getByRole('button', { name: /^large\.mtp/ }).click();
        await page.waitForURL((url) => url.searchParams.get('r') === '3');
        await says(page, report(path.join(folder, 'large.mtp')));
        // By its name in the head of the page, too.
        await page.getByRole('combobox', { name: 'File', exact: true }).selectOption('small.mtp');
        assert.equal(idOf(page), '2');
        await says(page, report(path.join(folder, 'small.mtp')));
    });

    await t.test('compares two of them', async () => {
        const [small, large] = ['small.mtp', 'large.mtp'].map((name) => report(path.join(folder, name)));
        await page.goto(`${server.origin}/files?r=3`);
        await settled(page);
        await lists(page, 'Open').getByRole('listitem').filter({ hasText: 'small.mtp' }).getByRole('link', { name: 'Compare with it' }).click();
        await page.waitForURL((url) => url.searchParams.get('base') === '2');
        await settled(page);
        const text = await page.locator('main').innerText();
        const grew = large.total_bytes - small.total_bytes;
        assert.ok(grew > 0 && text.includes(`+${spell.bytes(grew)}`), text);
        assert.equal(await page.getByRole('combobox', { name: 'compared with' }).inputValue(), '2');
    });

    await t.test('opens programs', async () => {
        await page.goto(`${server.origin}/files?r=1`);
        await others.getByRole('button', { name: `grower (${killed})` }).click();
        await page.waitForURL((url) => url.searchParams.get('r') === '4');
        await settled(page);
        const left = (await server.get('/r/4')).data;
        assert.ok(left.end === 'killed' && left.totals.live_bytes >= 20 << 16, left);
        await says(page, { peak_bytes: left.totals.peak_bytes, live_bytes: left.totals.live_bytes, allocations: left.totals.allocations });
        assert.match(await page.locator('main').innerText(), /killed, or ended abruptly/);
        await page.goto(`${server.origin}/files?r=1`);
        await others.getByRole('button', { name: `grower (${running})` }).click();
        await page.waitForURL((url) => url.searchParams.get('r') === '5');
        await settled(page);
        await page.locator('header').getByText(`running program, process ${running}`).waitFor();
        // Its last numbers are those of the profile that it leaves.
        programs[0].child.stdin.end();
        await programs[0].ended;
        await page.locator('header').getByText('ended', { exact: true }).waitFor();
        await says(page, report(path.join(folder, 'runs.later.mtp')));
    });
});

// SPDX-License-Identifier: MIT
// story.spec.mjs: from "too much memory" to the line, as docs/serve.md and docs/tutorial-leak.md tell it: by clicks,
// which are counted, and by keyboard alone. Each number on screen is one of the commands.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { cli, closeChrome, lineCost, newsdesk, open, query, Reader, report, serve, settled, spell } from './harness.mjs';

const file = newsdesk();
const source = 'newsdesk.cpp';
const only = (name) => ['--function', `^\\(anonymous namespace\\)::${name}$`];
const chosenCall = (page) => page.getByRole('tree', { name: 'Flame graph' }).getByRole('treeitem').textContent();
const findings = (page) => page.getByRole('region', { name: 'Findings' });
const details = (page) => page.getByRole('complementary', { name: 'Details' });

/** The row of the line that the source view is at. */
async function selectedLine(page) {
    const row = page.getByRole('grid', { name: /^Lines of .*newsdesk\.cpp$/ }).getByRole('row', { selected: true });
    return { number: Number(await row.getByRole('rowheader').innerText()), row };
}

after(closeChrome);

test('from too much memory to the line', async (t) => {
    const server = await serve(t, file);
    const page = await open(t, server);
    const reader = new Reader(page);
    const told = report(file);

    await t.test('the summary says what was held', async () => {
        const heading = page.getByRole('heading', { level: 1 });
        assert.match(await heading.innerText(), new RegExp(`newsdesk held at most ${spell.bytes(told.peak_bytes)}`));
        const tile = async (name, exact) => {
            const link = page.getByRole('link', { name });
            assert.equal(await link.getAttribute('title'), exact, String(name));
            return link.innerText();
        };
        told.not_suppressed = told.live_bytes - told.suppressed_bytes;
        const bytes = (field) => `${spell.count(told[field])} bytes`;
        assert.match(await tile(/^At maximum /, bytes('peak_bytes')), new RegExp(spell.bytes(told.peak_bytes)));
        assert.match(await tile(/^Leaked /, bytes('not_suppressed')), new RegExp(`in ${spell.count(told.live_blocks - told.suppressed_blocks)} blocks`));
        assert.match(await tile(/^Allocated /, bytes('total_bytes')), new RegExp(spell.bytes(told.total_bytes)));
        assert.match(await tile(/^Allocations /, null), new RegExp(`${spell.count(told.allocations)}\\s+${spell.count(told.frees)} frees`));
        assert.match(await tile(/^Temporary /, null), new RegExp(`${spell.count(told.temporary)}\\s+${spell.share(told.temporary, told.allocations)}`));
    });

    await t.test('the first screen is full', async () => {
        for (const region of ['Timeline', 'What held memory at the maximum', 'Findings']) {
            const box = await page.getByRole('region', { name: region }).boundingBox();
            assert.ok(box.y >= 0 && box.y + 100 < 900 && box.height > 60, `${region}: ${JSON.stringify(box)}`);
        }
        const first = await findings(page).getByRole('listitem').first().boundingBox();
        assert.ok(first.y + first.height <= 900);
    });

    await t.test('a finding opens the flame graph of what it says', async () => {
        await reader.click(findings(page).getByRole('link', { name: /Desk::receive holds .* of the peak/ }));
        assert.equal(reader.view(), 'flame');
        const name = await chosenCall(page);
        const bytes = report(file, ...only('Desk::receive')).peak_bytes;
        assert.match(name, new RegExp(`^everything, ${spell.bytes(bytes)}, 100.0%`));
        await page.getByRole('button', { name: 'Remove the filter function' }).waitFor();
    });

    await t.test('a call tells its figures', async () => {
        await reader.clickCall(4); // all, main, morning, receive
        assert.match(await chosenCall(page), /^(\(anonymous namespace\)::)?Desk::receive, /);
        await details(page).getByText('Desk::receive').first().waitFor();
    });

    await t.test('callers and callees of it', async () => {
        await reader.press('s');
        assert.equal(reader.view(), 'sandwich');
        const bytes = report(file, ...only('Desk::receive')).peak_bytes;
        const main = page.getByRole('definition').filter({ hasText: spell.bytes(bytes) });
        await main.first().waitFor();
        for (const half of ['Callers', 'Callees']) {
            await page.getByRole('tree', { name: half }).waitFor();
        }
    });

    await t.test('its source, with bytes beside the lines', async () => {
        await reader.press('o');
        assert.equal(reader.view(), 'source');
        const { number, row } = await selectedLine(page);
        const cells = await row.getByRole('gridcell').allInnerTexts();
        assert.equal(cells[0], spell.bytes(lineCost(told, source, number, 'peak_bytes')), `line ${number}: ${cells}`);
    });

    await t.test('its blocks', async () => {
        await reader.click(details(page).getByRole('link', { name: 'Its blocks' }));
        assert.equal(reader.view(), 'blocks');
        await reader.click(page.getByRole('button', { name: 'All', exact: true }));
        const [{ n }] = query(file, 'SELECT count(*) AS n FROM allocations', ...only('Desk::receive'));
        await page.getByText(`${spell.count(n)} blocks`, { exact: true }).first().waitFor();
        assert.ok(reader.steps <= 6, `${reader.steps} steps`);
    });
});

test('the tutorial in the page', async (t) => {
    const server = await serve(t, file);
    const told = report(file);

    await t.test('the leak', async (t) => {
        const page = await open(t, server);
        const reader = new Reader(page);
        await reader.click(findings(page).getByRole('link', { name: /compile_filter leaks more and more/ }));
        await reader.clickCall(6); // all, main, morning, serve_reader, Reader, compile_filter
        assert.match(await chosenCall(page), /^(\(anonymous namespace\)::)?compile_filter, /);
        await reader.click(details(page).getByRole('link', { name: /^Source/ }));
        const { number, row } = await selectedLine(page);
        const cells = await row.getByRole('gridcell').allInnerTexts();
        assert.equal(cells[1], spell.bytes(lineCost(told, source, number, 'live_bytes')), `line ${number}: ${cells}`);
        assert.match(await row.innerText(), /new Filter/);
        // All of them or some?
        await reader.click(details(page).getByRole('link', { name: 'Its blocks' }));
        const count = (more) => query(file, `SELECT count(*) AS n FROM allocations ${more}`, ...only('compile_filter'))[0].n;
        await page.getByText(`${spell.count(count('WHERE freed IS NULL'))} blocks`, { exact: true }).first().waitFor();
        await reader.click(page.getByRole('button', { name: 'All', exact: true }));
        await page.getByText(`${spell.count(count(''))} blocks`, { exact: true }).first().waitFor();
        assert.ok(reader.steps <= 6, `${reader.steps} clicks`);
    });

    await t.test('the hot temporary', async (t) => {
        const page = await open(t, server);
        const reader = new Reader(page);
        await reader.click(findings(page).getByRole('link', { name: /Topics::find allocates for a moment/ }));
        assert.match(await chosenCall(page), new RegExp(`^everything, ${spell.count(told.temporary)}, `));
        await reader.clickCall(5); // all, main, morning, receive, find
        assert.match(await chosenCall(page), /^(\(anonymous namespace\)::)?Topics::find, /);
        await reader.click(details(page).getByRole('link', { name: /^Source/ }));
        const { number, row } = await selectedLine(page);
        const cells = await row.getByRole('gridcell').allInnerTexts();
        assert.equal(cells[2], spell.count(lineCost(told, source, number, 'temporary')), `line ${number}: ${cells}`);
        assert.match(await row.innerText(), /\.find\(/);
        assert.ok(reader.steps <= 6, `${reader.steps} clicks`);
    });

    await t.test('the fragmented heap', async (t) => {
        const page = await open(t, server);
        const reader = new Reader(page);
        const link = findings(page).getByRole('link', { name: /Archive::add keep .* nearly empty pages/ });
        const pages = /keep ([\d,]+) nearly/.exec(await link.innerText())[1];
        await reader.click(link);
        assert.equal(reader.view(), 'heap');
        const pins = page.getByRole('grid', { name: 'Who pins pages' }).getByRole('row', { name: /Archive::add in std::make_unique/ });
        assert.equal(await pins.getByRole('gridcell').first().innerText(), pages);
        // The same as text, of the command that the page tells.
        const at = new URL(page.url()).searchParams.get('at');
        assert.match(cli('report', '--show-fragmentation', '--at', at, file), new RegExp(`${pages} .*KiB .*std::make_unique`));
        await reader.click(pins);
        await reader.click(details(page).getByRole('link', { name: /^newsdesk\.cpp:87$/ }));
        const { number, row } = await selectedLine(page);
        assert.equal(number, 87);
        assert.match(await row.innerText(), /make_unique<Headline>/);
        assert.ok(reader.steps <= 6, `${reader.steps} clicks`);
    });

    await t.test('what grew between two marks', async (t) => {
        const page = await open(t, server);
        const reader = new Reader(page);
        await reader.click(page.getByRole('button', { name: 'The timeline as a table' }));
        const row = page.getByRole('region', { name: 'Marks' }).getByRole('row', { name: /^evening/ });
        await reader.click(row.getByRole('button', { name: 'From here to the next' }));
        await reader.click(page.getByRole('link', { name: /^Held at the end / }));
        assert.equal(reader.view(), 'flame');
        const held = report(file, '--between', 'evening,night').live_bytes;
        assert.match(await chosenCall(page), new RegExp(`^everything, ${spell.bytes(held)}, 100.0%`));
        assert.ok(reader.steps <= 6, `${reader.steps} clicks`);
    });
});

test('by keyboard alone', async (t) => {
    const server = await serve(t, file);
    const page = await open(t, server);
    const reader = new Reader(page);
    const focusOn = async (name) => {
        for (let i = 0; i < 80; i++) {
            await page.keyboard.press('Tab');
            if (await page.evaluate((text) => document.activeElement?.matches('a, button') && document.activeElement.textContent.includes(text), name)) {
                return;
            }
        }
        assert.fail(`Tab does not reach ${name}`);
    };
    await focusOn('compile_filter leaks more and more');
    await reader.press('Enter');
    assert.equal(reader.view(), 'flame');
    await page.getByRole('treeitem').focus();
    for (let level = 1; level < 6; level++) {
        await reader.press('ArrowDown');
    }
    assert.match(await chosenCall(page), /^(\(anonymous namespace\)::)?compile_filter, /);
    await reader.press('s');
    assert.equal(reader.view(), 'sandwich');
    await reader.press('o');
    assert.equal(reader.view(), 'source');
    await reader.press('8');
    assert.equal(reader.view(), 'blocks');
    await page.getByRole('grid', { name: 'Blocks' }).focus();
    await reader.press('ArrowDown');
    await details(page).getByRole('heading', { name: 'Allocated by' }).waitFor();
    // The palette finds each view, and Escape leaves it.
    await page.keyboard.press('Control+K');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.type('Summary');
    await page.keyboard.press('Enter');
    await settled(page);
    assert.equal(reader.view(), 'summary');
    await page.keyboard.press('?');
    await page.getByRole('dialog').getByText('Copy its command').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    // Filters, too.
    await page.keyboard.press(':');
    await page.keyboard.type('size:100..');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Remove the filter size 100..' }).waitFor();
    await settled(page);
    const bytes = report(file, '--size', '100..', ...only('compile_filter')).peak_bytes;
    assert.ok(bytes > 0 && bytes < report(file, ...only('compile_filter')).peak_bytes);
    assert.match(await page.getByRole('heading', { level: 1 }).innerText(), new RegExp(spell.bytes(bytes)));
    await page.keyboard.press('Escape');
    await reader.press('Backspace');
    await page.getByRole('button', { name: 'Remove the filter size 100..' }).waitFor({ state: 'detached' });
});

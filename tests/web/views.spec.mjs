// SPDX-License-Identifier: MIT
// views.spec.mjs: each view from its address shows what the commands say, is the same after a reload, undone by Back,
// and spelled as a command that, run, gives the same numbers. Filters, windows and differences hold for all of them.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { build, cli, closeChrome, newsdesk, open, ownPrograms, query, report, run, scratch, serve, settled, spell } from './harness.mjs';

const file = newsdesk();
const told = report(file);
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
const main = (page) => page.locator('main').innerText();
const commandOf = (page) => page.getByRole('textbox', { name: 'The command that shows this view' }).innerText();
const grid = (page, name) => page.getByRole('grid', { name, exact: true });
const cellsOf = async (row) => (await row.getByRole('gridcell').allInnerTexts()).map((text) => text.trim());

/** A command as the page spells it, run by a shell in which memtrace is this build's. */
const shell = (command) => run('/bin/sh', ['-c', command],
    { env: { ...process.env, NO_COLOR: '1', LC_ALL: 'C.UTF-8', PATH: path.join(build, 'bin') + ':' + process.env.PATH } });

const biggest = (field) => told.contexts.reduce((most, one) => (one[field] > most[field] ? one : most));

const through = (name, field) => told.contexts.filter(({ frames }) => frames.some((one) => one.function === name))
    .reduce((sum, one) => sum + one[field], 0);

/* Each view: what its command's output and its page must both say. */
const VIEWS = {
    summary: () => [spell.bytes(told.peak_bytes), spell.bytes(told.live_bytes - told.suppressed_bytes), spell.count(told.allocations)],
    'flame?metric=leaked': () => [],
    tree: () => [spell.bytes(through('main', 'peak_bytes'))],
    'sandwich?focus=main&metric=temporary': () => [spell.count(told.temporary)],
    'functions?metric=temporary': () => [spell.count(told.temporary)],
    'paths?metric=maximum': () => [spell.bytes(biggest('peak_bytes').peak_bytes)],
    source: () => [],
    blocks: () => [spell.bytes(query(file, 'SELECT max(size) AS size FROM allocations WHERE freed IS NULL')[0].size)],
    lifetimes: () => [spell.count(told.frees)],
    sizes: () => [],
    'heap?at=mark:night': () => [spell.bytes(report(file, '--to', 'mark:night').live_bytes)],
    mappings: () => [],
    threads: () => [spell.count(told.allocations), spell.count(told.frees)],
    files: () => [],
};

after(closeChrome);

test('views', async (t) => {
    ownPrograms(t);
    const server = await serve(t, file);
    for (const [address, both] of Object.entries(VIEWS)) {
        await t.test(address, async (t) => {
            const page = await open(t, server, address);
            const text = await main(page);
            assert.ok(text.length > 20 && !/This view has a fault|being written/.test(text), text);
            const command = await commandOf(page);
            const output = shell(command);
            for (const number of both()) {
                assert.ok(text.includes(number), `the page does not say ${number}: ${text}`);
                assert.ok(output.includes(number), `${command} does not say ${number}: ${output}`);
            }
            await page.reload();
            await settled(page);
            assert.equal(await main(page), text, 'the same after a reload');
            assert.equal(await commandOf(page), command);
        });
    }

    await t.test('the flame graph has the tree of the report', async (t) => {
        const page = await open(t, server, 'flame?metric=allocations');
        const item = page.getByRole('tree', { name: 'Flame graph' }).getByRole('treeitem');
        assert.match(await item.textContent(), new RegExp(`^everything, ${spell.count(told.allocations)}, 100\\.0%`));
        // Walked down to an end: each call has no more than its caller.
        await item.focus();
        for (let level = 2; level < 6; level++) {
            await page.keyboard.press('ArrowDown');
            await settled(page);
            assert.equal(await item.getAttribute('aria-level'), String(level));
        }
        await page.getByRole('searchbox').fill('compile_filter');
        const found = report(file, '--function', 'compile_filter').allocations;
        await page.getByText(`${spell.share(found, told.allocations)} (${spell.count(found)})`).waitFor();
    });

    await t.test('a zoom of the flame graph does not lay out the page for each box', async (t) => {
        const page = await open(t, server, 'flame?metric=allocations');
        const item = page.getByRole('tree', { name: 'Flame graph' }).getByRole('treeitem');
        await item.focus();
        await page.keyboard.press('ArrowDown');
        await page.keyboard.press('ArrowDown');
        await settled(page);
        // Who reads where an element is scrolled to has the browser find out where everything is.
        await page.evaluate(() => {
            const { get, set } = Object.getOwnPropertyDescriptor(Element.prototype, 'scrollTop');
            window.reads = 0;
            Object.defineProperty(Element.prototype, 'scrollTop', { configurable: true, set, get() {
                window.reads++;
                return get.call(this);
            } });
        });
        await page.keyboard.press('Enter');
        await settled(page);
        assert.match(page.url(), /zoom=/);
        assert.ok(await page.evaluate(() => window.reads) <= 20, 'at most one a frame');
    });

    await t.test('the call tree has the rows of the report', async (t) => {
        const page = await open(t, server, 'tree');
        const row = page.getByRole('treegrid', { name: 'Call tree' }).getByRole('row', { name: /^main / });
        assert.equal((await cellsOf(row))[1], spell.bytes(through('main', 'peak_bytes')));
    });

    await t.test('functions are those of the report', async (t) => {
        const page = await open(t, server, 'functions?metric=temporary');
        const rows = JSON.parse(cli('report', '--json', '--show-temporary', '--flat', '--limit', '0', file)).reports[0].rows;
        const first = await cellsOf(grid(page, 'Functions').getByRole('row', { name: /Topics::find/ }));
        const theirs = rows.find((row) => row.function.includes('Topics::find'));
        assert.ok(first.includes(spell.count(theirs.inclusive)), `${first}: ${JSON.stringify(theirs)}`);
    });

    await t.test('call paths are those of the report, sorted as one likes', async (t) => {
        const page = await open(t, server, 'paths?metric=allocations');
        const table = grid(page, 'Call paths');
        const first = table.getByRole('row').nth(1);
        const most = biggest('allocations');
        assert.match((await cellsOf(first)).join(' '), new RegExp(`${spell.count(most.allocations)}.*${most.hash}`));
        const heading = table.getByRole('columnheader', { name: 'allocated', exact: true });
        await heading.getByRole('button').click();
        await settled(page);
        const largest = biggest('total_bytes');
        assert.match((await cellsOf(first)).join(' '), new RegExp(`${escaped(spell.bytes(largest.total_bytes))}.*${largest.hash}`));
        assert.equal(await heading.getAttribute('aria-sort'), 'descending');
        // Its details: the same numbers.
        await first.click();
        await settled(page);
        const details = page.getByRole('complementary', { name: 'Details' });
        await details.getByText(largest.hash).waitFor();
        assert.match(await details.innerText(), new RegExp(`allocations\\s+${spell.count(largest.allocations)}`));
    });

    await t.test('sizes add up to all allocations', async (t) => {
        const page = await open(t, server, 'sizes');
        const rows = page.getByRole('table', { name: /^Allocations by size/ }).getByRole('row');
        const numbers = [];
        for (const cells of await rows.evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent.trim())))) {
            const count = cells.find((cell) => /^[\d,]+$/.test(cell));
            if (count !== undefined) {
                numbers.push(Number(count.replaceAll(',', '')));
            }
        }
        assert.equal(numbers.reduce((sum, one) => sum + one, 0), told.allocations);
    });

    await t.test('a block is found by its pointer', async (t) => {
        const [block] = query(file, "SELECT printf('0x%x', address) AS address, size FROM allocations WHERE freed IS NULL ORDER BY size DESC LIMIT 1");
        const page = await open(t, server, 'blocks');
        await page.getByRole('textbox', { name: /^A pointer/ }).fill(block.address);
        await page.getByRole('button', { name: 'Find' }).click();
        await settled(page);
        const details = await page.getByRole('complementary', { name: 'Details' }).innerText();
        assert.match(details, new RegExp(`${escaped(spell.bytes(block.size))}\\s+at\\s+${block.address}`));
    });
});

test('filters, windows and differences', async (t) => {
    const server = await serve(t, file);

    await t.test('a chip is the filter of the command', async (t) => {
        const page = await open(t, server);
        const field = page.getByRole('combobox', { name: 'Add a filter' });
        await field.fill('size:16..32');
        await field.press('Enter');
        await page.getByRole('button', { name: 'Remove the filter size 16..32' }).waitFor();
        await settled(page);
        const selected = report(file, '--size', '16..32');
        assert.match(await page.getByRole('link', { name: /^Allocations / }).innerText(), new RegExp(spell.count(selected.allocations)));
        assert.match(await commandOf(page), /--size 16\.\.32/);
        assert.equal(new URL(page.url()).searchParams.get('size'), '16..32');
        // A wrong one is refused with the command's sentence.
        await field.fill('function:(');
        await field.press('Enter');
        const alert = await page.getByRole('alert').innerText();
        let sentence = '';
        try {
            cli('report', '--function', '(', file);
        } catch (error) {
            sentence = String(error.stderr).replace(/^memtrace: /, '').split('\n')[0].replace(/ \(try: .*/, '');
        }
        assert.equal(alert, sentence);
        // The browser itself tells its console of refused answers.
        assert.ok(page.complaints.every((one) => /status of 400/.test(one)), page.complaints.join());
        page.complaints.length = 0;
        await field.press('Escape');
        await page.goBack();
        await settled(page);
        assert.equal(new URL(page.url()).searchParams.get('size'), null);
        assert.match(await page.getByRole('link', { name: /^Allocations / }).innerText(), new RegExp(spell.count(told.allocations)));
    });

    await t.test('dragging chooses a window: snapped while it moves, exact when it ends', async (t) => {
        const page = await open(t, server, 'functions');
        const exact = page.getByRole('contentinfo').getByRole('button', { name: /^Figures: / });
        const strip = page.locator('.brush');
        const box = await strip.boundingBox();
        const at = (share) => [box.x + box.width * share, box.y + box.height / 2];
        const entries = () => page.evaluate(() => history.length);
        const address = page.url(), before = await entries();
        await page.mouse.move(...at(0.25));
        await page.mouse.down();
        // While the pointer rests the exact answer is asked ahead; it is given up when that moves on.
        const asked = new Set(), givenUp = new Set(), answered = new Set(); // windows
        const isExact = (url) => /\/functions\?(?=.*to=)(?!.*snap=1)/.test(url);
        for (const [event, windows] of [['request', asked], ['requestfailed', givenUp], ['response', answered]]) {
            page.on(event, (one) => { if (isExact(one.url())) { windows.add(new URL(one.url()).searchParams.get('to')); } });
        }
        const until = async (isSo) => {
            while (!isSo()) {
                await new Promise((resolve) => { setTimeout(resolve, 20); });
            }
        };
        await page.mouse.move(...at(0.5));
        await until(() => answered.size === 1);
        await page.getByRole('button', { name: 'Figures: snapped: explain' }).waitFor();
        let isHeld = true;
        await page.route(({ href }) => isExact(href), (route) => (isHeld ? undefined : route.continue()));
        await page.mouse.move(...at(0.7));
        await until(() => asked.size === 2);
        isHeld = false;
        await page.mouse.move(...at(0.75));
        await until(() => givenUp.size === 1 && answered.size === 2);
        await settled(page);
        assert.equal(page.url(), address, 'the history is left alone while the pointer moves');
        let late = 0;
        page.on('request', (request) => { late += isExact(request.url()); });
        await page.mouse.up();
        await page.getByRole('button', { name: 'Figures: exact: explain' }).waitFor();
        await settled(page);
        assert.equal(late, 0, 'what was asked ahead is there');
        assert.equal(await entries(), before + 1);
        assert.match(await exact.innerText(), /exact/);
        const { searchParams } = new URL(page.url());
        const window = ['--from', searchParams.get('from'), '--to', searchParams.get('to')];
        await page.getByRole('link', { name: 'Summary', exact: true }).click();
        await settled(page);
        const inside = report(file, ...window);
        assert.match(await page.getByRole('heading', { level: 1 }).innerText(), new RegExp(spell.bytes(inside.peak_bytes)));
        assert.match(await page.getByRole('link', { name: /^Allocations / }).innerText(), new RegExp(spell.count(inside.allocations)));
        // One step back undoes the whole drag, and a double click shows all again.
        await page.goBack();
        await page.goBack();
        await settled(page);
        assert.equal(new URL(page.url()).searchParams.get('from'), null);
    });

    await t.test('marks are steps of the window', async (t) => {
        const page = await open(t, server);
        await page.keyboard.press(']');
        await settled(page);
        assert.match(page.url(), /mark:evening/);
        const { searchParams } = new URL(page.url());
        const filters = [...searchParams].filter(([name]) => ['from', 'to'].includes(name)).flatMap(([name, value]) => ['--' + name, value]);
        const inside = report(file, ...filters);
        assert.match(await page.getByRole('link', { name: /^Allocations / }).innerText(), new RegExp(spell.count(inside.allocations)));
    });

    await t.test('a second window makes a difference of every view', async (t) => {
        const page = await open(t, server, 'functions?metric=allocations&from=mark:evening&to=mark:night');
        const box = await page.locator('.brush').boundingBox();
        await page.keyboard.down('Alt');
        await page.mouse.move(box.x + box.width * 0.1, box.y + box.height / 2);
        await page.mouse.down();
        await page.mouse.move(box.x + box.width * 0.4, box.y + box.height / 2, { steps: 5 });
        await page.mouse.up();
        await page.keyboard.up('Alt');
        await page.getByRole('combobox', { name: /compared with/ }).waitFor();
        await settled(page);
        const { searchParams } = new URL(page.url());
        assert.equal(searchParams.get('base'), '1');
        const before = report(file, '--from', searchParams.get('base-from'), '--to', searchParams.get('base-to')).allocations;
        const now = report(file, '--between', 'evening,night').allocations;
        await page.getByRole('link', { name: 'Call tree' }).click();
        await settled(page);
        const row = await page.getByRole('treegrid', { name: 'Call tree' }).getByRole('row').nth(1).innerText();
        const change = now - before;
        assert.ok(row.includes(spell.count(now)) && row.includes((change > 0 ? '+' : '') + spell.count(change)), `${row}: ${before} -> ${now}`);
    });
});

test('what a view is besides', async (t) => {
    const server = await serve(t, file);

    await t.test('copied: command, SQL, link', async (t) => {
        const page = await open(t, server, 'functions?metric=leaked');
        const clipboard = () => page.evaluate(() => navigator.clipboard.readText());
        await page.getByRole('button', { name: 'Command', exact: true }).click();
        await page.getByText('Command copied').waitFor();
        assert.equal(await clipboard(), await commandOf(page));
        await page.getByRole('button', { name: 'Link', exact: true }).click();
        await page.getByText('Link copied').waitFor();
        const link = new URL(await clipboard());
        assert.equal(link.hash, '', 'no token in a link');
        const text = await main(page);
        await page.goto(link.href);
        await settled(page);
        assert.equal(await main(page), text);
    });

    await t.test('saved as one HTML file', async (t) => {
        const page = await open(t, server, 'summary?function=compile_filter');
        const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'HTML', exact: true }).click()]);
        const saved = path.join(scratch, `saved-${process.pid}.html`);
        await download.saveAs(saved);
        const size = fs.statSync(saved).size;
        fs.rmSync(saved);
        assert.ok(size > 10000 && size < 1 << 20, `${size} bytes`);
    });

    await t.test('a budget that holds', async (t) => {
        const page = await open(t, server, 'flame?metric=leaked&function=compile_filter');
        await page.getByRole('button', { name: 'Budget', exact: true }).click();
        const dialog = page.getByRole('dialog');
        await dialog.waitFor();
        const [line] = await dialog.locator('pre').allInnerTexts();
        const budgets = path.join(scratch, `budgets-${process.pid}`);
        fs.writeFileSync(budgets, line + '\n');
        cli('check', file, '--budgets', budgets);
        const less = line.replace(/<=.*/, '<= 1');
        fs.writeFileSync(budgets, less + '\n');
        assert.throws(() => cli('check', file, '--budgets', budgets), ({ status, stdout }) => status === 1 && /leaked is/.test(stdout));
        fs.rmSync(budgets);
    });
});

test('the timeline shows the series that are chosen', async (t) => {
    const server = await serve(t, file);
    const page = await open(t, server, 'summary');
    const legend = page.getByRole('region', { name: 'Timeline', exact: true }).locator('dl');
    await page.getByRole('button', { name: 'What the timeline shows' }).click();
    for (const name of ['swapped out', 'mapped', 'never freed', 'frees']) {
        await page.getByRole('dialog').getByRole('checkbox', { name: new RegExp(`^${name}`) }).check();
    }
    await page.keyboard.press('Escape');
    await legend.getByText('never freed', { exact: true }).waitFor();
    await page.reload(); // kept
    await legend.getByText('frees', { exact: true }).waitFor();
    await legend.getByText(spell.bytes(told.live_bytes)).waitFor();
    // The table's last row is the end: all that is never freed was allocated by then.
    await page.getByRole('button', { name: 'The timeline as a table' }).click();
    const table = page.getByRole('dialog').getByRole('table').last();
    assert.deepEqual(await table.getByRole('columnheader').allInnerTexts(),
        ['Time', 'held', 'resident', 'swapped out', 'mapped', 'never freed', 'allocations', 'frees']);
    // A profile says that it has none of these.
    const profile = path.join(scratch, `series-${process.pid}.mtp`);
    run(path.join(build, 'bin', 'memtrace'), ['run', '--no-summary', '--keep-small', '-o', profile, '--', path.join(build, 'tests', 'web', 'newsdesk')]);
    const other = await serve(t, profile);
    const without = await open(t, other, 'summary');
    await without.getByRole('button', { name: 'What the timeline shows' }).click();
    await without.getByRole('dialog').getByRole('checkbox', { name: /^frees/ }).check();
    await without.keyboard.press('Escape');
    // (A program that was over before anyone looked at it has no resident set, either.)
    await without.getByRole('region', { name: 'Timeline', exact: true }).getByText(/^freesnot recorded$/).waitFor();
    fs.rmSync(profile);
});

test('what a view leaves out is said, and what it does not know', async (t) => {
    const data = path.join(process.env.WEB_TESTS, 'data');
    const [shop, run_] = ['shop.mtr', 'index.mtp'].map((name) => path.join(data, name));
    const server = await serve(t, shop, run_);
    const shopTold = report(shop);
    const suppressed = /leaks that are left out above\n(.*) in /.exec(cli('report', shop))[1];
    const says = async (address, text) => {
        const page = await open(t, server, address);
        await page.getByText(text).first().waitFor();
        return page;
    };
    await says('summary', `${suppressed} of suppressed leaks is not counted`);
    await says('flame?metric=leaked', `without ${suppressed} suppressed`);
    const without = shopTold.contexts.filter((one) => one.peak_bytes === 0).length;
    assert.equal(without, 1);
    await says('paths', '1 more call path has none of this and is not shown.');
    await says('compare', 'No single command shows this view');
    // Where the clock is no finer, lifetimes are spelled as the command spells them.
    const shortest = /<[\d.]+ us/.exec(cli('report', '--show-lifetimes', shop))[0];
    await says('lifetimes', shortest);
    // A process that is asked for by its name is the chosen one.
    const page = await open(t, server, 'summary?r=2&process=indexer');
    const { data: { pid } } = await server.get('/r/2?process=indexer');
    assert.equal(await page.getByRole('combobox', { name: /^process/ }).inputValue(), String(pid));
});

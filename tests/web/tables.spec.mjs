// SPDX-License-Identifier: MIT
// tables.spec.mjs: what one does in the views of single blocks, the heap, differences and SQL: a rectangle of a heat map
// is filters that select as many blocks as it said; the heap is scrubbed, and its squares are blocks; a notebook runs,
// cancels, is refused and kept.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { closeChrome, newsdesk, open, query, report, serve, settled, spell } from './harness.mjs';

const file = newsdesk();
after(closeChrome);

const number = (text) => Number(/[\d,]+/.exec(text)[0].replaceAll(',', ''));
const parameters = (page) => new URL(page.url()).searchParams;
/* How many blocks the command selects. */
const count = (...filters) => query(file, 'SELECT count(*) AS count FROM allocations', ...filters)[0].count;

/* Slices know ages in ticks of their clock: a block that was freed soon after a tick may be in the next class. */
const isAbout = (shown, selected) => Math.abs(shown - selected) <= selected / 100;

/** Drags over a part of a heat map, given in hundredths of its box. */
async function brush(page, from, to) {
    const box = await page.locator('.heat-plot canvas').first().boundingBox();
    const place = ([x, y]) => [box.x + (box.width * x) / 100, box.y + (box.height * y) / 100];
    await page.mouse.move(...place(from));
    await page.mouse.down();
    await page.mouse.move(...place(to), { steps: 4 });
    await page.mouse.up();
    await settled(page);
}

test('heat maps', async (t) => {
    const server = await serve(t, file);

    await t.test('a rectangle of lifetimes is filters that select its blocks', async (t) => {
        const page = await open(t, server, 'lifetimes');
        await brush(page, [30, 90], [75, 10]);
        const chosen = number(await page.locator('.brush-bar').innerText());
        const [freed, lifetime] = parameters(page).get('brush').split('/');
        const selected = count('--freed', freed, '--lifetime', lifetime);
        assert.ok(chosen > 0 && isAbout(chosen, selected), `${chosen} are not ${selected}`);
        // The same after a reload, and in the view that it is taken to.
        await page.reload();
        await settled(page);
        assert.equal(number(await page.locator('.brush-bar').innerText()), chosen);
        await page.locator('.brush-bar').getByRole('link', { name: 'Blocks' }).click();
        await settled(page);
        await page.getByText(`${spell.count(selected)} blocks`, { exact: true }).waitFor();
    });

    await t.test('a rectangle of sizes, too; a bar is a filter', async (t) => {
        const page = await open(t, server, 'sizes');
        await brush(page, [20, 80], [60, 40]);
        const [allocated, size] = parameters(page).get('brush').split('/');
        assert.equal(number(await page.locator('.brush-bar').innerText()), count('--allocated', allocated, '--size', size));
        await page.getByRole('link', { name: '128 B to 256 B' }).click();
        await settled(page);
        assert.equal(parameters(page).get('size'), '128..255');
        const row = page.getByRole('row', { name: /^128 B to 256 B/ });
        await row.getByText(spell.count(count('--size', '128..255')), { exact: true }).waitFor();
    });

    await t.test('by keyboard, with a table as twin', async (t) => {
        const page = await open(t, server, 'lifetimes');
        await page.locator('.heat-plot').focus();
        for (const key of ['ArrowRight', 'Shift+ArrowRight', 'Shift+ArrowRight', 'Enter']) {
            await page.keyboard.press(key);
        }
        await settled(page);
        const chosen = number(await page.locator('.brush-bar').innerText());
        const [freed, lifetime] = parameters(page).get('brush').split('/');
        assert.ok(isAbout(chosen, count('--freed', freed, '--lifetime', lifetime)));
        await page.locator('.heat-plot').focus();
        await page.keyboard.press('t');
        const cells = await page.getByRole('region', { name: /table$/ }).getByRole('cell').allInnerTexts();
        assert.equal(cells.reduce((sum, cell) => sum + number(cell), 0), report(file).frees);
    });
});

test('the heap', async (t) => {
    const server = await serve(t, file);

    await t.test('is scrubbed by keyboard; Back undoes it', async (t) => {
        const page = await open(t, server, 'heap');
        const before = page.url();
        const slider = page.getByRole('slider', { name: 'Moment that the map shows' });
        await slider.focus();
        await page.keyboard.press('PageDown');
        await settled(page);
        const at = parameters(page).get('at');
        assert.equal(parameters(page).get('moment'), null);
        const held = report(file, '--at', at).live_bytes;
        assert.match(await page.locator('.heap-view .line').innerText(), new RegExp(`^${spell.bytes(held).replace('.', '\\.')} held`));
        await page.goBack();
        await settled(page);
        assert.equal(page.url(), before);
    });

    await t.test('opens when most lay unused', async (t) => {
        const { most } = (await server.get('/r/1/heap/history')).data;
        const page = await open(t, server, 'heap');
        const held = spell.bytes(report(file, '--at', `${most.time_ns}ns`).live_bytes);
        await page.locator('.heap-view .line').filter({ hasText: `${held} held` }).waitFor();
        assert.notEqual(held, spell.bytes(report(file).live_bytes));
        assert.equal(parameters(page).get('at'), null);
        await page.getByRole('button', { name: 'End', exact: true }).click();
        await page.locator('.heap-view .line').filter({ hasText: `${spell.bytes(report(file).live_bytes)} held` }).waitFor();
    });

    await t.test('a square is blocks', async (t) => {
        const page = await open(t, server, 'heap?at=peak');
        const map = page.getByRole('application', { name: /^Map of the heap/ });
        await map.focus();
        for (const key of ['ArrowRight', 'ArrowRight', 'ArrowDown', 'Enter']) {
            await page.keyboard.press(key);
        }
        await settled(page);
        assert.equal(new URL(page.url()).pathname, '/blocks');
        const range = parameters(page).get('address');
        const [{ count: blocks }] = query(file, 'SELECT count(*) AS count FROM allocations WHERE freed IS NULL', '--address', range, '--at', 'peak');
        await page.getByText(`${spell.count(blocks)} block${blocks === 1 ? '' : 's'}`, { exact: true }).waitFor();
    });

    await t.test('its tables', async (t) => {
        const page = await open(t, server, 'heap?at=mark:night&part=pages');
        const { pages } = (await server.get('/r/1/heap?at=mark:night')).data;
        const rows = await page.getByRole('region', { name: 'Pages by fullness' }).getByRole('row').allInnerTexts();
        const found = rows.map((row) => /([\d,]+) pages?\b/.exec(row)).filter(Boolean);
        assert.equal(found.reduce((sum, one) => sum + number(one[1]), 0), pages);
    });
});

test('where views open', async (t) => {
    const server = await serve(t, file);

    await t.test('source: at the line that allocates most itself', async (t) => {
        const { rows, columns } = (await server.get('/r/1/files?limit=100')).data;
        const at = (name) => columns.findIndex((column) => column.name === name);
        const newsdesk = rows.find((row) => row[at('file')].endsWith('newsdesk.cpp'));
        const { lines } = (await server.get(`/r/1/files/${newsdesk[at('number')]}`)).data;
        const own = {};
        for (const line of lines) own[line.line] = (own[line.line] ?? 0) + line.self_maximum;
        const [dearest] = Object.entries(own).sort((a, b) => b[1] - a[1])[0];
        const page = await open(t, server, 'source?source=newsdesk.cpp');
        await page.getByRole('button', { name: `Costliest line: ${dearest}`, exact: true }).waitFor();
        const grid = page.getByRole('grid', { name: /^Lines of / });
        assert.equal(await grid.getAttribute('aria-activedescendant'), `line-${dearest}`);
    });

    await t.test('findings stand there whole', async (t) => {
        const page = await open(t, server, 'summary');
        const cut = await page.locator('.finding-sentence').evaluateAll((all) => all.filter((one) => one.scrollHeight > one.clientHeight + 1).length);
        assert.equal(cut, 0);
    });

    await t.test('SQL: the command is that of the question that was run', async (t) => {
        const page = await open(t, server, 'sql');
        const bar = page.getByRole('contentinfo');
        await bar.getByText(/memtrace query/).waitFor();
        assert.ok(!(await bar.innerText()).includes('SELECT * FROM summary'), await bar.innerText());
    });
});

test('a difference', async (t) => {
    const server = await serve(t, file);
    const page = await open(t, server, 'compare?base=1&at=mark:night&base-at=mark:evening');
    const [night, evening] = ['night', 'evening'].map((mark) => report(file, '--at', `mark:${mark}`));
    const row = page.getByRole('row', { name: /^Held at the end/ });
    const cells = await row.getByRole('cell').allInnerTexts();
    assert.deepEqual(cells.slice(0, 2), [spell.bytes(evening.live_bytes), spell.bytes(night.live_bytes)]);
    const less = evening.live_bytes - night.live_bytes;
    assert.equal(cells[2], `-${spell.bytes(less)}`);
    const address = page.url();
    for (const sign of ['+', '-']) {
        await page.getByRole('button', { name: 'Exchange both sides' }).click();
        await settled(page);
        assert.equal((await row.getByRole('cell').allInnerTexts())[2], `${sign}${spell.bytes(less)}`);
    }
    assert.deepEqual([...parameters(page)].sort(), [...new URL(address).searchParams].sort().concat([['r', '1']]).sort().filter((one, index, all) => index === 0 || one.join() !== all[index - 1].join()));
    await page.getByRole('link', { name: /^before/ }).click();
    await settled(page);
    assert.match(await page.locator('main').innerText(), new RegExp(spell.bytes(evening.live_bytes).replace('.', '\\.')));
    assert.equal(parameters(page).get('at'), 'mark:evening');
});

test('the notebook', async (t) => {
    const server = await serve(t, file);
    const editor = (page) => page.getByRole('textbox', { name: /^SQL of cell/ }).first();

    await t.test('runs, is refused, and is kept', async (t) => {
        const page = await open(t, server, 'sql?sql=' + encodeURIComponent('SELECT count(*) AS blocks, sum(size) AS sum_size FROM allocations'));
        const cell = page.getByRole('region', { name: 'Cell 1' });
        const [told] = query(file, 'SELECT count(*) AS blocks, sum(size) AS sum_size FROM allocations');
        const shown = await cell.getByRole('gridcell').allInnerTexts();
        assert.deepEqual(shown, [spell.count(told.blocks), spell.bytes(told.sum_size)]);
        await editor(page).fill('SELEC 1');
        await editor(page).press('Control+Enter');
        await settled(page);
        assert.match(await cell.getByRole('alert').innerText(), /near "SELEC": syntax error/);
        page.complaints.length = 0; // the browser says of each 400 that it was one
        await editor(page).fill('SELECT 6 * 7 AS answer');
        await editor(page).press('Control+Enter');
        await settled(page);
        assert.deepEqual(await cell.getByRole('gridcell').allInnerTexts(), ['42']);
        await page.goto(server.origin + '/sql');
        await settled(page);
        assert.equal(await editor(page).inputValue(), 'SELECT 6 * 7 AS answer');
    });

    await t.test('Escape ends a question, and the server is free at once', async (t) => {
        const page = await open(t, server, 'sql');
        await editor(page).fill('WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n');
        await editor(page).press('Control+Enter');
        await page.getByRole('button', { name: /^Cancel/ }).first().waitFor();
        await editor(page).press('Escape');
        await page.getByText('cancelled').waitFor();
        const began = performance.now();
        const answer = await server.fetch('/r/1/query', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"sql": "SELECT 1"}' });
        assert.equal(answer.status, 200);
        await answer.arrayBuffer();
        assert.ok(performance.now() - began < 5000);
    });

    await t.test('draws five charts', async (t) => {
        const page = await open(t, server, 'sql?sql=' + encodeURIComponent('SELECT size, lifetime FROM allocations WHERE freed IS NOT NULL LIMIT 5000'));
        const cell = page.getByRole('region', { name: 'Cell 1' });
        for (const [name, drawn] of [['Line', 'canvas'], ['Bars', 'table'], ['Histogram', 'table'], ['Scatter', 'svg path'], ['Heat map', 'canvas']]) {
            await cell.getByRole('button', { name }).click();
            await settled(page);
            await cell.locator(`.note-answer ${drawn}`).first().waitFor();
        }
        await cell.getByRole('button', { name: 'Histogram' }).click();
        const counts = await cell.getByRole('row').evaluateAll((rows) => rows.map((row) => Number((row.children[2]?.textContent ?? '').replaceAll(',', ''))));
        assert.equal(counts.filter(Number.isFinite).reduce((sum, one) => sum + one, 0), 5000);
    });
});

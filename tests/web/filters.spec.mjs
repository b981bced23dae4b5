// SPDX-License-Identifier: MIT
// filters.spec.mjs: each filter as a chip: typed into the field it stands there with its value, in the address and in the
// command, selects what SQL over all allocations, which knows nothing of filters, counts, and is gone when it is closed.
// The values that a file has are offered; a wrong one is refused in the command's words.
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, test } from 'node:test';
import { build, cli, closeChrome, newsdesk, open, query, recording, report, serve, settled, spell } from './harness.mjs';

const file = recording('busy', [path.join(build, 'tests', 'web', 'busy'), '3', '3', '3000'], '--free-stacks', '--precise');
after(closeChrome);

/* ---- What there is to choose from ---- */

const one = (sql) => Object.values(query(file, sql)[0])[0];
const middle = (column) => one(`SELECT ${column} FROM allocations WHERE class = 'heap' AND ${column} IS NOT NULL ORDER BY ${column}
    LIMIT 1 OFFSET (SELECT count(${column}) / 2 FROM allocations WHERE class = 'heap')`);
const end = one('SELECT duration FROM summary');
const half = Math.floor(end / 2);
const byContext = (condition) => `context IN (SELECT id FROM contexts WHERE ${condition})`;
const byFrame = (condition) => `context IN (SELECT context FROM frames WHERE ${condition})`;
/* Chains by what is known of them at their end. */
const CHAINS = `SELECT chain, min(born) AS begins, max(coalesce(freed, ${end})) AS ends, sum(freed IS NULL) AS live FROM allocations WHERE class = 'heap' GROUP BY chain`;
const byChain = (condition) => `chain IN (SELECT chain FROM (${CHAINS}) WHERE ${condition})`;
/* Of a row that has the only max() of a group the other columns are those of that row, in SQLite. */
const LAST = "SELECT chain, size AS last, max(chain_length) AS length FROM allocations WHERE class = 'heap' GROUP BY chain";
const byLast = (condition) => `chain IN (SELECT chain FROM (${LAST}) WHERE ${condition})`;
const GROUPS = "SELECT context, max(born) - min(born) AS took FROM allocations WHERE class = 'heap' GROUP BY context";
const path_ = one("SELECT hash FROM contexts WHERE function = 'alpha' ORDER BY allocations DESC LIMIT 1");
const freedPath = one(`SELECT path_hash(freed_context) FROM allocations WHERE freed_context IS NOT NULL GROUP BY freed_context ORDER BY count(*) DESC LIMIT 1`);
const address = one("SELECT address FROM allocations WHERE class = 'heap' ORDER BY size DESC LIMIT 1");
const hex = (number) => `0x${number.toString(16)}`;

/* Each filter: a value, and in SQL what is left: of blocks of the heap, if that does not say otherwise. undefined: SQL has no
   words for it (scopes of threads, moments of maxima): the command is asked. */
const CASES = {
    function: ['^alpha$', byFrame("function = 'alpha'")],
    'not-function': ['^alpha$', `NOT ${byFrame("function = 'alpha'")}`],
    file: ['busy\\.c$', byFrame("file LIKE '%busy.c'")],
    'not-file': ['busy\\.c$', `NOT ${byFrame("file LIKE '%busy.c'")}`],
    module: ['/busy$', byFrame("module LIKE '%/busy'")],
    'not-module': ['/libc\\.so', `NOT ${byFrame("module LIKE '%/libc.so%'")}`],
    path: [path_, byContext(`hash = '${path_}'`)],
    'path-depth': ['..6', undefined],
    class: ['pool', "class = 'pool'"],
    pool: ['arena', "pool = 'arena'"],
    'group-allocations': ['..400', byContext('allocations <= 400')],
    'group-bytes': ['500K..', byContext('total_bytes >= 512000')],
    'group-live-blocks': ['2%..', byContext('live_blocks * 100 >= allocations * 2')],
    'group-live-bytes': ['1K..', byContext('live_bytes >= 1024')],
    'group-interval': [`..${Math.floor(end * 0.9)}ns`, `context IN (SELECT context FROM (${GROUPS}) WHERE took <= ${Math.floor(end * 0.9)})`],
    'group-maximum-at': ['50%..', undefined],
    size: ['1K..4K', 'size BETWEEN 1024 AND 4096'],
    lifetime: [`..${middle('lifetime')}ns`, `coalesce(lifetime, ${end} - born) <= ${middle('lifetime')}`],
    allocated: [`${half}ns..`, `born >= ${half}`],
    freed: [`..${half}ns`, `freed < ${half}`],
    'live-at': [`${half}ns`, `born < ${half} AND coalesce(freed, ${end} + 1) >= ${half}`],
    thread: ['main', "thread IN (SELECT id FROM threads WHERE name = 'main')"],
    'freed-by': ['3', 'freed_by = 3'],
    'freed-path': [freedPath, `path_hash(freed_context) = '${freedPath}'`],
    mapped: ['', 'mapped = 1'],
    arena: ['other', 'arena = 1'],
    scope: ['parse', undefined],
    address: [`${hex(address)}..${hex(address + 99999)}`, `address < ${address} + 100000 AND address + max(size, 1) > ${address}`],
    leaked: ['', 'freed IS NULL'],
    temporary: ['', 'temporary = 1'],
    'freed-by-others': ['', 'freed_by <> thread'],
    'first-size': ['..1000', 'first_size <= 1000'],
    'last-size': ['4K..', byLast('last >= 4096')],
    'chain-length': ['3..', byLast('length >= 3')],
    'chain-position': ['2', 'chain_length = 2'],
    'chain-leaked': ['', byChain('live > 0')],
    'chain-lifetime': [`${Math.floor(end / 4)}ns..`, byChain(`ends - begins >= ${Math.floor(end / 4)}`)],
    where: ['size % 16 = 8 AND thread > 2', 'size % 16 = 8 AND thread > 2'],
};
/* Windows of time: views.spec.mjs. */
const WINDOWS = ['from', 'to', 'at', 'between'];
/* Of a recording that ran long enough for the kernel to be asked about its mappings: the last test. */
const MAPPINGS = { 'mapping-permissions': '..x', 'mapping-peak-rss': '1M..', mapping: '7' };
/* JSON tells pools apart from the heap, whatever is chosen. */
const allocationsOf = (told) => (told.allocations > 0 ? told.allocations : told.pools.reduce((sum, pool) => sum + pool.allocations, 0));
const asOptions = (name, value) => (value === '' ? [`--${name}`] : [`--${name}`, value]);

/* ---- The page ---- */

const field = (page) => page.getByRole('combobox', { name: 'Add a filter' });
const allocations = async (page) => Number(/\n([\d,]+)\n/.exec(await page.getByRole('link', { name: /^Allocations / }).innerText())[1].replaceAll(',', ''));
const commandOf = (page) => page.getByRole('textbox', { name: 'The command that shows this view' }).innerText();
const chip = (page, name, value) => page.getByRole('button', { name: `Remove the filter ${name} ${value}`.trim(), exact: true });
const query_ = (page) => new URL(page.url()).searchParams;

async function add(page, text) {
    await field(page).fill(text);
    await field(page).press('Enter');
}

test('each filter as a chip', async (t) => {
    const server = await serve(t, file);
    const page = await open(t, server);
    const all = await allocations(page);
    assert.equal(all, report(file).allocations);

    await t.test('all that are offered have a case', async () => {
        await field(page).click();
        const names = await page.getByRole('listbox', { name: 'Filters' }).getByRole('option').locator('.offer-name').allInnerTexts();
        assert.deepEqual(names.filter((name) => !WINDOWS.includes(name)).sort(), [...Object.keys(CASES), ...Object.keys(MAPPINGS)].sort());
        await field(page).press('Escape');
    });

    const telling = [];
    for (const [name, [value, sql]] of Object.entries(CASES)) {
        await t.test(`${name} ${value}`.trim(), async () => {
            const told = allocationsOf(report(file, ...asOptions(name, value)));
            const counted = sql === undefined ? told
                : one(`SELECT count(*) FROM allocations WHERE ${/class = |pool = /.test(sql) ? '' : "class = 'heap' AND "}${sql}`);
            assert.equal(told, counted, 'the command and SQL');
            await add(page, value === '' ? name : `${name}:${value}`);
            await chip(page, name, value).waitFor();
            await settled(page);
            const words = await page.locator('.chip-text').innerText();
            assert.ok(words.includes(name) && words.includes(value), words);
            assert.equal(query_(page).get(name), value);
            assert.equal(counted === 0 ? 0 : await allocations(page), counted);
            if (counted === 0) {
                assert.match(await page.getByRole('heading', { level: 1 }).innerText(), /Nothing of busy is selected/);
            }
            const command = await commandOf(page);
            assert.ok(command.includes(`--${name}`), command);
            if (counted > 0 && counted < all) {
                telling.push(name);
            }
            await chip(page, name, value).click();
            await settled(page);
            assert.equal(query_(page).has(name), false);
            assert.equal(await allocations(page), all);
        });
    }
    // All of it is of one file and library, and no block is so large that it is mapped.
    assert.deepEqual(Object.keys(CASES).filter((name) => !telling.includes(name)), ['file', 'not-file', 'module', 'not-module', 'mapped']);
});

test('chips together', async (t) => {
    const server = await serve(t, file);
    const page = await open(t, server, 'paths?metric=allocations');
    const heading = () => page.getByRole('grid', { name: 'Call paths' });

    await t.test('hold all at once, and Back undoes them one by one', async () => {
        await add(page, 'arena:other');
        await chip(page, 'arena', 'other').waitFor();
        await settled(page);
        await add(page, 'size:1K..');
        await chip(page, 'size', '1K..').waitFor();
        await settled(page);
        const rows = JSON.parse(cli('report', '--json', '--arena', 'other', '--size', '1K..', file));
        assert.equal(await heading().getAttribute('aria-rowcount'), String(rows.contexts.filter((one_) => one_.allocations > 0).length + 1));
        await page.goBack();
        await chip(page, 'size', '1K..').waitFor({ state: 'detached' });
        await chip(page, 'arena', 'other').waitFor();
        await page.goForward();
        await chip(page, 'size', '1K..').waitFor();
        await settled(page);
    });

    await t.test('are changed where they stand', async () => {
        await page.locator('.chip-text').filter({ hasText: '1K..' }).click();
        const value = page.getByRole('textbox', { name: 'Value of size' });
        await value.fill('nonsense');
        await value.press('Enter');
        assert.match(await page.getByRole('alert').innerText(), /nonsense/);
        page.complaints.length = 0; // the browser says of each 400 that it was one
        await value.fill('4K..');
        await value.press('Enter');
        await chip(page, 'size', '4K..').waitFor();
        await settled(page);
        assert.deepEqual(query_(page).getAll('size'), ['4K..']);
    });

    await t.test('are cleared at once', async () => {
        await page.getByRole('button', { name: 'Clear all' }).click();
        await settled(page);
        assert.equal(await page.locator('.chip-text').count(), 0);
    });

    await t.test('are refused in the command\'s words', async () => {
        for (const [name, value] of [['mapping-permissions', 'rq'], ['mapping-peak-rss', 'much'], ['group-live-blocks', '200%..'],
            ['where', 'colour = 1'], ['arena', 'third'], ['freed-path', 'xyz'], ['mapping', '999999']]) {
            let sentence = '';
            try {
                cli('report', ...asOptions(name, value), file);
            } catch (error) {
                sentence = String(error.stderr).replace(/^memtrace: /, '').split('\n')[0].replace(/ \(try: .*/, '');
            }
            assert.notEqual(sentence, '', `${name} ${value} is not refused`);
            await add(page, `${name}:${value}`);
            assert.equal(await page.getByRole('alert').innerText(), sentence);
            assert.equal(query_(page).has(name), false);
        }
        page.complaints.length = 0;
        await field(page).press('Escape');
    });
});

test('values that the file has are offered', async (t) => {
    const server = await serve(t, file);
    const page = await open(t, server);
    const option = (text) => page.getByRole('option').filter({ hasText: text }).first();
    for (const [typed, offered] of [['thread:', 'main'], ['scope:', 'parse'],
        ['pool:', 'arena'], ['arena:', 'other'], ['path:', 'alpha'], ['freed-path:', freedPath], ['function:gam', '^gamma_deep$'], ['from:', 'mark:early']]) {
        await field(page).fill(typed);
        await option(offered).waitFor();
    }
    await field(page).fill('arena:');
    await option('other').click();
    await chip(page, 'arena', 'other').waitFor();
    await settled(page);
});

test('chips of mappings choose mappings, and the blocks in them', async (t) => {
    const data = path.join(process.env.WEB_TESTS, 'data', 'shop.mtr');
    const server = await serve(t, data);
    const page = await open(t, server, 'mappings');
    const grid = page.getByRole('grid', { name: 'Mappings' });
    for (const [name, value] of Object.entries(MAPPINGS)) {
        await add(page, `${name}:${value}`);
        await chip(page, name, value).waitFor();
        await settled(page);
        const { rows } = JSON.parse(cli('report', '--json', '--show-mappings', '--limit', '0', ...asOptions(name, value), data)).reports
            .find((part) => part.name === 'each-mapping');
        const shown = await grid.getByRole('row').evaluateAll((all) => all.slice(1).map((row) => row.innerText));
        assert.ok(rows.length > 0 && shown.length > 0);
        assert.equal(Number(await grid.getAttribute('aria-rowcount')), rows.length + 1);
        for (const row of rows.slice(0, 5)) {
            assert.ok(shown.some((text) => text.includes(spell.bytes(row.peak_resident_bytes)) && text.includes(row.permissions)), `${row.path}: ${shown.join('\n')}`);
        }
        await page.getByRole('link', { name: 'Summary', exact: true }).click();
        await settled(page);
        const { allocations: told } = report(data, ...asOptions(name, value));
        assert.equal(told === 0 ? 0 : await allocations(page), told);
        await chip(page, name, value).click();
        await page.getByRole('link', { name: 'Mappings', exact: true }).click();
        await settled(page);
    }
    for (const [typed, offered] of [['mapping-permissions:', 'rw-p'], ['mapping:', 'libc.so.6']]) {
        await field(page).fill(typed);
        await page.getByRole('option').filter({ hasText: offered }).first().waitFor();
    }
});

test('a profile offers filters of call paths alone', async (t) => {
    const profile = path.join(process.env.WEB_TESTS, 'data', 'index.mtp');
    const server = await serve(t, profile, newsdesk());
    const page = await open(t, server);
    await field(page).click();
    const names = await page.getByRole('listbox', { name: 'Filters' }).getByRole('option').locator('.offer-name').allInnerTexts();
    assert.ok(names.includes('function') && names.includes('group-live-blocks') && !names.includes('size') && !names.includes('mapping-permissions'), names.join());
});

// SPDX-License-Identifier: MIT
// keys.spec.mjs: each key that the help lists in a view does something there, none is listed twice, what has the focus
// is to be seen, and Escape closes what opened.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { closeChrome, open, scratch, serve, settled, VIEW_IDS } from './harness.mjs';

/* One file for all: the copy is another one's neighbour, so that there is something to compare with. */
const data = path.join(process.env.WEB_TESTS, 'data');
const file = path.join(scratch, `keys.${process.pid}.mtr`);
fs.copyFileSync(path.join(data, 'day.mtr'), file);

/* Where each key has something to do: a window between marks, a function that is chosen. */
const BASE = `metric=allocations&from=10%25&to=mark:evening&chosen=${encodeURIComponent('function:main')}`;
const MORE = {
    flame: 'search=basic_string', tree: 'search=basic_string', sandwich: 'focus=main', source: 'line=161', compare: 'base=1&base-to=50%25',
};
const addressOf = (view) => `${view}?${BASE}&${MORE[view] ?? ''}`;
const tree = (page, name) => page.getByRole('tree', { name });
/* What is done first: the keys of a graph or tree are about the call that is chosen in it. */
const PREPARE = {
    async flame(page) {
        await tree(page, 'Flame graph').click({ position: { x: 12, y: 110 } });
    },
    async tree(page) {
        await page.getByRole('treegrid', { name: 'Call tree' }).getByRole('row').nth(3).click();
        await page.getByRole('treegrid', { name: 'Call tree' }).focus();
    },
};
/* Keys that a view lists and that do nothing as it is here, with the reason. */
const IDLE = {
    flame: ['Left'], // no call is left of the chosen one
    sandwich: ['4', 's'], source: ['7', 'o'], // the view itself
    sql: ['Escape'], // no question runs
};
/* Keys that every view has: each is tried in every third view, in another third than its neighbours. */
const COMMON = ['Views', 'Timeline', 'Everywhere', 'Filters'];
const CODES = { Ctrl: 'Control', Left: 'ArrowLeft', Right: 'ArrowRight', Up: 'ArrowUp', Down: 'ArrowDown' };
const codeOf = (listed) => listed.split(' ').map((part) => CODES[part] ?? part).join('+');

/** [[title, [key...]]...] by group, as the help says. */
const listed = (page) => page.evaluate(() => Object.fromEntries([...document.querySelectorAll('.help-keys section')].map((section) => [
    section.querySelector('h3').textContent,
    [...section.querySelectorAll('dl > div')].map((line) => [line.querySelector('dt').textContent, line.querySelector('dd').textContent.split(', ')]),
])));

/** All that a key could change. What is copied, and not that it is said: that may still stand there of the key before. */
const state = (page) => page.evaluate(async () => JSON.stringify([location.href, document.activeElement?.outerHTML.slice(0, 300),
    [...document.querySelectorAll('dialog[open], [role=status]:not(.said), [role=treeitem], [aria-selected=true], [aria-checked=true]')].map((one) => one.textContent),
    document.querySelector('main')?.innerText, document.querySelectorAll('textarea').length, await navigator.clipboard.readText()]));

/** Whether it becomes another one: what is copied is there a moment later. */
async function changes(page, before) {
    for (let tries = 0; tries < 20; tries++) {
        await settled(page);
        if (await state(page) !== before) {
            return true;
        }
        await new Promise((resolve) => { setTimeout(resolve, 50); });
    }
    return false;
}

/** As if the address had just been opened, without reading the page anew. */
async function show(page, server, address) {
    await page.evaluate(async (to) => {
        await navigator.clipboard.writeText('nothing was copied');
        document.querySelector('dialog[open]')?.dispatchEvent(new Event('cancel'));
        document.activeElement?.blur();
        history.pushState(null, '', to);
        dispatchEvent(new PopStateEvent('popstate'));
    }, `${server.origin}/${address}`);
    await settled(page);
    // A view that asks nothing is spelled a moment later; until then there is no command to copy.
    await page.waitForFunction(() => document.querySelector('.command')?.textContent || document.querySelector('.no-command'));
}

after(closeChrome);
after(() => fs.rmSync(file, { force: true }));

test('each key that is listed works', async (t) => {
    const server = await serve(t, file, path.join(data, 'shop.mtr'));
    const page = await open(t, server, 'summary');
    for (const view of VIEW_IDS) {
        await t.test(view, async () => {
            await show(page, server, addressOf(view));
            await page.keyboard.press('?');
            await page.getByRole('dialog', { name: 'Help' }).waitFor();
            const groups = await listed(page);
            await page.keyboard.press('Escape');
            await page.getByRole('dialog').waitFor({ state: 'detached' });
            // Those of what has the focus: below.
            const { Tables, Charts, ...own } = groups;
            assert.ok(Tables.length > 0 && Charts.length > 0);
            own.Timeline = own.Timeline.filter(([title]) => !/^(Window, from|A second window)/.test(title));
            const keysOf = (lines) => lines.flatMap(([, some]) => some);
            const keys = keysOf(Object.values(own).flat());
            const common = keysOf(COMMON.flatMap((group) => own[group] ?? []));
            const once = keys.filter((key) => key !== 'Escape');
            assert.deepEqual(once.filter((key, index) => once.indexOf(key) !== index), [], 'listed twice');
            const dead = [];
            const place = VIEW_IDS.indexOf(view);
            const idle = [...(IDLE[view] ?? []), String(place + 1), ...common.filter((key, index) => index % 3 !== place % 3)];
            for (const key of new Set(keys)) {
                if (idle.includes(key)) {
                    continue;
                }
                if (key === 'Backspace') {
                    await show(page, server, 'files?from=3%25');
                }
                await show(page, server, addressOf(view));
                await PREPARE[view]?.(page);
                await settled(page);
                const before = await state(page);
                await page.keyboard.press(codeOf(key));
                if (!await changes(page, before)) {
                    dead.push(key);
                }
                if (await page.getByRole('dialog').count() > 0) {
                    await page.keyboard.press('Escape');
                    await page.getByRole('dialog').waitFor({ state: 'detached' });
                }
            }
            assert.deepEqual(dead, [], 'keys that do nothing');
        });
    }
});

test('the keys of tables, charts and of the timeline', async (t) => {
    const server = await serve(t, file);
    const page = await open(t, server, 'functions?metric=allocations');
    const grid = page.getByRole('grid', { name: 'Functions' });
    await grid.focus();
    for (const key of ['ArrowDown', 'ArrowRight', 'ArrowUp', 'ArrowLeft']) {
        const before = await grid.getAttribute('aria-activedescendant');
        await page.keyboard.press(key);
        assert.notEqual(await grid.getAttribute('aria-activedescendant'), before, key);
    }
    await page.keyboard.press('Control+c');
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /\t/);
    await page.keyboard.press('Enter');
    await settled(page);
    assert.match(page.url(), /\/sandwich\?/);
    const edge = page.getByRole('slider', { name: 'Window ends' });
    await edge.focus();
    for (const key of ['ArrowLeft', 'ArrowRight', 'Home', 'End']) {
        const before = await edge.getAttribute('aria-valuenow');
        await page.keyboard.press(key);
        await page.waitForFunction(([now]) => document.querySelectorAll('[role=slider][aria-label="Window ends"]')[0].getAttribute('aria-valuenow') !== now, [before]);
    }
});

test('what has the focus is to be seen', async (t) => {
    const server = await serve(t, file);
    const page = await open(t, server, 'paths?metric=allocations');
    const seen = new Set();
    for (let i = 0; i < 60; i++) {
        await page.keyboard.press('Tab');
        const [name, isShown] = await page.evaluate(() => {
            const element = document.activeElement;
            const style = getComputedStyle(element);
            const isShown = (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== 'none';
            return [element.getAttribute('aria-label') ?? element.textContent.slice(0, 40), element === document.body || isShown];
        });
        seen.add(name);
        assert.ok(isShown, `the focus on ${name} is not to be seen`);
    }
    assert.ok(seen.size > 25, [...seen].join());
});

test('Escape closes what opened', async (t) => {
    const server = await serve(t, file);
    const page = await open(t, server, `paths?${BASE}`);
    for (const [key, name] of [['?', 'Help'], ['Control+k', /^Search actions/]]) {
        await page.keyboard.press(key);
        await page.getByRole('dialog', { name }).waitFor();
        await page.keyboard.press('Escape');
        await page.getByRole('dialog').waitFor({ state: 'detached' });
    }
    await page.getByRole('button', { name: 'Settings' }).click();
    await page.getByText('Kept in this browser').waitFor();
    await page.keyboard.press('Escape');
    await page.getByText('Kept in this browser').waitFor({ state: 'detached' });
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press('Escape');
    await settled(page);
    assert.ok(!page.url().includes('chosen='), page.url());
});

test('what is said stays for its own time, not for that of what was said before', async (t) => {
    const server = await serve(t, file);
    const page = await open(t, server, 'paths');
    const says = (text) => page.waitForFunction((wanted) => document.querySelector('.said').textContent === wanted, text);
    await page.clock.install();
    await page.clock.pauseAt(Date.now() + 1000);
    await page.keyboard.press('l');
    await says('Link copied');
    await page.clock.runFor(2000);
    await page.keyboard.press('y');
    await says('Command copied');
    await page.clock.runFor(2000);
    assert.equal(await page.locator('.said').textContent(), 'Command copied');
    await page.clock.runFor(1000);
    await says('');
});

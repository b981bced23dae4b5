// SPDX-License-Identifier: MIT
// a11y.spec.mjs: each view by the rules of axe-core: light, dark, at 200 %, in forced colours; the flame graph as a tree
// to screen readers; and no motion where none is wanted.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import { after, test } from 'node:test';
import { closeChrome, newsdesk, open, serve, settled, spell, report, VIEW_IDS } from './harness.mjs';

const axe = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const LOOKS = {
    light: { colorScheme: 'light' },
    dark: { colorScheme: 'dark' },
    'at 200 %': { colorScheme: 'light', viewport: { width: 700, height: 450 }, deviceScaleFactor: 2 },
    'forced colours': { colorScheme: 'dark', forcedColors: 'active' },
};
/* Beside the bare view: what opens over it or beside it. */
const MORE = ['flame?metric=leaked&chosen=function:main', 'blocks?chosen=block:1', 'compare?base=1&base-to=mark:evening'];

after(closeChrome);

/** What axe finds wrong, a line each. */
async function violations(page) {
    const { violations: found } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
    return found.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => `${node.target.join(' ')} (${(node.any[0] ?? node.all[0] ?? node.none[0])?.message ?? ''})`).join('; ')}`);
}

for (const [name, look] of Object.entries(LOOKS)) {
    test(name, async (t) => {
        const server = await serve(t, newsdesk());
        const page = await open(t, server, '', { ...look, bypassCSP: true });
        for (const view of [...VIEW_IDS, ...MORE]) {
            await t.test(view, async () => {
                await page.goto(`${server.origin}/${view}`);
                await settled(page);
                await page.evaluate(axe);
                assert.deepEqual(await violations(page), []);
            });
        }
    });
}

test('the flame graph is a tree', async (t) => {
    const file = newsdesk();
    const told = report(file);
    const server = await serve(t, file);
    const page = await open(t, server, 'flame?metric=allocations');
    const session = await page.context().newCDPSession(page);
    /** Role, name and properties as assistive technology gets them. */
    const focused = async () => {
        const { nodes } = await session.send('Accessibility.getFullAXTree');
        const items = nodes.filter(({ role }) => role?.value === 'treeitem');
        assert.equal(items.length, 1, 'one item, the one that is read');
        const [item] = items;
        const properties = Object.fromEntries(item.properties.map((one) => [one.name, one.value.value]));
        return { name: item.name.value, ...properties };
    };
    await page.getByRole('treeitem').focus();
    const root = await focused();
    assert.equal(root.focused, true);
    assert.equal(root.level, 1);
    assert.match(root.name, new RegExp(`^everything, ${spell.count(told.allocations)}, 100.0%`));
    await page.keyboard.press('ArrowDown');
    await settled(page);
    const main = await focused();
    assert.equal(main.level, 2);
    assert.equal(main.focused, true);
    const through = told.contexts.filter(({ frames }) => frames.some((one) => one.function === 'main')).reduce((sum, one) => sum + one.allocations, 0);
    assert.match(main.name, new RegExp(`^main, ${spell.count(through)}, ${spell.share(through, told.allocations)}`));
    const item = page.getByRole('treeitem');
    assert.equal(await item.getAttribute('aria-posinset'), '1');
    const siblings = Number(await item.getAttribute('aria-setsize'));
    assert.ok(siblings >= 1);
    if (siblings > 1) {
        await page.keyboard.press('ArrowRight');
        await settled(page);
        assert.equal(await item.getAttribute('aria-posinset'), '2');
    }
});

test('no motion where none is wanted', async (t) => {
    const server = await serve(t, newsdesk());
    const page = await open(t, server, 'flame', { reducedMotion: 'reduce' });
    for (const view of VIEW_IDS) {
        await page.goto(`${server.origin}/${view}`);
        await settled(page);
        const moving = await page.evaluate(() => [...document.querySelectorAll('*')].filter((element) => {
            const style = getComputedStyle(element);
            const longest = (text) => Math.max(...text.split(',').map(parseFloat));
            return longest(style.transitionDuration) > 0.01 || (style.animationName !== 'none' && longest(style.animationDuration) > 0.01);
        }).map((element) => element.className || element.tagName));
        assert.deepEqual(moving, [], view);
    }
});

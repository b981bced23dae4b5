// SPDX-License-Identifier: MIT
// requests.spec.mjs: what the page's speed hangs on, by counts and never by times: over how many connections it asks, what is
// shown before the page's script is there, what is asked while the window is dragged, and that nothing is shown to be on its way
// then which is not.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { chrome, closeChrome, newsdesk, open, serve, settled } from './harness.mjs';

after(closeChrome);

/* Browsers have so many connections to a server at most. */
const CONNECTIONS = 6;

test('connections are kept', async (t) => {
    const server = await serve(t, newsdesk());
    const page = await open(t, server);
    const session = await page.context().newCDPSession(page);
    const connections = new Map();
    session.on('Network.responseReceived', ({ response }) => {
        connections.set(response.connectionId, (connections.get(response.connectionId) ?? 0) + 1);
    });
    await session.send('Network.enable');
    for (const view of ['flame', 'tree', 'functions', 'paths', 'threads', 'summary']) {
        for (const metric of ['maximum', 'leaked', 'allocations']) {
            await page.evaluate((address) => {
                history.pushState(null, '', address);
                dispatchEvent(new PopStateEvent('popstate'));
            }, `/${view}?metric=${metric}`);
            await page.waitForTimeout(50);
            await settled(page);
        }
    }
    const answers = [...connections.values()].reduce((sum, one) => sum + one, 0);
    assert.ok(answers >= 12, `${answers} answers`);
    assert.ok(connections.size <= CONNECTIONS, `${answers} answers over ${connections.size} connections`);
});

test('before the page is there', async (t) => {
    const server = await serve(t, newsdesk());
    const context = await (await chrome()).newContext();
    t.after(() => context.close());
    const page = await context.newPage();
    page.setDefaultTimeout(120000);
    let sessions = 0, done = 25, isOpening = true, begin;
    const mayBegin = new Promise((resolve) => { begin = resolve; });
    await page.route('**/app-*.js', async (route) => {
        await mayBegin;
        await route.continue();
    });
    await page.route('**/api/v1/session', async (route) => {
        sessions++;
        const answer = await route.fetch();
        const told = await answer.json();
        if (isOpening) {
            Object.assign(told.sources[0], { state: 'opening', what: 'events', done: done++, total: 100 });
        }
        await route.fulfill({ json: told });
    });
    await page.goto(`${server.origin}/flame#${server.address.hash.slice(1)}`);
    await page.waitForSelector('.opening progress[max="100"]');
    await page.waitForFunction(() => document.querySelector('.opening progress').value > 26);
    assert.match(await page.locator('.opening').innerText(), /newsdesk\.mtr\s+events\s+\d\d\.0%/);
    assert.equal(await page.evaluate(() => location.hash), '', 'the token is out of the address');
    isOpening = false;
    begin();
    await page.waitForSelector('.flame canvas');
    assert.equal(await page.locator('.opening').count(), 0);

    // What is open is asked once: the page takes over what was answered.
    sessions = 0;
    await page.reload();
    await page.waitForSelector('.flame canvas');
    await settled(page);
    assert.equal(sessions, 1, 'questions about the session');
});

test('while the window is dragged', async (t) => {
    const server = await serve(t, newsdesk());
    const page = await open(t, server, 'summary');
    const asked = [];
    page.on('request', (request) => {
        const found = /\/api\/v1(\/r\/1[^?]*)\?(.*)/.exec(request.url());
        if (found !== null) {
            asked.push({ path: found[1], query: new URLSearchParams(found[2]) });
        }
    });
    const box = await page.locator('.brush').boundingBox();
    const at = (share) => [box.x + 2 + share * (box.width - 4), box.y + 30];
    await page.mouse.move(...at(0.2));
    await page.mouse.down();
    await page.mouse.move(...at(0.8));
    await page.locator('.findings.stale').waitFor();
    await settled(page);
    // A bar would come after a moment: nothing may be waited for, so that is looked for in each frame of it.
    const bars = await page.evaluate(() => new Promise((resolve) => {
        let frames = 0, seen = 0;
        const look = () => {
            seen += document.querySelectorAll('.findings .waiting').length;
            if (++frames < 30) requestAnimationFrame(look);
            else resolve(seen);
        };
        requestAnimationFrame(look);
    }));
    assert.equal(bars, 0, 'bars of findings that nobody has asked yet');
    const snapped = asked.filter(({ query }) => query.has('snap'));
    assert.deepEqual(snapped.map(({ path }) => path).sort(), ['/r/1', '/r/1/paths']);
    assert.ok(!asked.some(({ path }) => path === '/r/1/findings'), 'findings are asked when it is let go');
    await page.mouse.up();
    await settled(page);
    assert.equal(await page.locator('.findings.stale').count(), 0);
    assert.ok(asked.some(({ path, query }) => path === '/r/1/findings' && !query.has('snap')));
});

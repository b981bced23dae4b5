// SPDX-License-Identifier: MIT
// security.spec.mjs: in a real browser: names that are scripts stay text, pages of others see nothing, the token leaves
// the address, and nothing is written. (access.py has the same of the server alone.)
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import { after, test } from 'node:test';
import { chromium } from 'playwright-core';
import { chrome, closeChrome, flags, newsdesk, open, scriptNames, serve, settled, VIEW_IDS } from './harness.mjs';

after(closeChrome);

test('a recording whose names are scripts', async (t) => {
    const server = await serve(t, scriptNames());
    // open() fails the test if the page complains (a policy, an exception), asks others or opens a dialog.
    const page = await open(t, server);
    const seen = [];
    for (const view of VIEW_IDS) {
        await page.goto(`${server.origin}/${view}?metric=cumulative`);
        await settled(page);
        seen.push(await page.locator('body').innerText());
        const strange = await page.evaluate(() => [...document.querySelectorAll('script:not([src]), img, iframe, object, embed, [onclick], [onload], [onerror], [onmouseover]')].length);
        assert.equal(strange, 0, `${view} has elements that nobody made`);
    }
    // The names were there, as they are.
    const all = seen.join('\n');
    for (const name of ['alert(1)', '</script><script>alert(3)</script>', '</script><b>a;b']) {
        assert.ok(all.includes(name), `${name} is nowhere`);
    }
});

test('the token leaves the address', async (t) => {
    const server = await serve(t, newsdesk());
    assert.ok(server.token.length >= 32);
    const page = await open(t, server);
    assert.ok(!page.url().includes(server.token) && !page.url().includes('#'), page.url());
    const places = await page.evaluate(() => JSON.stringify([document.cookie, document.referrer, history.state,
        performance.getEntriesByType('resource').map((one) => one.name), document.documentElement.outerHTML]));
    assert.ok(!places.includes(server.token), 'the token stands where it should not');
    // A new tab of the same browser needs no token in its address, another browser does.
    const other = await page.context().newPage();
    await other.goto(server.origin + '/flame');
    await settled(other);
    await other.getByRole('tree', { name: 'Flame graph' }).waitFor();
    const stranger = await (await chrome()).newContext();
    t.after(() => stranger.close());
    const alone = await stranger.newPage();
    await alone.goto(server.origin + '/flame');
    await alone.getByRole('alert').waitFor();
    assert.ok(!(await alone.locator('body').innerText()).includes('newsdesk'));
});

/** What a page of another origin gets to see of the server, knowing even its token. */
function spying({ origin, token }) {
    return `<!doctype html><title>other</title><script>
        const got = [];
        const read = async (name, promise) => { try { got.push([name, await promise]); } catch (error) { got.push([name, null]); } };
        const text = async (path, options) => (await fetch('${origin}' + path, options)).text();
        const frame = (path) => new Promise((resolve) => {
            const one = document.createElement('iframe');
            one.src = '${origin}' + path;
            one.onload = () => { try { resolve(one.contentDocument?.body?.innerText ?? null); } catch { resolve(null); } };
            document.body.append(one);
        });
        const script = (path) => new Promise((resolve) => {
            const one = document.createElement('script');
            one.src = '${origin}' + path;
            one.onload = () => resolve('ran');
            one.onerror = () => resolve(null);
            document.head.append(one);
        });
        onload = async () => {
            await read('fetch', text('/api/v1/session'));
            await read('fetch with the token', text('/api/v1/session', { headers: { Authorization: 'Bearer ${token}' } }));
            await read('no-cors', text('/api/v1/session', { mode: 'no-cors' }));
            await read('post', text('/api/v1/r/1/query', { method: 'POST', mode: 'no-cors', body: '{"sql":"SELECT 1"}' }));
            await read('frame', frame('/'));
            await read('script', script('/api/v1/session'));
            document.title = 'done';
            window.got = got;
        };
    </script>`;
}

test('a page of another origin reads nothing', async (t) => {
    const server = await serve(t, newsdesk());
    const stranger = http.createServer((request, response) => {
        response.setHeader('Content-Type', 'text/html');
        response.end(spying(server));
    });
    await new Promise((resolve) => { stranger.listen(0, '127.0.0.1', resolve); });
    t.after(() => stranger.close());
    const context = await (await chrome()).newContext();
    t.after(() => context.close());
    const page = await context.newPage();
    await page.goto(`http://127.0.0.1:${stranger.address().port}/`);
    await page.waitForFunction(() => document.title === 'done');
    for (const [how, what] of await page.evaluate(() => window.got)) {
        assert.ok(what === null || what === '', `${how}: ${what}`);
    }
});

test('DNS rebinding: another name for this address is refused', async (t) => {
    const server = await serve(t, newsdesk());
    const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
        args: [...flags, '--host-resolver-rules=MAP rebound.example 127.0.0.1'] });
    t.after(() => browser.close());
    const page = await browser.newPage();
    const { port } = new URL(server.origin);
    const answer = await page.goto(`http://rebound.example:${port}/`);
    assert.equal(answer.status(), 403);
    assert.ok(!(await answer.text()).includes('newsdesk'));
    const [status, text] = await page.evaluate(async (token) => {
        const got = await fetch('/api/v1/session', { headers: { Authorization: 'Bearer ' + token } });
        return [got.status, await got.text()];
    }, server.token);
    assert.equal(status, 403);
    assert.ok(!text.includes('newsdesk'), text);
});

test('statements that would write are refused', async (t) => {
    const file = newsdesk();
    const digest = () => createHash('sha256').update(fs.readFileSync(file)).digest('hex');
    const before = digest();
    const server = await serve(t, file);
    for (const sql of ["INSERT INTO summary VALUES (1)", "ATTACH '/tmp/written.db' AS other", 'CREATE TABLE x (y)', 'DELETE FROM allocations',
        "SELECT load_extension('x')", "SELECT writefile('/tmp/x', 'y')", 'PRAGMA writable_schema = 1', "VACUUM INTO '/tmp/written.db'"]) {
        const answer = await server.fetch('/r/1/query', { method: 'POST', body: JSON.stringify({ sql }), headers: { 'Content-Type': 'application/json' } });
        const told = await answer.json();
        assert.equal(answer.status, 400, `${sql}: ${JSON.stringify(told)}`);
        assert.ok(told.detail.length > 5 && !told.detail.includes('\n'), told.detail);
    }
    assert.equal(digest(), before);
    // The page says it where the result would stand.
    const page = await open(t, server, 'sql?sql=' + encodeURIComponent('DELETE FROM allocations'));
    await page.getByRole('button', { name: /^Run/ }).first().click();
    await page.locator('main').getByRole('alert').first().waitFor();
    page.complaints.length = 0; // the browser's own line about the status
});

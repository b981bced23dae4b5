// SPDX-License-Identifier: MIT
// offline.spec.mjs: the page needs nobody but its server: all views in a network namespace that has nothing but lo.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { closeChrome, newsdesk, open, serve, settled, VIEW_IDS } from './harness.mjs';

/* A namespace of one's own: as root, or as root of a user namespace. */
const WAYS = [['-n'], ['-r', '-n']];
const inside = process.env.WEB_OFFLINE === '1';
const up = 'ip link set lo up || ifconfig lo up';
const way = inside ? undefined : WAYS.find((one) => spawnSync('unshare', [...one, 'sh', '-c', up]).status === 0);

after(closeChrome);

if (inside) {
    test('all views', async (t) => {
        const others = fs.readFileSync('/proc/net/dev', 'utf8').split('\n').slice(2).map((line) => line.split(':')[0].trim()).filter((one) => one !== '' && one !== 'lo');
        const routes = fs.readFileSync('/proc/net/route', 'utf8').trim().split('\n').slice(1);
        assert.deepEqual(routes, [], `there is a way out: ${others}`);
        const server = await serve(t, newsdesk());
        const page = await open(t, server);
        for (const view of VIEW_IDS) {
            await page.goto(`${server.origin}/${view}`);
            await settled(page);
            assert.ok((await page.locator('main').innerText()).length > 20, view);
        }
    });
} else {
    test('without any network', { skip: way === undefined && 'network namespaces are not allowed here' }, () => {
        newsdesk();
        const { status, stdout } = spawnSync('unshare', [...way, 'sh', '-c', `${up}; exec "$@"`, 'sh', process.execPath, '--test', fileURLToPath(import.meta.url)],
            { encoding: 'utf8', env: { ...process.env, WEB_OFFLINE: '1', NODE_TEST_CONTEXT: undefined } });
        assert.equal(status, 0, stdout);
    });
}

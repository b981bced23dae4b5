// SPDX-License-Identifier: MIT
// pictures.mjs FOLDER: the screenshots of docs/serve.md and README.md, of the tutorial's program. Run by
// scripts/web-pictures.
import fs from 'node:fs';
import path from 'node:path';
import { PNG } from 'pngjs';
import { closeChrome, newsdesk, open, serve, settled } from './harness.mjs';

const folder = process.argv[2];
const compile = 'function=compile_filter';
/* Name of the picture: the view's address, and what is done there before it is taken. */
const PICTURES = {
    summary: ['summary'],
    flame: [`flame?metric=leaked&${compile}`, async (page) => {
        await page.getByRole('tree', { name: 'Flame graph' }).click({ position: { x: 12, y: 110 } });
    }],
    source: [`source?metric=leaked&${compile}`, async (page) => {
        await page.getByRole('row', { name: /new Filter/ }).first().click();
    }],
    blocks: [`blocks?${compile}`, async (page) => {
        await page.getByRole('grid', { name: 'Blocks' }).getByRole('row').nth(4).click();
    }],
    heap: ['heap?at=mark:night'],
    compare: ['compare?metric=leaked&to=mark:evening&base=1&base-to=50%25', undefined, 'dark'],
};

const SHADES = 51;

/* What a test would do at its end. */
const cleanup = [];
const server = await serve({ after: (what) => cleanup.unshift(what) }, newsdesk());
fs.mkdirSync(folder, { recursive: true });
for (const [name, [address, prepare, colorScheme = 'light']] of Object.entries(PICTURES)) {
    const page = await open({ after() {} }, server, address, { colorScheme });
    await prepare?.(page);
    await settled(page);
    await page.mouse.move(0, 0);
    // Packed better than the browser does: without alpha, and with shades of letters' edges that nobody tells apart as one.
    const picture = PNG.sync.read(await page.screenshot());
    picture.data.forEach((value, at) => { picture.data[at] = Math.round(Math.round(value / 255 * SHADES) / SHADES * 255); });
    fs.writeFileSync(path.join(folder, `${name}.png`), PNG.sync.write(picture, { deflateLevel: 9, deflateStrategy: 0, filterType: 0, colorType: 2 }));
    await page.context().close();
}
for (const one of cleanup) {
    await one();
}
await closeChrome();

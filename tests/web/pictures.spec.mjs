// SPDX-License-Identifier: MIT
// pictures.spec.mjs: 30 pictures of the page in both themes (shots.mjs) are those that are kept beside it (pictures/), but
// for 0.1 % of their pixels. After a change that is meant, scripts/web-pictures makes them anew: look at them.
//
// Each version of Chromium draws letters a little otherwise. With another one than the pictures were made with nothing is
// compared, and the test counts as skipped.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { PNG } from 'pngjs';
import { build, closeChrome } from './harness.mjs';
import { compare, kept, keptPicture, MOST_DIFFERENT, otherMachine, packed, shoot, SHOTS, THEMES } from './shots.mjs';

const names = Object.keys(SHOTS).flatMap((name) => THEMES.map((theme) => `${name}-${theme}`));
const failed = path.join(build, 'tests', 'web', 'pictures'); // what differs is written there

after(closeChrome);

test('pictures are those that are kept', async (t) => {
    const why = await otherMachine();
    if (why !== undefined) {
        console.log(`pictures are not compared: ${why}`); // read by ctest
        t.skip(why);
        return;
    }
    fs.rmSync(failed, { recursive: true, force: true });
    fs.mkdirSync(failed, { recursive: true });
    const wrong = [];
    await shoot(t, (name, picture) => {
        const { share, difference } = compare(picture, keptPicture(name));
        if (share > MOST_DIFFERENT) {
            fs.writeFileSync(path.join(failed, `${name}.png`), packed(picture));
            fs.writeFileSync(path.join(failed, `${name}.difference.png`), packed(difference));
            wrong.push(`${name}: ${(100 * share).toFixed(2)} % of the pixels differ, see ${path.join(failed, name)}.difference.png`);
        }
    });
    assert.deepEqual(wrong, []);
});

test('each kept picture is of a view', () => {
    assert.deepEqual(fs.readdirSync(kept).filter((name) => name.endsWith('.png')).sort(), names.map((name) => `${name}.png`).sort());
});

test('a panel that lies one pixel off is noticed', () => {
    const picture = keptPicture('summary-light');
    const moved = new PNG({ width: picture.width, height: picture.height });
    picture.data.copy(moved.data);
    PNG.bitblt(picture, moved, 824, 484, 560, 380, 824, 485); // the findings
    assert.ok(compare(moved, picture).share > MOST_DIFFERENT);
});

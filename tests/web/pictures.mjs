// SPDX-License-Identifier: MIT
// pictures.mjs: takes the pictures of shots.mjs anew: those that pictures.spec.mjs compares (tests/web/pictures), and of
// them those of docs/serve.md and README.md (docs/pictures). Run by scripts/web-pictures. What looks the same stays as it
// is, so that only what changed is committed.
import fs from 'node:fs';
import path from 'node:path';
import { closeChrome } from './harness.mjs';
import { browserVersion, compare, here, kept, keptPicture, MOST_DIFFERENT, packed, shoot } from './shots.mjs';

/* Name in docs/pictures: the picture. */
const DOCS = {
    summary: 'summary-light', timeline: 'window-light', flame: 'flame-leaked-light', sandwich: 'sandwich-light', source: 'source-light',
    blocks: 'blocks-light', lifetimes: 'lifetimes-light', heap: 'heap-light', mappings: 'mappings-light', threads: 'threads-light',
    compare: 'compare-dark', sql: 'sql-light', saved: 'saved-light',
};

const docs = path.join(here, '../../docs/pictures');
const major = (await browserVersion()).split('.')[0];
const note = path.join(kept, 'chromium');
const isSame = fs.existsSync(note) && fs.readFileSync(note, 'utf8').trim() === major;
/* What a test would do at its end. */
const cleanup = [];
fs.mkdirSync(kept, { recursive: true });
await shoot({ after: (what) => cleanup.unshift(what) }, (name, picture) => {
    if (!isSame || compare(picture, keptPicture(name)).share > MOST_DIFFERENT / 10) {
        console.log(`${name} is another one`);
        fs.writeFileSync(path.join(kept, `${name}.png`), packed(picture));
    }
});
fs.writeFileSync(note, `${major}\n`);
for (const [name, of] of Object.entries(DOCS)) {
    fs.copyFileSync(path.join(kept, `${of}.png`), path.join(docs, `${name}.png`));
}
for (const one of cleanup) {
    await one();
}
await closeChrome();

// SPDX-License-Identifier: MIT
// contract.spec.mjs: every endpoint of web/openapi.json, with every filter, answers as the document says;
// what is not in the document is refused.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import Ajv2020 from 'ajv/dist/2020.js';
import { newsdesk, query, report, serve } from './harness.mjs';

const ajv = new Ajv2020({ strict: false, allErrors: true });
let server, document, file, at, thread;

/** Places of the document become real ones: what stands for {n}, {hash}, ... in this recording. */
function place(path) {
    return path.replace(/\{(\w+)\}/g, (_, name) => at[name]);
}

/** What an answer of an operation must be. */
function validator(operation, status = '200') {
    const content = operation.responses[status].content['application/json'];
    return ajv.compile({ ...content.schema, components: document.components });
}

function check(validate, value, what) {
    assert.ok(validate(value), `${what}: ${ajv.errorsText(validate.errors?.slice(0, 5))}`);
}

const needed = { '/r/{r}/callers': 'focus=main', '/r/{r}/search': 'regex=main', '/command': 'view=flame%3Fr%3D1%26metric%3Dleaked' };

test('contract', async (t) => {
    file = newsdesk();
    server = await serve(t, file);
    document = await server.get('/openapi.json');
    const paths = (await server.get('/r/1/paths?limit=1')).data;
    const hash = paths.rows[0][paths.columns.findIndex((column) => column.kind === 'hash')];
    const blocks = (await server.get('/r/1/blocks?limit=1')).data;
    const cell = (name) => blocks.rows[0][blocks.columns.findIndex((column) => column.name === name)];
    at = { r: 1, hash, n: 0, id: cell('id'), format: 'folded' };
    thread = String(cell('thread'));
    needed['/r/{r}/blocks/at'] = `address=${cell('address')}`;
    const reads = Object.entries(document.paths).filter(([path, { get }]) =>
        get?.responses['200'].content['application/json'] !== undefined && path !== '/openapi.json');

    for (const [path, { get }] of reads) {
        await t.test(path, async () => {
            const mappings = path === '/r/{r}/mappings/{id}';
            const real = place(mappings ? path.replace('{id}', '0') : path);
            check(validator(get), await server.get(real + (needed[path] ? '?' + needed[path] : '')), real);
        });
    }

    await t.test('every filter is known to every endpoint that takes filters', async () => {
        const values = { from: '10%', to: '90%', at: '50%', between: 'evening,night', function: 'main', 'not-function': 'x1y',
            file: 'newsdesk', 'not-file': 'x1y', module: 'newsdesk', 'not-module': 'x1y', path: hash, 'path-depth': '1..50',
            class: 'heap', 'group-allocations': '1..', 'group-bytes': '1..', 'group-live-blocks': '0..', 'group-live-bytes': '0..',
            'group-interval': '0s..', 'group-maximum-at': 'start..100%',
            size: '1..', 'first-size': '1..', 'last-size': '1..', 'chain-length': '1..', 'chain-lifetime': '0..', lifetime: '0..',
            allocated: '0s..', freed: '0s..100%', 'live-at': '50%', address: '0x1..', thread, 'freed-by': thread,
            arena: 'main', 'freed-path': hash, 'chain-position': '1..', 'chain-leaked': '1', mapped: '1', where: 'size % 2 = 0' };
        const { properties } = document.components.parameters.filters.schema;
        for (const [name, schema] of Object.entries(properties)) {
            if (['pool', 'scope'].includes(name)) {
                continue; // the program has none: an error of its own, below
            }
            const value = values[name] ?? (schema.enum ? '1' : undefined);
            if (value === undefined) {
                continue; // filters with tests of their own
            }
            const get = document.paths['/r/{r}/functions'].get;
            check(validator(get), await server.get(`/r/1/functions?${name}=${encodeURIComponent(value)}`), name);
        }
    });

    await t.test('what is not known is refused with one line', async () => {
        const problem = ajv.compile({ $ref: '#/components/schemas/Problem', components: document.components });
        for (const [bad, status] of [['/r/1/tree?metrc=leaked', 400], ['/r/1/tree?metric=lost', 400], ['/r/1/tree?size=x', 400],
            ['/r/1/tree?function=%28', 400], ['/r/1/tree?from=mark:nothing', 400], ['/r/1/tree?where=colour', 400], ['/r/1/tree?mapping=999999', 400], ['/r/99/tree', 404], ['/r/1/nothing', 404],
            ['/r/1/paths/0000000000000001', 404], ['/r/1/files/999999', 404], ['/r/1/export/exe', 404], ['/nothing', 404],
            ['/r/1/blocks?sort=nothing', 400], ['/r/1/blocks?limit=0', 400], ['/r/1/blocks?limit=1e9', 400]]) {
            const answer = await server.fetch(bad);
            const text = await answer.text();
            assert.equal(answer.status, status, `${bad}: ${text}`);
            assert.equal(answer.headers.get('content-type').split(';')[0], 'application/problem+json', bad);
            const told = JSON.parse(text);
            check(problem, told, bad);
            assert.ok(told.detail.length > 5 && !told.detail.includes('\n'), `${bad}: ${told.detail}`);
        }
    });

    await t.test('numbers are those of the command line', async () => {
        const { totals } = (await server.get('/r/1')).data;
        const told = report(file);
        const names = { peak_bytes: 'peak_bytes', live_bytes: 'live_bytes', live_blocks: 'live_blocks',
            total_bytes: 'total_bytes', allocations: 'allocations', frees: 'frees', temporary: 'temporary' };
        for (const [name, theirs] of Object.entries(names)) {
            assert.equal(totals[name], told[theirs], name);
        }
        const rows = query(file, 'SELECT count(*) AS n, sum(size) AS bytes FROM allocations WHERE freed IS NULL');
        assert.equal(rows[0].n, totals.live_blocks);
        assert.equal(rows[0].bytes, totals.live_bytes);
    });
});

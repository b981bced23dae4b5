// SPDX-License-Identifier: MIT
// main.ts: the saved page (memtrace export --format html): the same page, answered from the data inside of it.
import { Problem, type Transport, useTransport } from "../api";
import { start } from "../start";
import { answer } from "./answers";
import { Data, type Saved } from "./data";

const none = (): Promise<never> => Promise.reject(new Problem(404, "Not Found", "a saved page does not have this: open the file itself with memtrace serve"));

/* Letters (base64) of deflated JSON. */
async function unpack(letters: string): Promise<Saved> {
    const packed = Uint8Array.from(atob(letters), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    return (await new Response(stream).json()) as Saved;
}

function inside(data: Data): Transport {
    return {
        get: (path) => new Promise((resolve) => resolve(answer(data, path))),
        getBytes: (path) => new Promise((resolve) => {
            const text = JSON.stringify(answer(data, path));
            resolve({ type: "application/json", bytes: new TextEncoder().encode(text).buffer as ArrayBuffer });
        }),
        post: none,
        stream: none,
        save: none,
    };
}

void unpack(document.getElementById("data")?.textContent?.trim() ?? "").then((saved) => {
    useTransport(inside(new Data(saved)));
    start();
});

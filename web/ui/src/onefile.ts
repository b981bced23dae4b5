// SPDX-License-Identifier: MIT
// onefile.ts: boot of a saved page: its data, unpacked, answers instead of a server; then the page as always.
import { useTransport } from "./api";
import { embeddedTransport, unpack } from "./embedded";

async function start(): Promise<void> {
    const block = document.getElementById("data");
    try {
        useTransport(embeddedTransport(await unpack(block?.textContent ?? "")));
        block?.remove();
        await import("./main");
    } catch (error) {
        const page = document.getElementById("page");
        if (page !== null) page.textContent = `The data of this page cannot be read: ${error instanceof Error ? error.message : String(error)}`;
    }
}

void start();

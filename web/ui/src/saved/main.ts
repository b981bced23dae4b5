// SPDX-License-Identifier: MIT
// main.ts: boot of a saved page (memtrace export --format html): its data, unpacked, answers instead of a server; then the
// page as always.
import { useTransport } from "../api";
import { start } from "../start";
import { embeddedTransport, unpack } from "./answers";

async function boot(): Promise<void> {
    const block = document.getElementById("data");
    useTransport(embeddedTransport(await unpack(block?.textContent ?? "")));
    block?.remove(); // the letters would be kept as long as the page
    start();
}

boot().catch((error: unknown) => {
    const page = document.getElementById("page");
    if (page !== null) page.textContent = `The data of this page cannot be read: ${error instanceof Error ? error.message : String(error)}`;
});

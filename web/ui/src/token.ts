// SPDX-License-Identifier: MIT
// token.ts: what shows the server that this page may ask.

const TOKEN = "memtrace-token";

/* The token comes behind the # of the address: servers and logs never see that. It moves to where only this page
 * looks, and out of the address, so that a copied link does not carry it. */
export function takeToken(): void {
    const given = /^#(?:token=)?([0-9a-f]{32,})$/.exec(location.hash);
    if (given === null) return;
    localStorage.setItem(TOKEN, given[1] ?? "");
    history.replaceState(null, "", location.pathname + location.search);
}

export const authorization = (): string => `Bearer ${localStorage.getItem(TOKEN) ?? ""}`;

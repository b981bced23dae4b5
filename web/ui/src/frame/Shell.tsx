// SPDX-License-Identifier: MIT
// Shell.tsx: what stands around each view: header, timeline, filters, tabs, inspector, command.
import { useEffect, useState } from "preact/hooks";
import { href, place } from "../url";
import { VIEWS, viewNamed, type View } from "../views";
import { Empty } from "../components/States";

export function Shell() {
    const entry = viewNamed(place.value.view);
    return (
        <main>
            <nav aria-label="Views">
                {VIEWS.map((view) => <a key={view.id} href={href({ view: view.id })} aria-current={view === entry ? "page" : undefined}>{view.title}</a>)}
            </nav>
            {entry === undefined ? <Empty>There is no view of this name.</Empty> : <ViewBox key={entry.id} id={entry.id} />}
        </main>
    );
}

export function ViewBox({ id }: { id: string }) {
    const [view, setView] = useState<View | null>(null);
    useEffect(() => {
        let wanted = true;
        void viewNamed(id)?.load().then((module) => wanted && setView(module.view));
        return () => void (wanted = false);
    }, [id]);
    return view === null ? null : <view.Component />;
}

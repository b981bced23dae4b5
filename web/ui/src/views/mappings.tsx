// SPDX-License-Identifier: MIT
// views/mappings.tsx: what the process has mapped: resident, dirty and swapped bytes of each mapping, who mapped it, and
// all of them over time. A profile knows only which call paths mapped something.
//
// all: mappings that are gone, too. measure: what the chart shows. chosen: the mapping at the right, with its history.
import { useMemo } from "preact/hooks";
import { useActions } from "../actions";
import { choose, isChosen, ofPaths } from "../chosen";
import { shortModule } from "../components/Cells";
import { Choice } from "../components/Choice";
import { Split } from "../components/Split";
import { layersOf, type Sample, StackChart } from "../components/StackChart";
import { DataTable } from "../components/Table";
import * as format from "../format";
import type { FilterName } from "../openapi";
import { viewChange } from "../links";
import { useQuery } from "../query";
import { cell, rowsOf, numberCell, type Row, textCell, useRows } from "../rows";
import { useWhole } from "../summaries";
import type { Cell, Table } from "../types";
import { filterQuery, flag, go, href, isFile, param } from "../url";

export default function Mappings() {
    const whole = useWhole();
    if (whole.data === undefined) return null;
    return whole.data.has["events"] === false ? <Mappers /> : <OfProcess />;
}

/* ---- Of a recording ---- */

type Measure = "resident_bytes" | "dirty_bytes" | "swap_bytes" | "size";
const MEASURES: readonly (readonly [Measure, string, string])[] = [
    ["resident_bytes", "Resident", "In memory"],
    ["dirty_bytes", "Dirty", "Changed, so that it cannot be read from a file again"],
    ["swap_bytes", "Swap", "Swapped out"],
    ["size", "Address space", "Mapped, whether or not it was touched"],
];
const LAYERS = 6;
/* The filters that choose mappings, too; all others are about blocks and paths. */
const OF_MAPPINGS: readonly FilterName[] = ["mapping", "mapping-permissions", "mapping-peak-rss"];

/* "libc.so.6", "heap", "anonymous" */
function mappingName(name: Cell): string {
    if (name === null || name === "") return "anonymous";
    const text = String(name);
    if (/\/memtrace-\d+\/[\d.]+\.mtp$/.test(text)) return "MemTrace itself";
    return text.startsWith("[") ? text.replace(/[[\]]/g, "").replace(/^anon:/, "") : shortModule(text);
}

function OfProcess() {
    const all = flag("all");
    const rows = useRows("mappings", { all }, { sort: "rss", order: "desc", main: true });
    const id = (row: Row) => textCell(row, "id");
    const setAll = (value: boolean) => go({ set: { all: value } });
    useActions([{ group: "Mappings", title: "Also mappings that are gone, or not", keys: ["g"], run: () => setAll(!all) }]);
    const columns = [
        { name: "path", heading: "Mapping", width: "minmax(11rem, 3fr)", render: (row: Row, value: Cell) => <MappingName row={row} value={value} /> },
        { name: "permissions", heading: "Access", width: "4.5rem", about: "Read, write, execute; private or shared", render: (_: Row, value: Cell) => <span class="code">{String(value ?? "")}</span> },
        { name: "size", width: "5.5rem" }, { name: "rss", width: "6rem" }, { name: "peak_rss", heading: "At most", width: "6rem", about: "Most resident at any time" },
        { name: "dirty", width: "5.5rem" }, { name: "swap", width: "5rem" },
        ...(all ? [{ name: "last_ns", heading: "Last seen", width: "6rem" }] : []),
        { name: "mapped_by", width: "minmax(12rem, 4fr)" },
    ];
    return (
        <Split name="mappings" direction="column" size={262} least={120} label="Resize the chart">
            <OverTime />
            <div class="panel">
                <div class="toolbar">
                    <Choice label="Which mappings" value={all ? "all" : "now"} onChange={(value) => setAll(value === "all")} options={[["now", "There at the end", "Of the window"], ["all", "All", "Also those that are gone (g)"]]} />
                    <span class="muted number">{rows.columns.length === 0 ? "" : format.items(rows.total, "mapping")}</span>
                    <span class="space" />
                    <span class="muted hint">Resident, dirty and swap are what the kernel said of each mapping every five seconds, at first more often.</span>
                </div>
                <div class="grow">
                    <DataTable label="Mappings" rows={rows} columns={columns} share={{ column: "rss" }} selected={(row) => isChosen("mapping", id(row))}
                        empty={OF_MAPPINGS.some((name) => filterQuery.value.has(name)) ? "No mapping fits all filters." : <TooShort />}
                        onSelect={(row) => choose({ kind: "mapping", id: id(row) })} />
                </div>
            </div>
        </Split>
    );
}

function TooShort() {
    return (
        <>The program ended before the kernel was first asked about its mappings, a second after the start. What it mapped itself: <a href={href(viewChange("flame", { class: "mapping", metric: "maximum" }))}>call paths that mapped memory</a>.
            How much was resident: <a href={href(viewChange("summary"))}>over time, in the summary</a>.</>
    );
}

function MappingName({ row, value }: { row: Row; value: Cell }) {
    const name = mappingName(value);
    const folder = value === null ? "" : String(value).slice(0, Math.max(0, String(value).lastIndexOf("/")));
    return (
        <span class="frame mapping-name" title={`${String(value ?? "anonymous")}\n${String(cell(row, "start"))} to ${String(cell(row, "end"))}`}>
            <span class="function">{name}</span>
            <span class="place">{folder.startsWith("/") ? folder : String(cell(row, "start"))}</span>
        </span>
    );
}

function OverTime() {
    const measure = (MEASURES.find(([id]) => id === param("measure"))?.[0] ?? "resident_bytes") as Measure;
    const asked = useQuery(isFile ? null : `SELECT time, name, sum(${measure}) AS bytes FROM smaps GROUP BY time, name`);
    const { times, layers } = useMemo(() => layersOf(samplesOf(asked.data), LAYERS, "all others"), [asked.data]);
    const chooser = <Choice label="What the chart shows" value={measure} options={MEASURES} onChange={(now) => go({ set: { measure: now === "resident_bytes" ? null : now } }, "replace")} />;
    const total = layers.reduce((sum, layer) => sum + (layer.values.at(-1) ?? 0), 0);
    return (
        <div class="panel">
            <div class="toolbar">{chooser}</div>
            {asked.error !== undefined ? <p class="state failed" role="alert">{asked.error.message}</p> :
                asked.data === undefined ? <div class="state" /> :
                times.length === 0 ? null : // the table says why
                times.length === 1 ? <p class="line no-chart">{`The mappings were looked at once, at ${format.duration(times[0] ?? 0)}: there is no line over time yet.`}</p> :
                total === 0 && measure === "swap_bytes" ? <p class="state empty">Nothing was swapped out.</p> :
                <div class="grow"><StackChart label={`${MEASURES.find(([one]) => one === measure)?.[1] ?? ""}, by mapping`} times={times} layers={layers} kind="bytes" height={184} /></div>}
        </div>
    );
}
function samplesOf(table: Table | undefined): Sample[] {
    if (table === undefined) return [];
    return rowsOf(table).map((row) => ({ time: numberCell(row, "time"), name: mappingName(cell(row, "name")), value: numberCell(row, "bytes") }));
}

/* ---- Of a profile ---- */

function Mappers() {
    const rows = useRows("mappings", {}, { sort: "live_bytes", order: "desc", main: true });
    const shown = rows.columns.filter((one) => one.name !== "hash").map((one) => one.name);
    return (
        <div class="panel">
            <p class="line">Who mapped memory. A profile does not ask the kernel what is resident of each mapping; a recording does, over time: <span class="code">memtrace record -- PROGRAM</span></p>
            <div class="grow">
                <DataTable label="Mappings" rows={rows} columns={shown} share={{ column: "live_bytes" }} empty="The program mapped nothing by itself." {...ofPaths} />
            </div>
        </div>
    );
}

// SPDX-License-Identifier: MIT
// chart.js: live bytes, resident memory and the rate of allocations over time.

const chartSize = {width: 1100, height: 260, left: 80, right: 12, top: 10, bottom: 26};

function svg(name, parent, attributes, text = "") {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) {
        element.setAttribute(key, value);
    }
    element.textContent = text;
    parent.append(element);
    return element;
}

// The next of 1, 2, 5, 10, ... (bytes: powers of two) that is not below a quarter of the most.
function stepFor(most, binary) {
    const base = binary ? 2 : 10;
    const power = base ** Math.floor(Math.log(Math.max(most, 1) / 4) / Math.log(base));
    return binary ? power * 2 : [1, 2, 5, 10].map((factor) => factor * power)
        .find((step) => step >= most / 4);
}

// Scales, grid and marks; returns what draws on it: x(time), y(value).
function makeChart(section, most, format, binary) {
    const {width, height, left, right, top, bottom} = chartSize;
    const times = data.timeline.concat(data.marks).map((each) => each[0]);
    const from = times.reduce((least, time) => Math.min(least, time));
    const span = Math.max(times.reduce((most, time) => Math.max(most, time)) - from, 1);
    const chart = svg("svg", section, {class: "chart", viewBox: "0 0 " + width + " " + height, role: "img"});
    const x = (time) => left + (width - left - right) * (time - from) / span;
    const y = (value) => height - bottom - (height - top - bottom) * value / Math.max(most, 1);
    const step = stepFor(most, binary);
    for (let value = 0; value <= most; value += step) {
        svg("line", chart, {class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value)});
        svg("text", chart, {x: left - 6, y: y(value) + 4, "text-anchor": "end"}, format(value));
    }
    for (let i = 0; i <= 5; i++) {
        svg("text", chart, {x: x(from + span * i / 5), y: height - 8, "text-anchor": i === 5 ? "end" : "middle"},
            formatDuration(from + span * i / 5));
    }
    return {chart, x, y};
}

function putMarks({chart, x}) {
    const {height, top, bottom} = chartSize;
    for (const [time, name] of data.marks) {
        const line = svg("line", chart, {class: "mark", x1: x(time), x2: x(time), y1: top, y2: height - bottom});
        svg("title", line, {}, name + " at " + formatDuration(time));
    }
}

// What the nearest point says, where the mouse is.
function answerMouse({chart, x}, details) {
    const {height, top, bottom} = chartSize;
    const cursor = svg("line", chart, {class: "cursor", y1: top, y2: height - bottom, visibility: "hidden"});
    chart.addEventListener("mousemove", (event) => {
        const place = (event.clientX - chart.getBoundingClientRect().left) * chartSize.width / chart.clientWidth;
        const near = data.timeline.reduce((best, point) =>
            Math.abs(x(point[0]) - place) < Math.abs(x(best[0]) - place) ? point : best);
        for (const end of ["x1", "x2"]) {
            cursor.setAttribute(end, x(near[0]));
        }
        cursor.setAttribute("visibility", "visible");
        details.textContent = formatDuration(near[0]) + ": " + formatBytes(near[1]) + " live, "
            + formatBytes(near[2]) + " resident, " + formatCount(near[3]) + " allocations so far";
    });
}

function showMemory(section, details) {
    const most = Math.max(...data.timeline.map((point) => Math.max(point[1], point[2])));
    const scales = makeChart(section, most, formatBytes, true);
    const {chart, x, y} = scales;
    const first = x(data.timeline[0][0]);
    const last = x(data.timeline[data.timeline.length - 1][0]);
    const line = (column) => data.timeline
        .map((point) => x(point[0]).toFixed(1) + "," + y(point[column]).toFixed(1)).join(" ");
    svg("polygon", chart, {class: "area", points: first + "," + y(0) + " " + line(1) + " " + last + "," + y(0)});
    svg("polyline", chart, {class: "curve", points: line(2)});
    putMarks(scales);
    answerMouse(scales, details);
}

function showRate(section, details) {
    const last = data.timeline[data.timeline.length - 1];
    const least = (last[0] - data.timeline[0][0]) / 400; // points may follow each other closely
    const rates = [];
    let before = data.timeline[0];
    for (const point of data.timeline.slice(1)) {
        if (point[0] - before[0] >= least || point === last) {
            rates.push({from: before[0], to: point[0],
                rate: (point[3] - before[3]) / Math.max(point[0] - before[0], 1) * 1e9});
            before = point;
        }
    }
    const most = Math.max(...rates.map((each) => each.rate));
    const scales = makeChart(section, most, (value) => formatCount(Math.round(value)) + "/s", false);
    for (const {from, to, rate} of rates) {
        svg("rect", scales.chart, {class: "rate", x: scales.x(from), width: scales.x(to) - scales.x(from) + 0.2,
            y: scales.y(rate), height: scales.y(0) - scales.y(rate)});
    }
    answerMouse(scales, details);
}

function showTimeline(section) {
    if (data.timeline.length < 2) {
        make("p", section, data.selected === null ? "There is no timeline in this file: it is sampled while a "
            + "program runs under `memtrace run` or `memtrace record`." : "What is selected has no timeline of its own.",
            "dim");
        return;
    }
    const details = make("div", section, "", "details");
    make("h2", section, "Live bytes (area) and resident memory (line)");
    showMemory(section, details);
    make("h2", section, "Allocations per second");
    showRate(section, details);
}
